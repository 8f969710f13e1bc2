//! The invariants, by name: what holds of the books after every story, whatever was sent twice, timed out or crashed.

use super::evidence::Evidence;
use super::findings::{Finding, Findings};
use super::{answers, goods, keys, money_answers, orders, payments, refunds};

/// Something that holds of the books at any time.
pub struct Invariant {
    /// What findings and tests call it.
    pub name: &'static str,
    /// The same as a sentence.
    pub holds: &'static str,
    check: fn(&Evidence, &mut Findings),
}

impl Invariant {
    pub(super) fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        let mut findings = Findings::about(self.name);
        (self.check)(evidence, &mut findings);
        findings.into_vec()
    }
}

/// An invariant is called what its function is called.
macro_rules! invariants {
    ($($file:ident::$name:ident: $holds:literal;)+) => {
        &[$(Invariant { name: stringify!($name), holds: $holds, check: $file::$name },)+]
    };
}

pub const INVARIANTS: &[Invariant] = invariants! {
    keys::one_row_per_id: "An id, a key, a provider key or a code names one row.";
    orders::offers_can_be_read: "Every confirmation offers what it is for: a plan or a refund.";
    orders::one_order_per_confirmation: "No confirmation became two orders.";
    orders::confirmed_checkouts_are_orders: "A checkout is confirmed exactly if there is an order of it.";
    orders::orders_are_as_confirmed: "An order has the plan that was confirmed, and that plan's total.";
    orders::charged_is_order_total: "What was charged for an order is its total.";
    payments::one_charge_per_order: "A checkout is charged at most once, in our books and in the provider's.";
    payments::one_payment_per_refund: "A refund is paid at most once, in our books and in the provider's.";
    payments::payments_are_decided_with_their_subject: "A payment and what it is for are decided together, alike.";
    payments::sent_confirmations_have_a_payment: "What was sent to the provider is written down as a payment.";
    payments::payments_are_as_booked: "A decided payment is in the provider's books, and there as it is in ours.";
    payments::bookings_were_asked_for: "The provider booked nothing that we didn't ask for.";
    payments::leases_are_live: "Whoever asks the provider holds a lease that isn't over; decided payments have none.";
    payments::undecided_payments_can_be_sent_again: "An undecided payment is young enough to be sent again safely.";
    refunds::one_refund_per_key: "No key of an actor made two refunds.";
    refunds::one_refund_per_confirmation: "No confirmation became two refunds.";
    refunds::refunds_are_as_confirmed: "A refund of two steps is as offered, and decided with its confirmation.";
    refunds::refunds_give_back_their_orders_charge: "A refund gives back its own order's charge, in its currency.";
    refunds::refunded_adds_up: "What an order counts as refunded is the sum of its succeeded refunds.";
    refunds::reserved_adds_up: "What an order counts as reserved is the sum of its pending and offered refunds.";
    refunds::offered_refunds_are_reserved: "A pending refund confirmation reserves what it offers, and no other does.";
    refunds::refunded_within_total: "What is refunded and reserved of an order is never more than its total.";
    refunds::given_back_within_charge: "The provider never gave back more of a charge than it took.";
    goods::stock_adds_up: "What was set of a product, less what was sold, is its stock.";
    goods::stock_holds_add_up: "Live checkouts hold the units that they need, and these are counted.";
    goods::held_within_stock: "Never more is held of a product than is in stock.";
    goods::discount_uses_add_up: "The uses of a discount code are the orders that have it.";
    goods::discount_holds_add_up: "Live checkouts hold the discount uses that they need, and these are counted.";
    goods::discount_uses_within_limit: "A discount code is used and held no more often than it may be.";
    keys::one_undecided_attempt: "An actor has one undecided attempt at the same thing at most.";
    keys::one_key_per_confirmation: "Every confirmation was made by exactly one key.";
    keys::local_keys_are_answered: "A key of a local operation has its answer as soon as it is taken.";
    keys::answers_are_kept_their_time: "An answer is kept until its key's time is over.";
    keys::open_keys_are_in_flight: "A key without an answer has something undecided, or confirmed, behind it.";
    keys::refund_keys_are_answered_with_their_refund: "A refund of one step is decided together with its key's answer.";
    answers::only_decisions_are_stored: "Only successes and the refusals that the error table stores are kept.";
    money_answers::decided_confirmations_are_answered: "A confirmation has its answer exactly if it is decided.";
    answers::proposals_answer_with_their_confirmation: "A stored proposal shows its confirmation as it was made.";
    money_answers::confirms_answer_with_their_order: "A confirm's answer shows the order and the payment that it made.";
    money_answers::declines_answer_with_their_confirmation: "A declined confirm's answer is about its own confirmation.";
    money_answers::refunds_answer_with_their_refund: "A stored refund shows the refund that its key made.";
    money_answers::refund_confirms_answer_with_their_refund: "A refund confirm's answer shows the refund that it made.";
    answers::cancels_answer_with_their_confirmation: "What a stored answer says is cancelled is cancelled.";
    answers::batch_updates_answer_with_their_products: "A product has at least the version that a stored answer shows.";
    answers::addresses_answer_with_their_order: "A stored address is that of an order which is there.";
};
