//! What each call may do to the shop, and answer: the rules of the design, once more and independently. A call of the
//! provider has two steps, and anything may happen in between.

use super::calls::{Ask, Call, Cart, Guard, Key, Pay, Tag, Update, Who};
use super::shop::*;
use std::collections::BTreeSet;

/// What the provider is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The charge of a checkout's confirmation.
    Charge(Tag),
    Refund(Tag),
}

/// How far a call has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Answered(Expect),
    /// The provider's word is awaited.
    Asked(Subject),
}

type Next = (Shop, Step);

fn done(shop: &Shop, expect: Expect) -> Vec<Next> {
    vec![(shop.clone(), Step::Answered(expect))]
}

fn refused(shop: &Shop, status: u16, code: &'static str) -> Vec<Next> {
    done(shop, Expect::problem(status, code))
}

/// The first step of a call, in every way in which it may go.
pub fn begin(shop: &Shop, call: &Call, now: Time) -> Vec<Next> {
    let who = call.who;
    if !who.may(call.ask.operation()) {
        return refused(shop, 403, "insufficient_scope");
    }
    match &call.ask {
        Ask::Propose(_) | Ask::Update { .. } | Ask::Cancel(_) => local(shop, call, now),
        Ask::Address { order, .. } | Ask::Refund { order, .. } if !shop.sees(who, *order) => {
            refused(shop, 404, "not_found")
        }
        Ask::Address { .. } => local(shop, call, now),
        Ask::Refund { order, cents } => refund(shop, call, *order, *cents, now),
        Ask::Confirm(tag, guard) | Ask::ConfirmRefund(tag, guard) => confirm(shop, call, *tag, *guard, now),
        Ask::DryRun(cart) => {
            done(shop, plan(shop, cart, now).map_or_else(|no| no, |total| dry_run(shop, who, cart, total, now)))
        }
        Ask::DryRunRefund { order, cents } => done(shop, dry_run_refund(shop, who, *order, *cents, now)),
        Ask::Status(key) => status(shop, who, *key, now),
        // What was counted for a task is told by the tests of tasks.
        Ask::Task => [refused(shop, 404, "not_found"), done(shop, Expect::ok(200, Vec::new()))].concat(),
        read => done(shop, read_one(shop, who, read, now)),
    }
}

/// The second step: the provider says yes or no, or its word is lost and the payment stays undecided.
pub fn finish(shop: &Shop, subject: Subject, now: Time) -> Vec<Next> {
    if let Some(known) = decision(shop, subject) {
        return done(shop, known.by_anyone());
    }
    let (decided, answer) = decide(shop, subject, now);
    let undecided = [(503, "outcome_unknown"), (409, "payment_needs_review")];
    let too_old = now >= asked_at(shop, subject) + PROVIDER_KEEPS;
    let undecided = undecided[..1 + usize::from(too_old)].iter();
    let undecided = undecided.map(|(status, code)| (shop.clone(), Step::Answered(Expect::problem(*status, code))));
    undecided.chain([(decided, Step::Answered(answer.by_anyone()))]).collect()
}

fn decision(shop: &Shop, subject: Subject) -> Option<Expect> {
    match subject {
        Subject::Charge(tag) => shop.offers[&tag].decision.clone(),
        Subject::Refund(tag) if shop.refunds[&tag].two_steps => shop.offers[&tag].decision.clone(),
        Subject::Refund(tag) => shop.claims[&tag].answer.clone(),
    }
}

fn asked_at(shop: &Shop, subject: Subject) -> Time {
    match subject {
        Subject::Charge(tag) => shop.offers[&tag].asked_at,
        Subject::Refund(tag) => shop.refunds[&tag].asked_at,
    }
}

/// Whatever is undecided.
pub fn undecided(shop: &Shop) -> Vec<Subject> {
    let charges = shop.offers.iter().filter(|(_, offer)| offer.status == Status::Committing);
    let charges = charges.filter(|(_, offer)| matches!(offer.what, What::Checkout { .. }));
    let refunds = shop.refunds.iter().filter(|(_, refund)| refund.status == RefundStatus::Pending);
    let charges = charges.map(|(tag, _)| Subject::Charge(*tag));
    charges.chain(refunds.map(|(tag, _)| Subject::Refund(*tag))).collect()
}

