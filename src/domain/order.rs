//! An order: what a confirmed plan became.

use super::address::Address;
use super::ids::{ConfirmationId, OrderId};
use super::money::Money;
use super::payment::Payment;
use super::plan::Plan;
use super::refund::Refund;
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;

words! {
    /// Derived from the total and what was refunded of it.
    pub enum OrderStatus {
        Confirmed = "confirmed",
        PartiallyRefunded = "partially_refunded",
        Refunded = "refunded",
    }
}

#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Order {
    pub order_id: OrderId,
    pub confirmation_id: ConfirmationId,
    pub status: OrderStatus,
    /// The plan that was confirmed, unchanged.
    pub plan: Plan,
    pub total: Money,
    pub refunded: Money,
    pub remaining_refundable: Money,
    pub shipping_address: Address,
    /// Null when the total was zero: the provider was not asked.
    pub payment: Option<Payment>,
    pub refunds: Vec<Refund>,
    pub created_at: Timestamp,
}

/// The answer of a confirmed checkout, as long as the order exists.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Confirmed<'a> {
    pub order_id: &'a OrderId,
    pub confirmation_id: &'a ConfirmationId,
    pub status: OrderStatus,
    pub total: Money,
    pub payment: Option<Payment>,
    pub plan: &'a Plan,
}
