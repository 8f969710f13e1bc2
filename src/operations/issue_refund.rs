//! Refund: at most once, never too much. The amount is reserved before the provider is asked. A refund of high stakes,
//! or one that looks like a repeat under a new key, becomes a confirmation instead, and nothing moves until somebody
//! confirms.

use super::get_order::require_visible;
use super::once::{self, Found, IN_FLIGHT_WAIT, Keyed};
use super::phases::{self, Asking, Attempt, Begun, Next, Settled};
use super::propose_checkout::refuse_too_many;
use super::{Call, Context, Reply, expire};
use crate::domain::actor::Caller;
use crate::domain::answer::{Answer, Delivery};
use crate::domain::confirmation::{Confirmation, Made, Offer};
use crate::domain::digest::{Digest, Fingerprint};
use crate::domain::error::Problem;
use crate::domain::ids::{OrderId, RefundId};
use crate::domain::money::Money;
use crate::domain::operation::Operation;
use crate::domain::payment::GiveBack;
use crate::domain::refund::{Because, RefundOffer, RefundPolicy, RefundRequest};
use crate::domain::time::Timestamp;
use crate::failpoints;
use crate::store::claims::{self, Claim};
use crate::store::payments::Subject;
use crate::store::refunds::{self, AnswerOn, RefundRow};
use crate::store::{Db, actors, confirmations, holds, orders, payments};
use std::time::Duration;

/// When to ask again about an equal refund whose outcome is unknown.
pub(super) const LOOKALIKE_WAIT: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Issue {
    call: Call,
    request: RefundRequest,
    keyed: Keyed,
}

pub async fn issue_refund(context: &Context, call: Call, request: RefundRequest) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(Operation::IssueRefund, &[], &request);
    let keyed = Keyed::of(&call, Operation::IssueRefund, fingerprint).ok_or_else(Problem::key_required)?;
    let issue = Issue { call, request, keyed };
    let lookup = issue.clone();
    let found = context.store.read(move |db, now| {
        require_visible(db, &lookup.call.caller, &lookup.request.order_id)?; // also for a replay
        once::find(db, &lookup.keyed, now)
    });
    if let Found::Answered(reply) = found.await? {
        return Ok(reply);
    }
    let request_id = issue.call.request_id.clone();
    let begin = move |db: &mut Db, asking: &Asking, now| begin(db, &issue, asking, now);
    context.tasks.run(phases::run(context.clone(), begin, request_id)).await
}

/// Phase 1: the claim; then a refund that is sent, or a confirmation, or a refusal. The last two are the key's answer.
fn begin(db: &mut Db, issue: &Issue, asking: &Asking, now: Timestamp) -> Result<Begun, Problem> {
    failpoints::hit(failpoints::BEFORE_CLAIM)?;
    let Some(claim) = once::claim(db, &issue.keyed, asking.settings.retention, now)? else {
        return resume(db, &issue.keyed, now);
    };
    let key_expires_at = Some(claim.expires_at);
    let next = match db.savepoint(|db| start(db, issue, &claim, asking, now)) {
        Ok(Started::Sent(attempt)) => Next::Ask(attempt),
        Ok(Started::Offered(answer)) => answered(db, &claim, Ok(answer), issue)?,
        Err(refusal) => answered(db, &claim, Err(refusal), issue)?,
    };
    Ok(Begun { next, key_expires_at })
}

/// The key is taken: by this very request, or `find` refuses.
fn resume(db: &mut Db, keyed: &Keyed, now: Timestamp) -> Result<Begun, Problem> {
    let busy = Problem::key_in_flight(IN_FLIGHT_WAIT);
    match once::find(db, keyed, now)? {
        Found::Nothing => Err(busy),
        Found::Answered(Reply { answer, delivery, key_expires_at }) => {
            Ok(Begun { next: Next::Reply(Settled { answer, delivery }), key_expires_at })
        }
        Found::Open(claim) => {
            let payment = match claim.resource.as_deref().and_then(RefundId::at) {
                Some(refund) => payments::find_by_subject(db, &Subject::Refund(refund))?,
                None => None,
            };
            let payment = payment.ok_or_else(|| Problem::internal("a refund's claim without a payment"))?.payment_id;
            Ok(Begun { next: Next::Recover { payment, busy }, key_expires_at: Some(claim.expires_at) })
        }
    }
}

fn answered(db: &mut Db, claim: &Claim, outcome: Result<Answer, Problem>, issue: &Issue) -> Result<Next, Problem> {
    let answer = once::keep(db, claim, outcome, &issue.call.request_id)?;
    Ok(Next::Reply(Settled { answer, delivery: Delivery::Executed }))
}

enum Started {
    Sent(Attempt),
    Offered(Answer),
}

