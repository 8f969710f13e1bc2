//! Payments: one for each charge and each refund, in our books and in the provider's.

use super::evidence::{Evidence, TOGETHER, repeated};
use super::findings::Findings;
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::payment::PaymentStatus;
use crate::payments::Booking;
use crate::store::payments::PaymentRow;

pub fn one_charge_per_order(evidence: &Evidence, findings: &mut Findings) {
    let payments = evidence.ours.payments.iter();
    for (id, payments) in repeated(payments.filter_map(|p| Some((p.confirmation_id.as_ref()?, &p.payment_id)))) {
        findings.wrong(format!("{id} has more than one payment: {payments}"));
    }
    for (id, keys) in repeated(taken(evidence).filter_map(|(p, key)| Some((p.confirmation_id.as_ref()?, key)))) {
        findings.wrong(format!("the provider charged {id} more than once: {keys}"));
    }
}

pub fn one_payment_per_refund(evidence: &Evidence, findings: &mut Findings) {
    let payments = evidence.ours.payments.iter();
    for (id, payments) in repeated(payments.filter_map(|p| Some((p.refund_id.as_ref()?, &p.payment_id)))) {
        findings.wrong(format!("{id} has more than one payment: {payments}"));
    }
    for (id, keys) in repeated(taken(evidence).filter_map(|(p, key)| Some((p.refund_id.as_ref()?, key)))) {
        findings.wrong(format!("the provider gave {id} back more than once: {keys}"));
    }
}

/// What succeeded in the provider's books, with our payment.
fn taken<'a>(evidence: &Evidence<'a>) -> impl Iterator<Item = (&'a PaymentRow, &'a str)> {
    let succeeded = evidence.after.iter().filter(|booking| booking.status == PaymentStatus::Succeeded);
    succeeded.filter_map(|booking| Some((*evidence.asked.get(&booking.provider_key)?, booking.provider_key.as_str())))
}

pub fn payments_are_decided_with_their_subject(evidence: &Evidence, findings: &mut Findings) {
    for payment in &evidence.ours.payments {
        let agrees = match (&payment.confirmation_id, &payment.refund_id) {
            (Some(id), None) => evidence.confirmations.get(id).is_some_and(|entry| {
                TOGETHER.iter().any(|(paid, confirmed, _)| (*paid, *confirmed) == (payment.status, entry.status))
            }),
            (None, Some(id)) => evidence.refunds.get(id).is_some_and(|refund| {
                let same = (refund.amount_minor, refund.currency) == (payment.amount_minor, payment.currency);
                same && TOGETHER.iter().any(|(paid, _, refunded)| (*paid, *refunded) == (payment.status, refund.status))
            }),
            (Some(_), Some(_)) | (None, None) => false,
        };
        if !agrees {
            findings.wrong(format!("{} is {}, what it is for is not", payment.payment_id, payment.status.as_str()));
        }
    }
}

pub fn sent_confirmations_have_a_payment(evidence: &Evidence, findings: &mut Findings) {
    for entry in &evidence.ours.confirmations {
        let id = &entry.confirmation_id;
        let paid = match entry.purpose {
            Purpose::Checkout => evidence.charges.contains_key(id),
            Purpose::Refund => entry.refund_id.is_some(),
        };
        if !paid && entry.status == Status::Committing {
            findings.wrong(format!("{id} is being confirmed without a payment"));
        }
        if !paid && entry.status == Status::Declined {
            findings.wrong(format!("{id} was declined without a payment"));
        }
    }
}

pub fn payments_are_as_booked(evidence: &Evidence, findings: &mut Findings) {
    for payment in &evidence.ours.payments {
        let (id, decided) = (&payment.payment_id, payment.status != PaymentStatus::Requested);
        match evidence.booked.get(&payment.provider_key) {
            None if decided => findings.wrong(format!("{id} is decided, but not in the provider's books")),
            Some(booking) if !is_of(booking, payment) || (decided && booking.status != payment.status) => {
                findings.wrong(format!("{id} differs from what the provider booked"));
            }
            None | Some(_) => {}
        }
    }
}

/// Whether a booking is what a payment asks for, however it ended.
fn is_of(booking: &Booking, payment: &PaymentRow) -> bool {
    let same = (booking.amount_minor, booking.currency) == (payment.amount_minor, payment.currency);
    same && booking.refund_of.is_some() == payment.refund_id.is_some()
}

pub fn bookings_were_asked_for(evidence: &Evidence, findings: &mut Findings) {
    let unasked = |booking: &&Booking| !evidence.asked.contains_key(&booking.provider_key);
    for booking in evidence.before.iter().filter(unasked) {
        findings.wrong(format!("the provider booked {}, which we never asked for", booking.provider_key.as_str()));
    }
}

pub fn leases_are_live(evidence: &Evidence, findings: &mut Findings) {
    for payment in &evidence.ours.payments {
        let id = &payment.payment_id;
        let Some(until) = payment.lease_until else { continue };
        if payment.status != PaymentStatus::Requested {
            findings.wrong(format!("{id} is decided, and still leased"));
        } else if evidence.now >= until {
            findings
                .undecided(format!("{id} has a stale lease: whoever held it is gone; a running server recovers it"));
        }
    }
}

pub fn undecided_payments_can_be_sent_again(evidence: &Evidence, findings: &mut Findings) {
    let undecided = evidence.ours.payments.iter().filter(|payment| payment.status == PaymentStatus::Requested);
    for payment in undecided.filter(|payment| evidence.now >= payment.provider_key_expires_at) {
        let id = &payment.payment_id;
        findings.undecided(format!("{id} needs a person: undecided, and too old to be sent again safely"));
    }
}
