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
        /// Nothing was refunded.
        Confirmed = "confirmed",
        /// Some of the total was refunded.
        PartiallyRefunded = "partially_refunded",
        /// All of it was refunded.
        Refunded = "refunded",
    }
}

/// What a confirmed plan became, and what was refunded of it.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Order {
    /// Names it in every call about it.
    pub order_id: OrderId,
    /// The confirmation that it was made of: one order each.
    pub confirmation_id: ConfirmationId,
    /// How much of it was refunded.
    pub status: OrderStatus,
    /// The plan that was confirmed, unchanged.
    pub plan: Plan,
    /// What was charged.
    pub total: Money,
    /// The sum of its succeeded refunds.
    pub refunded: Money,
    /// What can still be refunded: the total without what was refunded and what pending or offered refunds reserve.
    pub remaining_refundable: Money,
    /// Where it goes now; `plan.shipping_address` is where it went when it was confirmed.
    pub shipping_address: Address,
    /// Null when the total was zero: the provider was not asked.
    #[schema(required)]
    pub payment: Option<Payment>,
    /// Every refund that was sent to the provider, oldest first.
    pub refunds: Vec<Refund>,
    /// When it was confirmed.
    pub created_at: Timestamp,
}

/// The answer of a confirmed checkout, as long as the order exists.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Confirmed<'a> {
    /// The order that was made.
    pub order_id: &'a OrderId,
    /// The confirmation that was consumed.
    pub confirmation_id: &'a ConfirmationId,
    /// `confirmed`, also when the order was refunded since: this is the stored answer.
    pub status: OrderStatus,
    /// What was charged.
    pub total: Money,
    /// Null when the total was zero: the provider was not asked.
    #[schema(required)]
    pub payment: Option<Payment>,
    /// The plan that was confirmed, unchanged.
    pub plan: &'a Plan,
}
