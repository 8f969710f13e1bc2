//! Keys: one row and one thing for each, an answer that stays, and none in flight without something that is.

use super::evidence::{Evidence, named, repeated};
use super::findings::Findings;
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::{ConfirmationId, RefundId};
use crate::domain::operation::Operation;
use crate::domain::payment::PaymentStatus;
use crate::domain::refund::RefundStatus;
use crate::domain::sums::sums;
use crate::effects::Reach;
use crate::store::books::ConfirmationEntry;
use crate::store::claims::Claim;
use crate::store::payments::PaymentRow;
use std::time::Duration;

/// Between our reading of the clock and the snapshot, on another machine, answers may be forgotten rightly.
const SWEPT_MEANWHILE: Duration = Duration::from_secs(60);
const CONFIRMS: [(Operation, Purpose); 2] =
    [(Operation::ConfirmCheckout, Purpose::Checkout), (Operation::ConfirmRefund, Purpose::Refund)];

pub fn one_row_per_id(evidence: &Evidence, findings: &mut Findings) {
    let ours = evidence.ours;
    once("orders", ours.orders.iter().map(|row| row.order_id.as_str()), findings);
    once("confirmations", ours.confirmations.iter().map(|row| row.confirmation_id.as_str()), findings);
    once("refunds", ours.refunds.iter().map(|row| row.refund_id.as_str()), findings);
    once("payments", ours.payments.iter().map(|row| row.payment_id.as_str()), findings);
    once("payments by provider key", ours.payments.iter().map(|row| row.provider_key.as_str()), findings);
    once("bookings of the provider", evidence.after.iter().map(|row| row.provider_key.as_str()), findings);
    once("products", ours.products.iter().map(|row| row.product_id.as_str()), findings);
    once("discounts", ours.discounts.iter().map(|row| row.code.as_str()), findings);
    let claims = ours.claims.iter().map(|claim| ((&claim.actor_id, claim.idempotency_key.as_str()), named(claim)));
    for (_, claims) in repeated(claims) {
        findings.wrong(format!("one key is claimed more than once: {claims}"));
    }
}

fn once<'a>(rows: &str, ids: impl Iterator<Item = &'a str>, findings: &mut Findings) {
    for (id, count) in sums(ids.map(|id| (id, 1))).into_iter().filter(|(_, count)| *count > 1) {
        findings.wrong(format!("{id} is there {count} times among the {rows}"));
    }
}

pub fn one_undecided_attempt(evidence: &Evidence, findings: &mut Findings) {
    let committing = evidence.ours.confirmations.iter().filter(|entry| entry.status == Status::Committing);
    let attempts = committing.map(|e| ((&e.actor_id, e.attempt_digest.as_str()), &e.confirmation_id));
    for ((actor, _), ids) in repeated(attempts) {
        findings.wrong(format!("{actor} has more than one undecided attempt at the same thing: {ids}"));
    }
}

pub fn one_key_per_confirmation(evidence: &Evidence, findings: &mut Findings) {
    let proposed = evidence.claims_of(Operation::ProposeCheckout).chain(evidence.claims_of(Operation::IssueRefund));
    let made = proposed.filter_map(|claim| Some((ConfirmationId::at(claim.resource.as_deref()?)?, 1)));
    let made = sums(made);
    for entry in &evidence.ours.confirmations {
        let (id, keys) = (&entry.confirmation_id, made.get(&entry.confirmation_id).copied().unwrap_or(0));
        if keys != 1 {
            findings.wrong(format!("{id} was made by {keys} keys"));
        }
    }
    for id in made.keys().filter(|id| !evidence.confirmations.contains_key(id)) {
        findings.wrong(format!("a key made {id}, which isn't there"));
    }
}

pub fn local_keys_are_answered(evidence: &Evidence, findings: &mut Findings) {
    let local = |claim: &&Claim| claim.operation.profile().reach == Reach::Local;
    for claim in evidence.ours.claims.iter().filter(local).filter(|claim| !claim.is_answered()) {
        findings.wrong(format!("{} has no answer", named(claim)));
    }
}

pub fn answers_are_kept_their_time(evidence: &Evidence, findings: &mut Findings) {
    let surely_kept = evidence.now.after(SWEPT_MEANWHILE);
    let lost = |claim: &&Claim| claim.is_swept() && claim.expires_at > surely_kept;
    for claim in evidence.ours.claims.iter().filter(lost) {
        findings.wrong(format!("{} has lost its answer before its time", named(claim)));
    }
}

/// What stands behind an open key may be undecided for long; `leases_are_live` says when nobody is on it.
pub fn open_keys_are_in_flight(evidence: &Evidence, findings: &mut Findings) {
    for claim in evidence.claims_of(Operation::IssueRefund).filter(|claim| !claim.is_answered()) {
        if !is_undecided_refund(claim, evidence) {
            findings.wrong(format!("{} is open, and no undecided refund stands behind it", named(claim)));
        }
    }
    for (operation, purpose) in CONFIRMS {
        for claim in evidence.claims_of(operation) {
            let id = claim.resource.as_deref().and_then(ConfirmationId::at);
            let confirmation = id.as_ref().and_then(|id| evidence.confirmations.get(id));
            if !confirmation.is_some_and(|entry| entry.purpose == purpose && is_under_way(entry, evidence)) {
                findings.wrong(format!("{} is taken, and nothing was confirmed with it", named(claim)));
            }
        }
    }
}

fn is_undecided_refund(claim: &Claim, evidence: &Evidence) -> bool {
    let refund = claim.resource.as_deref().and_then(RefundId::at);
    let Some(refund) = refund.as_ref().and_then(|refund| evidence.refunds.get(refund)) else { return false };
    let payment = evidence.refund_payments.get(&refund.refund_id);
    refund.status == RefundStatus::Pending && payment.is_some_and(|payment| is_requested(payment))
}

/// Being confirmed, or decided: then the answer stands on the confirmation.
fn is_under_way(entry: &ConfirmationEntry, evidence: &Evidence) -> bool {
    match entry.status {
        Status::Pending | Status::Cancelled | Status::Expired => false,
        Status::Confirmed | Status::Declined => true,
        Status::Committing => {
            let payment = match &entry.refund_id {
                Some(refund) => evidence.refund_payments.get(refund),
                None => evidence.charges.get(&entry.confirmation_id),
            };
            payment.is_some_and(|payment| is_requested(payment))
        }
    }
}

fn is_requested(payment: &PaymentRow) -> bool {
    payment.status == PaymentStatus::Requested
}

/// A refund of one step has no other place for its answer than its key's claim.
pub fn refund_keys_are_answered_with_their_refund(evidence: &Evidence, findings: &mut Findings) {
    for refund in &evidence.ours.refunds {
        let (id, Some(key)) = (&refund.refund_id, &refund.idempotency_key) else { continue };
        let Some(claim) = evidence.claims.get(&(&refund.actor_id, key)) else {
            findings.wrong(format!("{id} was made by a key that nobody has claimed"));
            continue;
        };
        if claim.operation != Operation::IssueRefund || claim.resource != Some(id.path()) {
            findings.wrong(format!("{} doesn't name {id}, which it made", named(claim)));
        }
        match (refund.status != RefundStatus::Pending, claim.is_answered()) {
            (true, false) => findings.wrong(format!("{id} is decided, but its key has no answer")),
            (false, true) => findings.wrong(format!("{id} is not decided, but its key has an answer")),
            (true, true) | (false, false) => {}
        }
    }
}