/// The provider's decision, written down.
pub fn decide(shop: &Shop, subject: Subject, now: Time) -> (Shop, Expect) {
    let mut shop = shop.clone();
    let answer = match subject {
        Subject::Charge(tag) => decide_charge(&mut shop, tag, now),
        Subject::Refund(tag) => decide_refund(&mut shop, tag, now),
    };
    (shop, answer)
}

fn method_of(shop: &Shop, order: Tag) -> Pay {
    match &shop.offers[&order].what {
        What::Checkout { cart, .. } => cart.method,
        What::Refund { order, .. } => method_of(shop, *order),
    }
}

fn decide_charge(shop: &mut Shop, tag: Tag, now: Time) -> Expect {
    let offer = shop.offers.get_mut(&tag).unwrap();
    let What::Checkout { cart, total } = offer.what.clone() else { unreachable!("a charge of a refund") };
    let no = cart.method == Pay::Declined && total > 0; // a total of zero asks nobody
    let answer = match no {
        true => Expect::problem(402, "payment_declined"),
        false => Expect::ok(200, vec![("/status", "confirmed".into()), ("/total/amount", usd(total))]),
    };
    offer.status = if no { Status::Declined } else { Status::Confirmed };
    offer.decision = Some(answer.clone());
    if !no {
        for (product, quantity) in &cart.lines {
            shop.products[*product].stock -= quantity;
        }
        shop.orders.insert(tag, Order { total, refunded: 0, made_at: now, house: cart.place });
    }
    answer
}

fn decide_refund(shop: &mut Shop, tag: Tag, now: Time) -> Expect {
    let Refund { order, cents, two_steps, .. } = shop.refunds[&tag];
    let no = method_of(shop, order) == Pay::RefundDeclined;
    shop.refunds.get_mut(&tag).unwrap().status = if no { RefundStatus::Declined } else { RefundStatus::Succeeded(now) };
    if !no {
        shop.orders.get_mut(&order).unwrap().refunded += cents;
    }
    let left = ("/remaining_refundable/amount", usd(shop.remaining(order, now)));
    let answer = match no {
        true => Expect { facts: vec![left], ..Expect::problem(402, "refund_declined") },
        false => {
            let status = if two_steps { 200 } else { 201 };
            Expect::ok(status, vec![left, ("/status", "succeeded".into()), ("/amount/amount", usd(cents))])
        }
    };
    match two_steps {
        true => {
            let offer = shop.offers.get_mut(&tag).unwrap();
            offer.status = if no { Status::Declined } else { Status::Confirmed };
            offer.decision = Some(answer.clone());
        }
        false => shop.claims.get_mut(&tag).unwrap().answer = Some(answer.clone()),
    }
    answer
}

/// What stands behind the call's key: nothing, an answer, or a call that isn't decided.
fn known(shop: &Shop, call: &Call, now: Time) -> Result<Option<Claim>, Expect> {
    let Some(claim) = call.key.and_then(|key| shop.claim(call.who, key, now)) else { return Ok(None) };
    if claim.ask != call.ask {
        return Err(Expect::problem(422, "idempotency_key_reused"));
    }
    if is_money(&claim.ask) && claim.answer.is_some() && now >= claim.forgotten_at {
        return Err(Expect::problem(410, "idempotency_key_expired"));
    }
    Ok(Some(claim.clone()))
}

fn claim(shop: &mut Shop, call: &Call, answer: Option<Expect>, now: Time) {
    let Some(tag) = call.tag() else { return };
    let kept = if is_money(&call.ask) { KEPT_MONEY } else { KEPT };
    shop.claims.insert(tag, Claim { ask: call.ask.clone(), answer, forgotten_at: now + kept });
}

