//! The rules of calls whose money leaves the shop: confirms and refunds.

use super::calls::{Ask, Call, Guard, Tag, Who};
use super::rules::{Next, Step, Subject, at, claim, decide, done, in_flight, known, refused};
use super::shop::*;
use countersign::payments::sandbox::Method;
use std::collections::BTreeSet;

pub(super) fn confirm(shop: &Shop, call: &Call, tag: Tag, guard: Guard, now: Time) -> Vec<Next> {
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

pub(super) fn confirm_pending(shop: &Shop, call: &Call, tag: Tag, guard: Guard, now: Time) -> Vec<Next> {
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

/// Somebody asked before: the caller waits, or goes on in their place.
pub(super) fn recover(shop: &Shop, subject: Subject, busy: Expect) -> Vec<Next> {
    vec![(shop.clone(), Step::Answered(busy)), (shop.clone(), Step::Asked(subject))]
}

pub(super) fn decide_charge(shop: &mut Shop, tag: Tag, now: Time) -> Expect {
    let offer = shop.offers.get_mut(&tag).unwrap();
    let What::Checkout { cart, total } = offer.what.clone() else { unreachable!("a charge of a refund") };
    let declined = cart.method == Method::Declined && total > 0; // a total of zero asks nobody
    let answer = match declined {
        true => Expect::problem(402, "payment_declined"),
        false => Expect::ok(200, vec![("/status", "confirmed".into()), ("/total/amount", usd(total))]),
    };
    offer.status = if declined { Status::Declined } else { Status::Confirmed };
    offer.decision = Some(answer.clone());
    if !declined {
        for (product, quantity) in &cart.lines {
            shop.products[*product].stock -= quantity;
        }
        shop.orders.insert(tag, Order { total, refunded: 0, made_at: now, house: cart.place });
    }
    answer
}

/// One step, two steps, or none.
pub(super) enum Steps {
    One,
    Two(BTreeSet<Tag>),
}

pub(super) fn refund_plan(shop: &Shop, order: Tag, cents: i64, now: Time) -> Result<(Steps, i64), Expect> {
    let (remaining, similar) = (shop.remaining(order, now), shop.similar(order, cents, now));
    if cents > remaining {
        let left = vec![("/remaining_refundable/amount", usd(remaining))];
        return Err(Expect { facts: left, ..Expect::problem(409, "refund_exceeds_remaining") });
    }
    let left = remaining - cents;
    let high = shop.orders[&order].total - left > THRESHOLD;
    Ok((if high || !similar.is_empty() { Steps::Two(similar) } else { Steps::One }, left))
}

pub(super) fn dry_run_refund(shop: &Shop, who: Who, order: Tag, cents: i64, now: Time) -> Expect {
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

pub(super) fn refund(shop: &Shop, call: &Call, order: Tag, cents: i64, now: Time) -> Vec<Next> {
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

pub(super) fn decide_refund(shop: &mut Shop, tag: Tag, now: Time) -> Expect {
    let Refund { order, cents, two_steps, .. } = shop.refunds[&tag];
    let declined = method_of(shop, order) == Method::RefundDeclined;
    shop.refunds.get_mut(&tag).unwrap().status =
        if declined { RefundStatus::Declined } else { RefundStatus::Succeeded(now) };
    if !declined {
        shop.orders.get_mut(&order).unwrap().refunded += cents;
    }
    let left = ("/remaining_refundable/amount", usd(shop.remaining(order, now)));
    let answer = match declined {
        true => Expect { facts: vec![left], ..Expect::problem(402, "refund_declined") },
        false => {
            let status = if two_steps { 200 } else { 201 };
            Expect::ok(status, vec![left, ("/status", "succeeded".into()), ("/amount/amount", usd(cents))])
        }
    };
    match two_steps {
        true => {
            let offer = shop.offers.get_mut(&tag).unwrap();
            offer.status = if declined { Status::Declined } else { Status::Confirmed };
            offer.decision = Some(answer.clone());
        }
        false => shop.claims.get_mut(&tag).unwrap().answer = Some(answer.clone()),
    }
    answer
}

pub(super) fn method_of(shop: &Shop, order: Tag) -> Method {
    match &shop.offers[&order].what {
        What::Checkout { cart, .. } => cart.method,
        What::Refund { order, .. } => method_of(shop, *order),
    }
}
