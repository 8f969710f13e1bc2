//! A refund, as an order shows it.

use super::ids::{OrderId, RefundId};
use super::money::Money;
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;

words! {
    pub enum RefundReason {
        Damaged = "damaged",
        NotAsDescribed = "not_as_described",
        Late = "late",
        Other = "other",
    }
}

words! {
    pub enum RefundStatus {
        Pending = "pending",
        Succeeded = "succeeded",
        Declined = "declined",
    }
}

#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Refund {
    pub refund_id: RefundId,
    pub order_id: OrderId,
    pub amount: Money,
    pub reason: RefundReason,
    pub note: Option<String>,
    pub status: RefundStatus,
    /// After this refund.
    pub remaining_refundable: Money,
    pub created_at: Timestamp,
}
