//! What the invariants look at: our books, the provider's, the time, and who names whom.

use crate::domain::confirmation::{Offer, Purpose, Status};
use crate::domain::ids::{ActorId, ConfirmationId, OrderId, PaymentId, RefundId};
use crate::domain::key::IdempotencyKey;
use crate::domain::operation::Operation;
use crate::domain::payment::{PaymentStatus, ProviderKey};
use crate::domain::plan::Plan;
use crate::domain::refund::{RefundOffer, RefundStatus};
use crate::domain::time::Timestamp;
use crate::payments::Booking;
use crate::store::books::{Books, ConfirmationEntry, OrderEntry};
use crate::store::claims::Claim;
use crate::store::payments::PaymentRow;
use crate::store::refunds::RefundRow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;

/// The states that a payment, the confirmation behind it and its refund have together.
pub const TOGETHER: [(PaymentStatus, Status, RefundStatus); 3] = [
    (PaymentStatus::Requested, Status::Committing, RefundStatus::Pending),
    (PaymentStatus::Succeeded, Status::Confirmed, RefundStatus::Succeeded),
    (PaymentStatus::Declined, Status::Declined, RefundStatus::Declined),
];

/// What is looked up by a name that two rows may not have; `one_row_per_id`, `one_charge_per_order` and
/// `one_payment_per_refund` see to it that none hides another.
pub struct Evidence<'a> {
    pub ours: &'a Books,
    /// The provider's books, before ours were read.
    pub before: &'a [Booking],
    /// And after.
    pub after: &'a [Booking],
    pub now: Timestamp,
    pub orders: HashMap<&'a OrderId, &'a OrderEntry>,
    pub confirmations: HashMap<&'a ConfirmationId, &'a ConfirmationEntry>,
    pub refunds: HashMap<&'a RefundId, &'a RefundRow>,
    pub payments: HashMap<&'a PaymentId, &'a PaymentRow>,
    /// The payments of checkouts and of refunds.
    pub charges: HashMap<&'a ConfirmationId, &'a PaymentRow>,
    pub refund_payments: HashMap<&'a RefundId, &'a PaymentRow>,
    pub asked: HashMap<&'a ProviderKey, &'a PaymentRow>,
    pub booked: HashMap<&'a ProviderKey, &'a Booking>,
    pub claims: HashMap<(&'a ActorId, &'a IdempotencyKey), &'a Claim>,
    offers: HashMap<&'a ConfirmationId, Offer>,
}

impl<'a> Evidence<'a> {
    pub fn of(ours: &'a Books, before: &'a [Booking], after: &'a [Booking], now: Timestamp) -> Self {
        let payments = &ours.payments;
        let offer = |entry: &'a ConfirmationEntry| {
            Offer::read(entry.purpose, &entry.offer).ok().map(|offer| (&entry.confirmation_id, offer))
        };
        Self {
            ours,
            before,
            after,
            now,
            orders: ours.orders.iter().map(|order| (&order.order_id, order)).collect(),
            confirmations: ours.confirmations.iter().map(|entry| (&entry.confirmation_id, entry)).collect(),
            refunds: ours.refunds.iter().map(|refund| (&refund.refund_id, refund)).collect(),
            payments: payments.iter().map(|payment| (&payment.payment_id, payment)).collect(),
            charges: payments.iter().filter_map(|p| Some((p.confirmation_id.as_ref()?, p))).collect(),
            refund_payments: payments.iter().filter_map(|p| Some((p.refund_id.as_ref()?, p))).collect(),
            asked: payments.iter().map(|payment| (&payment.provider_key, payment)).collect(),
            booked: after.iter().map(|booking| (&booking.provider_key, booking)).collect(),
            claims: ours.claims.iter().map(|claim| ((&claim.actor_id, &claim.idempotency_key), claim)).collect(),
            offers: ours.confirmations.iter().filter_map(offer).collect(),
        }
    }

    /// None where it can't be read, which `offers_can_be_read` says.
    pub fn offer(&self, id: &ConfirmationId) -> Option<&Offer> {
        self.offers.get(id)
    }

    pub fn plan(&self, id: &ConfirmationId) -> Option<&Plan> {
        match self.offer(id)? {
            Offer::Checkout(plan) => Some(plan),
            Offer::Refund(_) => None,
        }
    }

    pub fn refund_offer(&self, id: &ConfirmationId) -> Option<&RefundOffer> {
        match self.offer(id)? {
            Offer::Refund(offer) => Some(offer),
            Offer::Checkout(_) => None,
        }
    }

    pub fn confirmations_for(&self, purpose: Purpose) -> impl Iterator<Item = &'a ConfirmationEntry> {
        self.ours.confirmations.iter().filter(move |entry| entry.purpose == purpose)
    }

    pub fn claims_of(&self, operation: Operation) -> impl Iterator<Item = &'a Claim> {
        self.ours.claims.iter().filter(move |claim| claim.operation == operation)
    }
}

/// A claim as it is named to a person, who isn't shown its key.
pub fn named(claim: &Claim) -> String {
    let (actor, operation) = (&claim.actor_id, claim.operation.as_str());
    format!("the claim {} of {actor} for {operation}", claim.idempotency_key.log_hash())
}

/// The names under which there is more than one thing, each with its things.
pub fn repeated<K: Ord, V: Display>(things: impl Iterator<Item = (K, V)>) -> Vec<(K, String)> {
    let mut by_name: BTreeMap<K, Vec<String>> = BTreeMap::new();
    for (name, thing) in things {
        by_name.entry(name).or_default().push(thing.to_string());
    }
    by_name.into_iter().filter(|(_, things)| things.len() > 1).map(|(name, things)| (name, things.join(", "))).collect()
}

/// Where two sums differ, with both; what isn't there is zero.
pub fn differences<'a, K: Ord>(one: &'a BTreeMap<K, i64>, other: &'a BTreeMap<K, i64>) -> Vec<(&'a K, i64, i64)> {
    let of = |sums: &BTreeMap<K, i64>, key: &K| sums.get(key).copied().unwrap_or(0);
    let only_there = other.keys().filter(|key| !one.contains_key(key));
    let both = one.keys().chain(only_there).map(|key| (key, of(one, key), of(other, key)));
    both.filter(|(_, one, other)| one != other).collect()
}
