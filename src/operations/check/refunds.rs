//! Refunds: against their orders, their payments, their confirmations and their keys.

use super::Findings;
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::OrderId;
use crate::domain::refund::RefundStatus;
use crate::domain::sums::sums;
use crate::payments::Booking;
use crate::store::books::Books;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What was refunded and reserved of an order is the sum of its refunds and of what is offered, and each refund gives
/// back the order's own charge.
pub(super) fn check(ours: &Books, booked: &[Booking], findings: &mut Findings) {
    let of = |status: RefundStatus| {
        let some = ours.refunds.iter().filter(move |refund| refund.status == status);
        sums(some.map(|refund| (refund.order_id.clone(), refund.amount_minor)))
    };
    let (succeeded, pending) = (of(RefundStatus::Succeeded), of(RefundStatus::Pending));
    let held = sums(ours.refunds_held.iter().map(|(_, order, amount)| (order.clone(), *amount)));
    for order in &ours.orders {
        let sum = |sums: &BTreeMap<OrderId, i64>| sums.get(&order.order_id).copied().unwrap_or(0);
        let (refunded, reserved) = (sum(&succeeded), sum(&pending) + sum(&held));
        if (order.refunded_minor, order.reserved_minor) != (refunded, reserved) {
            findings.wrong(format!(
                "{} counts {} refunded and {} reserved, but its refunds are {refunded} and {reserved}",
                order.order_id, order.refunded_minor, order.reserved_minor
            ));
        }
    }
    let pending = ours.confirmations.iter().filter(|entry| entry.status == Status::Pending);
    let pending: HashSet<_> = pending.map(|entry| &entry.confirmation_id).collect();
    for (id, order, _) in ours.refunds_held.iter().filter(|(id, ..)| !pending.contains(id)) {
        findings.wrong(format!("{id} reserves something of {order}, although it is not pending"));
    }
    charges(ours, booked, findings);
    confirmations(ours, findings);
    answers(ours, findings);
}

fn charges(ours: &Books, booked: &[Booking], findings: &mut Findings) {
    let orders: HashMap<_, _> = ours.orders.iter().map(|order| (&order.order_id, order.payment_id.as_ref())).collect();
    let keys: HashMap<_, _> =
        ours.payments.iter().map(|payment| (&payment.payment_id, &payment.provider_key)).collect();
    let given_back: HashMap<_, _> = booked.iter().map(|booking| (&booking.provider_key, &booking.refund_of)).collect();
    let paid_by: HashMap<_, _> =
        ours.payments.iter().filter_map(|p| Some((p.refund_id.as_ref()?, &p.provider_key))).collect();
    for refund in &ours.refunds {
        let id = &refund.refund_id;
        let Some(key) = paid_by.get(id) else {
            findings.wrong(format!("{id} has no payment"));
            continue;
        };
        let charge = orders.get(&refund.order_id).copied().flatten().and_then(|payment| keys.get(payment).copied());
        if given_back.get(*key).is_some_and(|of| of.as_ref() != charge) {
            findings.wrong(format!("{id} gives back another charge than its order's"));
        }
    }
}

/// A refund's confirmation has the refund that it became, of the amount that was offered; while it is pending it holds
/// that amount.
fn confirmations(ours: &Books, findings: &mut Findings) {
    let offers: HashMap<_, _> = ours.refund_offers.iter().map(|(id, offer)| (id, offer)).collect();
    let refunds: HashMap<_, _> = ours.refunds.iter().map(|refund| (&refund.refund_id, refund)).collect();
    let held: HashMap<_, _> = ours.refunds_held.iter().map(|(id, order, amount)| (id, (order, *amount))).collect();
    for entry in ours.confirmations.iter().filter(|entry| entry.purpose == Purpose::Refund) {
        let id = &entry.confirmation_id;
        let Some(offered) = offers.get(id).map(|offer| &offer.refund) else { continue };
        let expected = match entry.status {
            Status::Pending => {
                if held.get(id) != Some(&(&offered.order_id, offered.amount.minor())) {
                    findings.wrong(format!("{id} doesn't reserve what it offers"));
                }
                None
            }
            Status::Cancelled | Status::Expired => None,
            Status::Committing => Some(RefundStatus::Pending),
            Status::Confirmed => Some(RefundStatus::Succeeded),
            Status::Declined => Some(RefundStatus::Declined),
        };
        let refund = entry.refund_id.as_ref().and_then(|refund| refunds.get(refund));
        let became = refund.map(|refund| refund.status);
        let as_offered = refund.is_none_or(|refund| {
            let same = (&refund.order_id, refund.amount_minor) == (&offered.order_id, offered.amount.minor());
            same && refund.confirmation_id.as_ref() == Some(id)
        });
        if became != expected || !as_offered {
            findings.wrong(format!("{id} is {}, its refund is another or has another state", entry.status.as_str()));
        }
    }
    let named: HashSet<_> = ours.confirmations.iter().filter_map(|entry| entry.refund_id.as_ref()).collect();
    for refund in ours.refunds.iter().filter(|refund| refund.confirmation_id.is_some()) {
        if !named.contains(&refund.refund_id) {
            findings.wrong(format!("{} was made of a confirmation that doesn't name it", refund.refund_id));
        }
    }
}

/// A decided refund of one step has its answer on the claim of its key.
fn answers(ours: &Books, findings: &mut Findings) {
    let answered: HashSet<_> = ours.answered_refunds.iter().collect();
    for refund in ours.refunds.iter().filter(|refund| refund.idempotency_key.is_some()) {
        if refund.status != RefundStatus::Pending && !answered.contains(&refund.refund_id) {
            findings.wrong(format!("{} is decided, but its key has no answer", refund.refund_id));
        }
    }
}
