//! What each call may do to the shop, and answer: the rules of the design, once more and independently. A call of the
//! provider has two steps, and anything may happen in between.

use super::calls::{Ask, Call, Tag};
use super::local_rules::{dry_run, local, plan};
use super::money_rules::{confirm, decide_charge, decide_refund, dry_run_refund, refund};
use super::read_rules::{read_one, status};
use super::shop::*;

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

pub(super) type Next = (Shop, Step);

pub(super) fn done(shop: &Shop, expect: Expect) -> Vec<Next> {
    vec![(shop.clone(), Step::Answered(expect))]
}

pub(super) fn refused(shop: &Shop, status: u16, code: &'static str) -> Vec<Next> {
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

pub(super) fn decision(shop: &Shop, subject: Subject) -> Option<Expect> {
    match subject {
        Subject::Charge(tag) => shop.offers[&tag].decision.clone(),
        Subject::Refund(tag) if shop.refunds[&tag].two_steps => shop.offers[&tag].decision.clone(),
        Subject::Refund(tag) => shop.claims[&tag].answer.clone(),
    }
}

pub(super) fn asked_at(shop: &Shop, subject: Subject) -> Time {
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

/// What stands behind the call's key: nothing, an answer, or a call that isn't decided.
pub(super) fn known(shop: &Shop, call: &Call, now: Time) -> Result<Option<Claim>, Expect> {
    let Some(claim) = call.key.and_then(|key| shop.claim(call.who, key, now)) else { return Ok(None) };
    if claim.ask != call.ask {
        return Err(Expect::problem(422, "idempotency_key_reused"));
    }
    if is_money(&claim.ask) && claim.answer.is_some() && now >= claim.forgotten_at {
        return Err(Expect::problem(410, "idempotency_key_expired"));
    }
    Ok(Some(claim.clone()))
}

pub(super) fn claim(shop: &mut Shop, call: &Call, answer: Option<Expect>, now: Time) {
    let Some(tag) = call.tag() else { return };
    let kept = if is_money(&call.ask) { KEPT_MONEY } else { KEPT };
    shop.claims.insert(tag, Claim { ask: call.ask.clone(), answer, forgotten_at: now + kept });
}

pub(super) fn in_flight() -> Expect {
    Expect::problem(409, "idempotency_in_flight")
}

/// As the server writes it.
pub fn at(time: Time) -> String {
    chrono::DateTime::from_timestamp_millis(time).unwrap().format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
