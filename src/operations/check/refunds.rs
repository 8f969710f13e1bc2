//! Refunds: one each, as it was confirmed, of the order's own charge, and never more than that.

use super::evidence::{Evidence, TOGETHER, differences, repeated};
use super::findings::Findings;
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::OrderId;
use crate::domain::payment::PaymentStatus;
use crate::domain::refund::RefundStatus;
use crate::domain::sums::sums;
use crate::payments::Booking;
use crate::store::books::ConfirmationEntry;
use crate::store::refunds::RefundRow;
use std::collections::{BTreeMap, HashMap};

pub fn one_refund_per_key(evidence: &Evidence, findings: &mut Findings) {
    let refunds = evidence.ours.refunds.iter();
    let by_key = refunds.filter_map(|r| Some(((&r.actor_id, r.idempotency_key.as_ref()?.as_str()), &r.refund_id)));
    for ((actor, _), refunds) in repeated(by_key) {
        findings.wrong(format!("one key of {actor} made more than one refund: {refunds}"));
    }
}

pub fn one_refund_per_confirmation(evidence: &Evidence, findings: &mut Findings) {
    let refunds = evidence.ours.refunds.iter();
    for (id, refunds) in repeated(refunds.filter_map(|r| Some((r.confirmation_id.as_ref()?, &r.refund_id)))) {
        findings.wrong(format!("{id} became more than one refund: {refunds}"));
    }
}

pub fn refunds_are_as_confirmed(evidence: &Evidence, findings: &mut Findings) {
    for entry in evidence.confirmations_for(Purpose::Refund) {
        let id = &entry.confirmation_id;
        let expected = TOGETHER.iter().find(|(_, confirmed, _)| *confirmed == entry.status).map(|(.., state)| *state);
        let refund = entry.refund_id.as_ref().and_then(|refund| evidence.refunds.get(refund));
        let became = refund.map(|refund| refund.status);
        if became != expected || refund.is_some_and(|refund| !is_as_offered(refund, entry, evidence)) {
            findings.wrong(format!("{id} is {}, its refund is another or has another state", entry.status.as_str()));
        }
    }
    for refund in &evidence.ours.refunds {
        let Some(id) = &refund.confirmation_id else { continue };
        let names = evidence.confirmations.get(id).and_then(|entry| entry.refund_id.as_ref());
        if names != Some(&refund.refund_id) {
            findings.wrong(format!("{} was made of {id}, which doesn't name it", refund.refund_id));
        }
    }
}

fn is_as_offered(refund: &RefundRow, entry: &ConfirmationEntry, evidence: &Evidence) -> bool {
    let id = &entry.confirmation_id;
    let same = evidence.refund_offer(id).is_none_or(|offer| {
        let (offered, amount) = (&offer.refund, offer.refund.amount);
        (&refund.order_id, refund.amount_minor, refund.currency)
            == (&offered.order_id, amount.minor(), amount.currency())
    });
    same && refund.confirmation_id.as_ref() == Some(id)
}

pub fn refunds_give_back_their_orders_charge(evidence: &Evidence, findings: &mut Findings) {
    for refund in &evidence.ours.refunds {
        let id = &refund.refund_id;
        let Some(order) = evidence.orders.get(&refund.order_id) else {
            findings.wrong(format!("{id} is of {}, which isn't there", refund.order_id));
            continue;
        };
        if refund.currency != order.currency {
            findings.wrong(format!("{id} has another currency than {}", order.order_id));
        }
        let Some(payment) = evidence.refund_payments.get(id) else {
            findings.wrong(format!("{id} has no payment"));
            continue;
        };
        let charge = order.payment_id.as_ref().and_then(|payment| evidence.payments.get(payment));
        let given_back = evidence.booked.get(&payment.provider_key).map(|booking| booking.refund_of.as_ref());
        if given_back.is_some_and(|of| of != charge.map(|charge| &charge.provider_key)) {
            findings.wrong(format!("{id} gives back another charge than its order's"));
        }
    }
}

pub fn refunded_adds_up(evidence: &Evidence, findings: &mut Findings) {
    let counted = sums(evidence.ours.orders.iter().map(|order| (order.order_id.clone(), order.refunded_minor)));
    for (id, counted, refunds) in differences(&counted, &refunds_that_are(RefundStatus::Succeeded, evidence)) {
        findings.wrong(format!("{id} counts {counted} as refunded, but its refunds are {refunds}"));
    }
}

pub fn reserved_adds_up(evidence: &Evidence, findings: &mut Findings) {
    let counted = sums(evidence.ours.orders.iter().map(|order| (order.order_id.clone(), order.reserved_minor)));
    let pending = refunds_that_are(RefundStatus::Pending, evidence);
    let offered = evidence.ours.refunds_held.iter().map(|((_, order), amount)| (order.clone(), *amount));
    for (id, counted, reserved) in differences(&counted, &sums(pending.into_iter().chain(offered))) {
        findings
            .wrong(format!("{id} counts {counted} as reserved, but its pending and offered refunds are {reserved}"));
    }
}

fn refunds_that_are(status: RefundStatus, evidence: &Evidence) -> BTreeMap<OrderId, i64> {
    let refunds = evidence.ours.refunds.iter().filter(|refund| refund.status == status);
    sums(refunds.map(|refund| (refund.order_id.clone(), refund.amount_minor)))
}

pub fn offered_refunds_are_reserved(evidence: &Evidence, findings: &mut Findings) {
    let pending = evidence.confirmations_for(Purpose::Refund).filter(|entry| entry.status == Status::Pending);
    let offered = sums(pending.filter_map(|entry| {
        let offered = &evidence.refund_offer(&entry.confirmation_id)?.refund;
        Some(((entry.confirmation_id.clone(), offered.order_id.clone()), offered.amount.minor()))
    }));
    for ((id, order), offered, reserved) in differences(&offered, &evidence.ours.refunds_held) {
        findings.wrong(format!("{id} should reserve {offered} of {order}, but reserves {reserved}"));
    }
}

pub fn refunded_within_total(evidence: &Evidence, findings: &mut Findings) {
    for order in &evidence.ours.orders {
        let (refunded, reserved, total) = (order.refunded_minor, order.reserved_minor, order.total_minor);
        if refunded < 0 || reserved < 0 || refunded.saturating_add(reserved) > total {
            let id = &order.order_id;
            findings.wrong(format!("{id}: {refunded} refunded and {reserved} reserved don't fit into {total}"));
        }
    }
}

pub fn given_back_within_charge(evidence: &Evidence, findings: &mut Findings) {
    let succeeded = || evidence.after.iter().filter(|booking| booking.status == PaymentStatus::Succeeded);
    let charges: HashMap<_, &Booking> =
        succeeded().filter(|b| b.refund_of.is_none()).map(|booking| (booking.provider_key.as_str(), booking)).collect();
    let given_back = sums(succeeded().filter_map(|booking| {
        Some(((booking.refund_of.as_ref()?.as_str(), booking.currency.as_str()), booking.amount_minor))
    }));
    for ((key, currency), given_back) in given_back {
        let charge = charges.get(key).filter(|charge| charge.currency.as_str() == currency);
        let taken = charge.map_or(0, |charge| charge.amount_minor);
        if given_back > taken {
            findings.wrong(format!("the provider took {taken} {currency} with {key} and gave {given_back} back"));
        }
    }
}
