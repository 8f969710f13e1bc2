//! Check: reads our books and the provider's, and says what doesn't add up. It changes nothing, and a server may be
//! running meanwhile.

mod goods;
mod refunds;

use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::{ConfirmationId, RefundId};
use crate::domain::operation::Operation;
use crate::domain::payment::PaymentStatus;
use crate::domain::refund::RefundStatus;
use crate::domain::time::Timestamp;
use crate::effects::Reach;
use crate::payments::Booking;
use crate::store::books::{self, Books, ConfirmationEntry, OrderEntry};
use crate::store::payments::PaymentRow;
use crate::store::refunds::RefundRow;
use crate::store::{self, StoreConfig};
use std::collections::{HashMap, HashSet};

/// What doesn't add up, for a person to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    Wrong(String),
    /// Not wrong yet: a payment without a decision and without anybody who asks for it.
    Undecided(String),
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Finding::Wrong(what) | Finding::Undecided(what) => f.write_str(what),
        }
    }
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn wrong(&mut self, what: String) {
        self.0.push(Finding::Wrong(what));
    }

    fn undecided(&mut self, what: String) {
        self.0.push(Finding::Undecided(what));
    }
}

/// How much was looked at, and what was found.
#[derive(Debug)]
pub struct Report {
    pub orders: usize,
    pub payments: usize,
    pub bookings: usize,
    pub products: usize,
    pub findings: Vec<Finding>,
}

/// The provider's books are read before ours and after: a charge of the first reading has to be in ours, and what we
/// know to be paid has to be in the second.
pub fn check(
    database: &StoreConfig,
    provider_books: impl Fn() -> Result<Vec<Booking>, String>,
    now: Timestamp,
) -> Result<Report, String> {
    let before = provider_books()?;
    let ours = store::inspect(database, |db| Ok(books::read(db, &Operation::reaching(Reach::Provider), now)?))?;
    let after = provider_books()?;

    let mut findings = Findings::default();
    orders(&ours, &mut findings);
    payments(&ours, &after, now, &mut findings);
    charges(&ours, &before, &mut findings);
    refunds::check(&ours, &after, &mut findings);
    goods::stock(&ours, &mut findings);
    goods::discounts(&ours, &mut findings);
    claims(&ours, &mut findings);
    Ok(Report {
        orders: ours.orders.len(),
        payments: ours.payments.len(),
        bookings: after.len(),
        products: ours.products.len(),
        findings: findings.0,
    })
}

/// One order a confirmed checkout, of its plan's total, paid by its payment.
fn orders(ours: &Books, findings: &mut Findings) {
    let by_confirmation: HashMap<&ConfirmationId, &OrderEntry> =
        ours.orders.iter().map(|order| (&order.confirmation_id, order)).collect();
    let payments: HashMap<_, &PaymentRow> =
        ours.payments.iter().map(|payment| (&payment.payment_id, payment)).collect();
    for entry in &ours.confirmations {
        let (id, status) = (&entry.confirmation_id, entry.status);
        match by_confirmation.get(id) {
            None if status == Status::Confirmed && entry.purpose == Purpose::Checkout => {
                findings.wrong(format!("{id} is confirmed without an order"));
            }
            Some(order) if status != Status::Confirmed => {
                findings.wrong(format!("{} was made of {id}, which is {}", order.order_id, status.as_str()));
            }
            Some(order)
                if (Some(&order.order_id), &order.account_id) != (entry.order_id.as_ref(), &entry.account_id) =>
            {
                findings.wrong(format!("{} is not what {id} became", order.order_id));
            }
            None | Some(_) => {}
        }
    }
    for order in &ours.orders {
        let id = &order.order_id;
        if order.total_minor != order.plan.total.minor() || order.currency != order.plan.currency {
            findings.wrong(format!("{id} has another total than its plan"));
        }
        match order.payment_id.as_ref().map(|payment| payments.get(payment)) {
            None if order.total_minor == 0 => {}
            None => findings.wrong(format!("{id} is not paid")),
            Some(None) => findings.wrong(format!("{id} has a payment that isn't there")),
            Some(Some(payment)) => {
                let same = (payment.amount_minor, payment.currency) == (order.total_minor, order.currency);
                if payment.status != PaymentStatus::Succeeded
                    || payment.confirmation_id.as_ref() != Some(&order.confirmation_id)
                    || !same
                {
                    findings.wrong(format!("{id} is not what {} paid for", payment.payment_id));
                }
            }
        }
    }
}

