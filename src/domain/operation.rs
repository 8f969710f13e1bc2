//! The operations, by the names that claims, confirmations, the effect catalogue and the documents share.

use super::words::words;

words! {
    /// One named endpoint (design of the API: one operation, one method and path, one effect profile).
    pub enum Operation {
        GetProduct = "get_product",
        BatchGetProducts = "batch_get_products",
        DryRunCheckout = "dry_run_checkout",
        ProposeCheckout = "propose_checkout",
        GetConfirmation = "get_confirmation",
        CancelConfirmation = "cancel_confirmation",
        ConfirmCheckout = "confirm_checkout",
        GetOrder = "get_order",
    }
}