/// Claim, effect and answer at once.
fn local(shop: &Shop, call: &Call, now: Time) -> Vec<Next> {
    match known(shop, call, now) {
        Err(refusal) => return done(shop, refusal),
        Ok(Some(claim)) => return done(shop, claim.answer.map_or_else(in_flight, |answer| answer.replayed())),
        Ok(None) => {}
    }
    let mut after = shop.clone();
    let effect = match &call.ask {
        Ask::Propose(cart) => propose(&mut after, call, cart, now),
        Ask::Cancel(tag) => cancel(&mut after, call.who, *tag, now),
        Ask::Update { atomic, updates } => update(&mut after, *atomic, updates, now),
        Ask::Address { order, house, moves } => return address(shop, call, *order, *house, *moves, now),
        other => unreachable!("{other:?} is not local"),
    };
    match effect {
        Ok(answer) => {
            claim(&mut after, call, Some(answer.clone()), now);
            done(&after, answer)
        }
        // A refusal that isn't the key's answer leaves no trace.
        Err(refusal) => done(shop, refusal),
    }
}

fn in_flight() -> Expect {
    Expect::problem(409, "idempotency_in_flight")
}

/// The total, or why there is none.
fn plan(shop: &Shop, cart: &Cart, now: Time) -> Result<i64, Expect> {
    if cart.lines.iter().any(|(product, quantity)| *quantity > shop.available(*product, now)) {
        return Err(Expect::problem(409, "insufficient_stock"));
    }
    if cart.discount && shop.uses(now) >= shop.use_limit {
        return Err(Expect::problem(409, "discount_unavailable"));
    }
    let subtotal: i64 = cart.lines.iter().map(|(product, quantity)| shop.products[*product].price * quantity).sum();
    let off = if cart.discount { DISCOUNT.min(subtotal) } else { 0 };
    let total = subtotal - off + if cart.pickup { 0 } else { SHIPPING };
    match cart.expected_total {
        Some(expected) if expected != total => Err(Expect::problem(409, "plan_changed")),
        _ => Ok(total),
    }
}

fn warnings(shop: &Shop, who: Who, cart: &Cart, now: Time) -> String {
    usize::from(shop.ordered_lately(who, cart, now)).to_string()
}

fn dry_run(shop: &Shop, who: Who, cart: &Cart, total: i64, now: Time) -> Expect {
    Expect::ok(200, vec![("/plan/total/amount", usd(total)), ("/warnings", warnings(shop, who, cart, now))])
}

/// Ok: the key's answer. Err: not stored.
fn propose(shop: &mut Shop, call: &Call, cart: &Cart, now: Time) -> Result<Expect, Expect> {
    let who = call.who;
    let what = |total| What::Checkout { cart: cart.clone(), total };
    if shop.is_attempting(who, &what(0)) {
        return Err(Expect::problem(409, "attempt_pending"));
    }
    if shop.pending(who, now) >= MAX_PENDING {
        return Err(Expect::problem(409, "too_many_pending"));
    }
    let total = match plan(shop, cart, now) {
        Ok(total) => total,
        Err(refusal) => return Ok(refusal),
    };
    let warnings = warnings(shop, who, cart, now);
    let offer =
        Offer { what: what(total), status: Status::Pending, expires_at: now + TTL, asked_at: now, decision: None };
    shop.offers.insert(call.tag().expect("proposals have keys"), offer);
    let facts = vec![
        ("/status", "pending".into()),
        ("/total/amount", usd(total)),
        ("/expires_at", at(now + TTL)),
        ("/warnings", warnings),
    ];
    Ok(Expect::ok(201, facts))
}

