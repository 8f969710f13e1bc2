//! Check: reads our books and the provider's, and says what doesn't add up. It changes nothing, and a server may be
//! running meanwhile.

use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::{ConfirmationId, OrderId, ProductId, RefundId};
use crate::domain::operation::Operation;
use crate::domain::payment::PaymentStatus;
use crate::domain::plan::Plan;
use crate::domain::refund::RefundStatus;
use crate::domain::sums::sums;
use crate::domain::time::Timestamp;
use crate::effects::Reach;
use crate::payments::Booking;
use crate::store;
use crate::store::books::{self, Books, ConfirmationEntry, Held, OrderEntry, Shelf, Uses};
use crate::store::payments::PaymentRow;
use crate::store::refunds::RefundRow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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
    let ours = store::inspect(database, |db| Ok(books::read(db, &Operation::reaching(Reach::Provider), now)?))?;
    let after = provider_books()?;

    let mut findings = Findings::default();
    orders(&ours, &mut findings);
    payments(&ours, &after, now, &mut findings);
    charges(&ours, &before, &mut findings);
    refunds(&ours, &after, &mut findings);
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

/// What was refunded and reserved of an order is the sum of its refunds and of what is offered, and each refund gives
/// back the order's own charge.
fn refunds(ours: &Books, booked: &[Booking], findings: &mut Findings) {
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
    charges_of_refunds(ours, booked, findings);
}

fn charges_of_refunds(ours: &Books, booked: &[Booking], findings: &mut Findings) {
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

/// What was set, less what was sold, is the stock; what is held is what live plans need.
fn stock(ours: &Books, findings: &mut Findings) {
    let lines = |plan: &Plan| -> Vec<(ProductId, i64)> {
        plan.lines.iter().map(|line| (line.product_id.clone(), line.quantity)).collect()
    };
    let sold = sums(ours.orders.iter().flat_map(|order| lines(&order.plan)));
    let held = holds(ours, &ours.stock_held, lines, findings);
    let known: HashSet<&ProductId> = ours.products.iter().map(|shelf| &shelf.product_id).collect();
    for id in sold.keys().chain(held.keys()).filter(|id| !known.contains(id)) {
        findings.wrong(format!("{id} was sold or is held, but there is no such product"));
    }
    for Shelf { product_id: id, stock, held: counted } in &ours.products {
        let of = |sums: &BTreeMap<ProductId, i64>| sums.get(id).copied().unwrap_or(0);
        let (set, sold, held) = (of(&ours.stock_set), of(&sold), of(&held));
        if set - sold != *stock {
            findings.wrong(format!("{id}: {set} units were set and {sold} sold, but {stock} are in stock"));
        }
        if held != *counted {
            findings.wrong(format!("{id}: {counted} units are counted as held, but the holds are {held}"));
        }
    }
}

fn discounts(ours: &Books, findings: &mut Findings) {
    let codes = |plan: &Plan| -> Vec<(String, i64)> {
        plan.discounts.iter().map(|discount| (discount.code.clone(), 1)).collect()
    };
    let used = sums(ours.orders.iter().flat_map(|order| codes(&order.plan)));
    let held = holds(ours, &ours.discounts_held, codes, findings);
    for Uses { code, held: counted_held, used: counted } in &ours.discounts {
        let of = |sums: &BTreeMap<String, i64>| sums.get(code).copied().unwrap_or(0);
        let (used, held) = (of(&used), of(&held));
        if used != *counted {
            findings.wrong(format!("{code}: {counted} uses are counted, but {used} orders have it"));
        }
        if held != *counted_held {
            findings.wrong(format!("{code}: {counted_held} uses are counted as held, but the holds are {held}"));
        }
    }
}

/// Compares what confirmations hold with what their plans need, and returns the sum of the holds.
fn holds<K: Ord + Clone + std::fmt::Display>(
    ours: &Books,
    held: &Held<K>,
    needed: impl Fn(&Plan) -> Vec<(K, i64)>,
    findings: &mut Findings,
) -> BTreeMap<K, i64> {
    let live = ours.live_plans.iter();
    let needed = sums(live.flat_map(|(id, plan)| needed(plan).into_iter().map(|(key, n)| ((id.clone(), key), n))));
    for hold in needed.keys().chain(held.keys()).collect::<BTreeSet<_>>() {
        let of = |sums: &Held<K>| sums.get(hold).copied().unwrap_or(0);
        let ((id, key), needed, held) = (hold, of(&needed), of(held));
        if needed != held {
            findings.wrong(format!("{id} should hold {needed} of {key}, but holds {held}"));
        }
    }
    sums(held.iter().map(|((_, key), n)| (key.clone(), *n)))
}

/// A local operation's claim and answer are one commit, and the answer is kept until its time is over.
fn claims(ours: &Books, findings: &mut Findings) {
    for (actor, operation) in &ours.broken_claims {
        findings.wrong(format!("a claim of {actor} for {} has no answer", operation.as_str()));
    }
}
