//! Check: reads our books and the provider's, and says what doesn't add up. It changes nothing, and a server may be
//! running meanwhile.

use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::{ConfirmationId, ProductId};
use crate::domain::operation::Operation;
use crate::domain::payment::PaymentStatus;
use crate::domain::time::Timestamp;
use crate::effects::Reach;
use crate::payments::Booking;
use crate::store;
use crate::store::books::{self, Books, OrderEntry, Shelf, Uses};
use crate::store::payments::PaymentRow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

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
    database: &Path,
    provider_books: impl Fn() -> Result<Vec<Booking>, String>,
    now: Timestamp,
) -> Result<Report, String> {
    let before = provider_books()?;
    let ours = store::inspect(database, |db| Ok(books::read(db, &Operation::reaching(Reach::Provider))?))?;
    let after = provider_books()?;

    let mut findings = Findings::default();
    orders(&ours, &mut findings);
    payments(&ours, &after, now, &mut findings);
    charges(&ours, &before, &mut findings);
    stock(&ours, &mut findings);
    discounts(&ours, &mut findings);
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
    for (id, purpose, status) in &ours.confirmations {
        let order = by_confirmation.get(id);
        let confirmed = *status == Status::Confirmed;
        match order {
            None if confirmed && *purpose == Purpose::Checkout => {
                findings.wrong(format!("{id} is confirmed without an order"));
            }
            Some(order) if !confirmed => {
                findings.wrong(format!("{} was made of {id}, which is {}", order.order_id, status.as_str()));
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
                    || payment.confirmation_id != order.confirmation_id
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
    let confirmations: HashMap<_, Status> = ours.confirmations.iter().map(|(id, _, status)| (id, *status)).collect();
    for payment in &ours.payments {
        let (id, booking) = (&payment.payment_id, booked.get(&payment.provider_key));
        let expected = match payment.status {
            PaymentStatus::Requested => Status::Committing,
            PaymentStatus::Succeeded => Status::Confirmed,
            PaymentStatus::Declined => Status::Declined,
        };
        if confirmations.get(&payment.confirmation_id) != Some(&expected) {
            findings.wrong(format!("{id} is {}, its confirmation is not", payment.status.as_str()));
        }
        match (payment.status, booking) {
            (PaymentStatus::Requested, _) => undecided(payment, now, findings),
            (_, None) => findings.wrong(format!("{id} is decided, but not in the provider's books")),
            (status, Some(booking)) => {
                let same = (booking.amount_minor, booking.currency) == (payment.amount_minor, payment.currency);
                if status != booking.status || !same {
                    findings.wrong(format!("{id} differs from what the provider booked"));
                }
            }
        }
    }
    let paid: HashSet<_> = ours.payments.iter().map(|payment| &payment.confirmation_id).collect();
    for (id, _, status) in &ours.confirmations {
        if *status == Status::Committing && !paid.contains(id) {
            findings.wrong(format!("{id} is being confirmed without a payment"));
        }
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

/// What was set, less what was sold, is the stock; what is held is the sum of live holds.
fn stock(ours: &Books, findings: &mut Findings) {
    let mut sold: BTreeMap<&ProductId, i64> = BTreeMap::new();
    for line in ours.orders.iter().flat_map(|order| &order.plan.lines) {
        *sold.entry(&line.product_id).or_default() += line.quantity;
    }
    for Shelf { product_id: id, stock, held } in &ours.products {
        let set = ours.stock_set.get(id).copied().unwrap_or(0);
        let sold = sold.get(id).copied().unwrap_or(0);
        if set - sold != *stock {
            findings.wrong(format!("{id}: {set} units were set and {sold} sold, but {stock} are in stock"));
        }
        let holds = ours.stock_held.get(id).copied().unwrap_or(0);
        if holds != *held {
            findings.wrong(format!("{id}: {held} units are counted as held, but the holds are {holds}"));
        }
    }
    for id in &ours.dead_holders {
        findings.wrong(format!("{id} holds something, although it is neither pending nor committing"));
    }
}

fn discounts(ours: &Books, findings: &mut Findings) {
    let mut used: HashMap<&str, i64> = HashMap::new();
    for discount in ours.orders.iter().flat_map(|order| &order.plan.discounts) {
        *used.entry(discount.code.as_str()).or_default() += 1;
    }
    for Uses { code, held, used: counted } in &ours.discounts {
        let used = used.get(code.as_str()).copied().unwrap_or(0);
        if used != *counted {
            findings.wrong(format!("{code}: {counted} uses are counted, but {used} orders have it"));
        }
        let holds = ours.discounts_held.get(code).copied().unwrap_or(0);
        if holds != *held {
            findings.wrong(format!("{code}: {held} uses are counted as held, but the holds are {holds}"));
        }
    }
}

/// A local operation's claim and answer are one commit.
fn claims(ours: &Books, findings: &mut Findings) {
    for (actor, operation) in &ours.unanswered_claims {
        findings.wrong(format!("a claim of {actor} for {} has no answer", operation.as_str()));
    }
}
