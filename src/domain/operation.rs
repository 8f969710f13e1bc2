//! The operations, by the names that claims, confirmations, the effect catalogue and the documents share.

use super::words::words;

words! {
    /// An operation, by its `operationId`: one method and path, one effect profile.
    pub enum Operation {
        SearchProducts = "search_products",
        GetProduct = "get_product",
        BatchGetProducts = "batch_get_products",
        BatchSearchProducts = "batch_search_products",
        BatchUpdateProducts = "batch_update_products",
        DryRunCheckout = "dry_run_checkout",
        ProposeCheckout = "propose_checkout",
        ListConfirmations = "list_confirmations",
        GetConfirmation = "get_confirmation",
        CancelConfirmation = "cancel_confirmation",
        ConfirmCheckout = "confirm_checkout",
        GetOrder = "get_order",
        ListOrders = "list_orders",
        SetShippingAddress = "set_shipping_address",
        DryRunRefund = "dry_run_refund",
        IssueRefund = "issue_refund",
        ConfirmRefund = "confirm_refund",
        GetRefund = "get_refund",
        GetOperationStatus = "get_operation_status",
        GetTask = "get_task",
    }
}