/// Each decided payment is what the provider booked; each undecided one has somebody who asks about it.
fn payments(ours: &Books, booked: &[Booking], now: Timestamp, findings: &mut Findings) {
    let booked: HashMap<_, &Booking> = booked.iter().map(|booking| (&booking.provider_key, booking)).collect();
    let confirmations = ours.confirmations.iter().map(|entry| (&entry.confirmation_id, entry.status)).collect();
    let refunds = ours.refunds.iter().map(|refund| (&refund.refund_id, refund)).collect();
    for payment in &ours.payments {
        let (id, booking) = (&payment.payment_id, booked.get(&payment.provider_key));
        if !agrees(payment, &confirmations, &refunds) {
            findings.wrong(format!("{id} is {}, what it is for is not", payment.status.as_str()));
        }
        match (payment.status, booking) {
            (PaymentStatus::Requested, _) => undecided(payment, now, findings),
            (_, None) => findings.wrong(format!("{id} is decided, but not in the provider's books")),
            (status, Some(booking)) => {
                let same = (booking.amount_minor, booking.currency) == (payment.amount_minor, payment.currency);
                let refunds = booking.refund_of.is_some() == payment.refund_id.is_some();
                if status != booking.status || !same || !refunds {
                    findings.wrong(format!("{id} differs from what the provider booked"));
                }
            }
        }
    }
    let charged: HashSet<_> = ours.payments.iter().filter_map(|payment| payment.confirmation_id.as_ref()).collect();
    for ConfirmationEntry { confirmation_id: id, purpose, status, refund_id, .. } in &ours.confirmations {
        let paid = match purpose {
            Purpose::Checkout => charged.contains(id),
            Purpose::Refund => refund_id.is_some(),
        };
        if *status == Status::Committing && !paid {
            findings.wrong(format!("{id} is being confirmed without a payment"));
        }
    }
}

/// Whether what a payment is for has the payment's own state.
fn agrees(
    payment: &PaymentRow,
    confirmations: &HashMap<&ConfirmationId, Status>,
    refunds: &HashMap<&RefundId, &RefundRow>,
) -> bool {
    let (confirmed, refunded) = match payment.status {
        PaymentStatus::Requested => (Status::Committing, RefundStatus::Pending),
        PaymentStatus::Succeeded => (Status::Confirmed, RefundStatus::Succeeded),
        PaymentStatus::Declined => (Status::Declined, RefundStatus::Declined),
    };
    match (&payment.confirmation_id, &payment.refund_id) {
        (Some(id), None) => confirmations.get(id) == Some(&confirmed),
        (None, Some(id)) => refunds.get(id).is_some_and(|refund| {
            let same = (refund.amount_minor, refund.currency) == (payment.amount_minor, payment.currency);
            refund.status == refunded && same
        }),
        (Some(_), Some(_)) | (None, None) => false,
    }
}

fn undecided(payment: &PaymentRow, now: Timestamp, findings: &mut Findings) {
    let id = &payment.payment_id;
    if now >= payment.provider_key_expires_at {
        findings.undecided(format!("{id} needs a person: undecided, and too old to be sent again safely"));
    } else if payment.lease_until.is_some_and(|until| now >= until) {
        findings.undecided(format!("{id} has a stale lease: whoever held it is gone; a running server recovers it"));
    }
}

/// Money that the provider took is money that we asked for.
fn charges(ours: &Books, booked: &[Booking], findings: &mut Findings) {
    let asked: HashSet<_> = ours.payments.iter().map(|payment| &payment.provider_key).collect();
    for booking in booked.iter().filter(|booking| !asked.contains(&booking.provider_key)) {
        findings.wrong(format!("the provider booked {}, which we never asked for", booking.provider_key.as_str()));
    }
}

/// A local operation's claim and answer are one commit, and the answer is kept until its time is over.
fn claims(ours: &Books, findings: &mut Findings) {
    for (actor, operation) in &ours.broken_claims {
        findings.wrong(format!("a claim of {actor} for {} has no answer", operation.as_str()));
    }
}