fn start(db: &mut Db, issue: &Issue, claim: &Claim, asking: &Asking, now: Timestamp) -> Result<Started, Problem> {
    let Issue { call, request, .. } = issue;
    orders::lock(db, &request.order_id)?;
    free_what_is_due(db, &request.order_id, now)?;
    let offer = offer(db, &call.caller, request, asking.settings.refunds, now)?;
    if !offer.takes_confirmation() {
        return send_now(db, issue, claim, asking, now).map(Started::Sent);
    }
    propose(db, issue, offer, asking, now).map(Started::Offered)
}

/// The refund as it would be made now. Shared with the dry run.
pub(super) fn offer(
    db: &mut Db,
    caller: &Caller,
    request: &RefundRequest,
    policy: RefundPolicy,
    now: Timestamp,
) -> Result<RefundOffer, Problem> {
    require_visible(db, caller, &request.order_id)?;
    let money = orders::refundable(db, &request.order_id, now)?;
    let (total, remaining) = (money.total, money.remaining());
    if request.amount.currency() != total.currency() {
        return Err(Problem::refund_in_other_currency(total.currency()));
    }
    let similar = match policy.looks_for_repeats() {
        true => refunds::similar(db, &request.order_id, request.amount, now.before(policy.lookalike_window))?,
        false => Vec::new(),
    };
    let Ok(remaining_refundable) = remaining.minus(request.amount) else {
        return Err(Problem::refund_exceeds_remaining(remaining, similar));
    };
    let mut because = Vec::new();
    if policy.thresholds.of(total.currency()).minor() < total.minor() - remaining_refundable.minor() {
        because.push(Because::Threshold);
    }
    if !similar.is_empty() {
        because.push(Because::LooksLike);
    }
    Ok(RefundOffer { refund: request.clone(), remaining_refundable, because, similar })
}

/// Due confirmations that reserve something of the order expire now, so that nothing depends on the worker.
fn free_what_is_due(db: &mut Db, order: &OrderId, now: Timestamp) -> Result<(), Problem> {
    let due = confirmations::due_reserving(db, order, now)?;
    expire::expire(db, &due, &[], now)?;
    Ok(())
}

/// One step: the refund, whose answer will stand on the claim.
fn send_now(db: &mut Db, issue: &Issue, claim: &Claim, asking: &Asking, now: Timestamp) -> Result<Attempt, Problem> {
    let (order, amount) = (&issue.request.order_id, issue.request.amount);
    if !orders::reserve(db, order, amount)? {
        return Err(moved(order));
    }
    let answer_on = AnswerOn::Claim(claim.idempotency_key.clone());
    let refund = RefundRow::pending(&issue.request, claim.actor_id.clone(), answer_on, now);
    claims::set_resource(db, claim, &refund.refund_id.path())?;
    send(db, &refund, amount, asking, now)
}

/// The offer saw enough: another writer was faster since.
fn moved(order: &OrderId) -> Problem {
    Problem::moved(format!("{order} moved under a refund"))
}

/// Writes down a refund whose amount is reserved, and what the provider is to be asked for it.
pub(super) fn send(
    db: &mut Db,
    refund: &RefundRow,
    amount: Money,
    asking: &Asking,
    now: Timestamp,
) -> Result<Attempt, Problem> {
    let charge = orders::charge_of(db, &refund.order_id)?
        .ok_or_else(|| Problem::internal(format!("{} has no charge", refund.order_id)))?;
    let bytes = asking.provider.refund_request(&GiveBack { amount, charge });
    refunds::insert(db, refund)?;
    phases::request(db, Subject::Refund(refund.refund_id.clone()), amount, bytes, asking, now)
}

/// Two steps: a confirmation, which reserves the amount until it expires.
fn propose(db: &mut Db, issue: &Issue, offer: RefundOffer, asking: &Asking, now: Timestamp) -> Result<Answer, Problem> {
    let (caller, settings) = (&issue.call.caller, asking.settings);
    actors::lock(db, &caller.actor)?; // one at a time counts the actor's pending ones
    refuse_too_many(db, &caller.actor, settings.max_pending, now)?;
    let request = offer.refund.clone();
    let made = Made { warnings: Vec::new(), task: issue.call.task.clone(), now, ttl: settings.confirmation_ttl };
    // Where equal refunds aren't looked for, each is an attempt of its own.
    let attempt = match settings.refunds.looks_for_repeats() {
        true => Digest::of(&("refund", &request.order_id, request.amount)),
        false => Digest::of(&("refund", &caller.actor, issue.keyed.key.as_str())),
    };
    let confirmation = Confirmation::propose(caller, Offer::Refund(Box::new(offer)), request.digest(), attempt, made);
    let id = &confirmation.confirmation_id;
    confirmations::insert(db, &confirmation)?;
    if !holds::hold_refund(db, id, &request.order_id, request.amount)? {
        return Err(moved(&request.order_id));
    }
    Ok(Answer::json(202, &confirmation.view(now))?.at(id.path()))
}