/// As the server writes it.
pub fn at(time: Time) -> String {
    chrono::DateTime::from_timestamp_millis(time).unwrap().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn cancel(shop: &mut Shop, who: Who, tag: Tag, now: Time) -> Result<Expect, Expect> {
    let offer = shop.offers.get_mut(&tag).filter(|_| tag.0 == who);
    let Some(offer) = offer else { return Err(Expect::problem(404, "not_found")) };
    match offer.status {
        Status::Pending if now < offer.expires_at => {
            offer.status = Status::Cancelled;
            Ok(Expect::ok(204, Vec::new()))
        }
        Status::Pending | Status::Cancelled => Err(Expect::problem(404, "nothing_to_cancel")),
        Status::Committing if now >= offer.asked_at + PROVIDER_KEEPS => {
            Err(Expect::problem(409, "payment_needs_review"))
        }
        Status::Committing => Err(Expect::problem(409, "operation_in_flight")),
        Status::Confirmed | Status::Declined => Err(Expect::problem(409, "confirmation_decided")),
    }
}

fn update(shop: &mut Shop, atomic: bool, updates: &[Update], now: Time) -> Result<Expect, Expect> {
    let before = shop.clone();
    let mut words = Vec::new();
    for Update { product, stock, price, if_version } in updates {
        let (held, found) = (before.held(*product, now), &mut shop.products[*product]);
        let after = Product {
            stock: stock.unwrap_or(found.stock),
            price: price.unwrap_or(found.price),
            version: found.version + 1,
        };
        words.push(match if_version {
            Some(version) if *version != found.version => "refused",
            _ if after.stock < held => "refused",
            _ if (after.stock, after.price) == (found.stock, found.price) => "unchanged",
            _ => {
                *found = after;
                "updated"
            }
        });
    }
    let stopped = atomic && words.contains(&"refused");
    if stopped {
        *shop = before;
        words.iter_mut().filter(|word| **word != "refused").for_each(|word| *word = "not_written");
    }
    let pointers = ["/results/0/status", "/results/1/status"];
    let facts = pointers.into_iter().zip(words.into_iter().map(str::to_owned)).collect();
    Ok(match stopped {
        true => Expect { facts, ..Expect::problem(409, "batch_stopped") },
        false => Expect::ok(200, facts),
    })
}

/// The delivery window starts days after the order; between the two either answer is right.
fn address(shop: &Shop, call: &Call, order: Tag, house: u8, moves: bool, now: Time) -> Vec<Next> {
    let found = &shop.orders[&order];
    let pickup = matches!(&shop.offers[&order].what, What::Checkout { cart, .. } if cart.pickup);
    let started = Expect::problem(409, "delivery_started");
    if pickup {
        return done(shop, started);
    }
    if now > found.made_at + 7 * DAY {
        return done(shop, started); // three business days, a weekend and a day to spare
    }
    let mut after = shop.clone();
    let answer = match moves {
        true => Expect::problem(409, "address_changes_price"),
        false => {
            after.orders.get_mut(&order).unwrap().house = house;
            let answer = Expect::ok(200, vec![("/shipping_address/line2", format!("House {house}"))]);
            claim(&mut after, call, Some(answer.clone()), now);
            answer
        }
    };
    let mut ways = done(&after, answer);
    if now > found.made_at + 2 * DAY {
        ways.extend(done(shop, started));
    }
    ways
}

/// One step, two steps, or none.
enum Steps {
    One,
    Two(BTreeSet<Tag>),
}

fn refund_plan(shop: &Shop, order: Tag, cents: i64, now: Time) -> Result<(Steps, i64), Expect> {
    let (remaining, similar) = (shop.remaining(order, now), shop.similar(order, cents, now));
    if cents > remaining {
        let left = vec![("/remaining_refundable/amount", usd(remaining))];
        return Err(Expect { facts: left, ..Expect::problem(409, "refund_exceeds_remaining") });
    }
    let left = remaining - cents;
    let high = shop.orders[&order].total - left > THRESHOLD;
    Ok((if high || !similar.is_empty() { Steps::Two(similar) } else { Steps::One }, left))
}

fn dry_run_refund(shop: &Shop, who: Who, order: Tag, cents: i64, now: Time) -> Expect {
    if !shop.sees(who, order) {
        return Expect::problem(404, "not_found");
    }
    match refund_plan(shop, order, cents, now) {
        Err(refusal) => refusal,
        Ok((steps, left)) => {
            let two = matches!(steps, Steps::Two(_)).to_string();
            Expect::ok(200, vec![("/confirmation_required", two), ("/remaining_refundable/amount", usd(left))])
        }
    }
}

fn refund(shop: &Shop, call: &Call, order: Tag, cents: i64, now: Time) -> Vec<Next> {
    let tag = call.tag().expect("refunds have keys");
    match known(shop, call, now) {
        Err(refusal) => return done(shop, refusal),
        Ok(Some(Claim { answer: Some(answer), .. })) => return done(shop, answer.replayed()),
        Ok(Some(_)) => return recover(shop, Subject::Refund(tag), in_flight()),
        Ok(None) => {}
    }
    let mut after = shop.clone();
    match refund_plan(shop, order, cents, now) {
        Err(refusal) => {
            claim(&mut after, call, Some(refusal.clone()), now);
            done(&after, refusal)
        }
        Ok((Steps::One, _)) => {
            claim(&mut after, call, None, now);
            after
                .refunds
                .insert(tag, Refund { order, cents, status: RefundStatus::Pending, two_steps: false, asked_at: now });
            vec![(after, Step::Asked(Subject::Refund(tag)))]
        }
        Ok((Steps::Two(_), _)) if shop.pending(call.who, now) >= MAX_PENDING => refused(shop, 409, "too_many_pending"),
        Ok((Steps::Two(similar), left)) => {
            let facts = vec![
                ("/status", "pending".into()),
                ("/amount/amount", usd(cents)),
                ("/remaining_refundable/amount", usd(left)),
                ("/similar", similar.len().to_string()),
                ("/expires_at", at(now + TTL)),
            ];
            let answer = Expect::ok(202, facts);
            claim(&mut after, call, Some(answer.clone()), now);
            let what = What::Refund { order, cents, similar };
            let offer = Offer { what, status: Status::Pending, expires_at: now + TTL, asked_at: now, decision: None };
            after.offers.insert(tag, offer);
            done(&after, answer)
        }
    }
}

/// Somebody asked before: the caller waits, or goes on in their place.
fn recover(shop: &Shop, subject: Subject, busy: Expect) -> Vec<Next> {
    vec![(shop.clone(), Step::Answered(busy)), (shop.clone(), Step::Asked(subject))]
}

fn confirm(shop: &Shop, call: &Call, tag: Tag, guard: Guard, now: Time) -> Vec<Next> {
    let Some(offer) = shop.offers.get(&tag).filter(|_| tag.0 == call.who) else {
        return refused(shop, 404, "not_found");
    };
    let checkout = matches!(offer.what, What::Checkout { .. });
    if checkout != matches!(call.ask, Ask::Confirm(..)) {
        return refused(shop, 409, "wrong_operation");
    }
    let known = match known(shop, call, now) {
        Err(refusal) => return done(shop, refusal),
        Ok(known) => known,
    };
    let subject = if checkout { Subject::Charge(tag) } else { Subject::Refund(tag) };
    match offer.status {
        Status::Cancelled => refused(shop, 410, "confirmation_cancelled"),
        Status::Confirmed | Status::Declined => done(shop, offer.decision.as_ref().expect("decided").replayed()),
        Status::Committing => {
            let busy = if known.is_some() { in_flight() } else { Expect::problem(409, "operation_in_flight") };
            recover(shop, subject, busy)
        }
        Status::Pending => confirm_pending(shop, call, tag, guard, now),
    }
}

fn confirm_pending(shop: &Shop, call: &Call, tag: Tag, guard: Guard, now: Time) -> Vec<Next> {
    let offer = &shop.offers[&tag];
    let mismatch = matches!(guard, Guard::Amount(cents) if cents != offer.amount());
    let expired = now >= offer.expires_at;
    let mut ways = Vec::new();
    if mismatch {
        ways.extend(refused(shop, 409, "confirmation_mismatch"));
    }
    if expired {
        // Whether the worker has written it down decides which comes first.
        ways.extend(refused(shop, 410, "confirmation_expired"));
    }
    if mismatch || expired {
        return ways;
    }
    if shop.is_attempting(call.who, &offer.what) {
        return refused(shop, 409, "attempt_pending");
    }
    if let What::Refund { order, cents, similar } = &offer.what {
        let equal = |refund: &&Refund| (refund.order, refund.cents) == (*order, *cents);
        if shop.refunds.values().filter(equal).any(|refund| refund.status == RefundStatus::Pending) {
            return refused(shop, 409, "attempt_pending");
        }
        if !shop.similar(*order, *cents, now).is_subset(similar) {
            return refused(shop, 409, "equal_refund_made");
        }
    }
    let mut after = shop.clone();
    claim(&mut after, call, None, now);
    let offer = after.offers.get_mut(&tag).unwrap();
    (offer.status, offer.asked_at) = (Status::Committing, now);
    let what = offer.what.clone();
    match &what {
        What::Checkout { total: 0, .. } => {
            let (after, answer) = decide(&after, Subject::Charge(tag), now);
            done(&after, answer)
        }
        What::Checkout { .. } => vec![(after, Step::Asked(Subject::Charge(tag)))],
        What::Refund { order, cents, .. } => {
            let refund =
                Refund { order: *order, cents: *cents, status: RefundStatus::Pending, two_steps: true, asked_at: now };
            after.refunds.insert(tag, refund);
            vec![(after, Step::Asked(Subject::Refund(tag)))]
        }
    }
}

fn status(shop: &Shop, who: Who, key: Key, now: Time) -> Vec<Next> {
    let Some(claim) = shop.claim(who, key, now) else { return refused(shop, 404, "not_found") };
    let answer = match &claim.ask {
        Ask::Confirm(tag, _) | Ask::ConfirmRefund(tag, _) => shop.offers[tag].decision.clone(),
        _ if is_money(&claim.ask) && claim.answer.is_some() && now >= claim.forgotten_at => {
            return refused(shop, 410, "idempotency_key_expired");
        }
        _ => claim.answer.clone(),
    };
    let is = |state: &str, http: String| {
        done(shop, Expect::ok(200, vec![("/status", state.to_owned()), ("/http_status", http)]))
    };
    match answer {
        Some(answer) => is("completed", answer.status.to_string()),
        // Which of the two is the lease's word.
        None => [is("in_flight", String::new()), is("unknown", String::new())].concat(),
    }
}

fn read_one(shop: &Shop, who: Who, ask: &Ask, now: Time) -> Expect {
    let missing = || Expect::problem(404, "not_found");
    match ask {
        Ask::GetConfirmation(tag) => match shop.offers.get(tag).filter(|_| tag.0 == who) {
            None => missing(),
            Some(offer) => Expect::ok(200, vec![("/status", word(offer, now).into())]),
        },
        Ask::GetOrder(tag) if shop.sees(who, *tag) => {
            let Order { total, refunded, house, .. } = shop.orders[tag];
            let status = match refunded {
                0 => "confirmed",
                all if all == total => "refunded",
                _ => "partially_refunded",
            };
            let left = usd(shop.remaining(*tag, now));
            let facts = vec![
                ("/status", status.into()),
                ("/total/amount", usd(total)),
                ("/refunded/amount", usd(refunded)),
                ("/shipping_address/line2", format!("House {house}")),
                ("/remaining_refundable/amount", left),
            ];
            Expect::ok(200, facts)
        }
        Ask::GetRefund(tag) => match shop.refunds.get(tag) {
            None => missing(),
            Some(refund) => {
                let status = match refund.status {
                    RefundStatus::Pending => "pending",
                    RefundStatus::Succeeded(_) => "succeeded",
                    RefundStatus::Declined => "declined",
                };
                Expect::ok(200, vec![("/status", status.into()), ("/amount/amount", usd(refund.cents))])
            }
        },
        Ask::GetProduct(index) => {
            let Product { price, version, .. } = shop.products[*index];
            let facts = vec![
                ("/available", shop.available(*index, now).to_string()),
                ("/price/amount", usd(price)),
                ("/version", version.to_string()),
            ];
            Expect::ok(200, facts)
        }
        Ask::BatchGet => {
            let of = |index| shop.available(index, now).to_string();
            Expect::ok(200, vec![("/products/0/available", of(0)), ("/products/1/available", of(1))])
        }
        Ask::Search => Expect::ok(200, vec![("/products", "2".into())]),
        Ask::BatchSearch => Expect::ok(200, vec![("/results/0/products", "2".into())]),
        Ask::ListOrders | Ask::ListConfirmations => Expect::ok(200, Vec::new()),
        _ => missing(),
    }
}

fn word(offer: &Offer, now: Time) -> &'static str {
    match offer.status {
        Status::Pending if now >= offer.expires_at => "expired",
        Status::Pending => "pending",
        Status::Committing => "committing",
        Status::Confirmed => "confirmed",
        Status::Declined => "declined",
        Status::Cancelled => "cancelled",
    }
}
