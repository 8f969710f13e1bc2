//! Propose: a firm, single-use offer. Price, stock and discount uses are held until it expires; nothing is charged.

use super::once::{Keyed, once};
use super::{Call, Context, Reply, Settings, expire};
use crate::domain::answer::Answer;
use crate::domain::checkout::CheckoutRequest;
use crate::domain::confirmation::{Confirmation, Made, Offer};
use crate::domain::digest::{Digest, Fingerprint};
use crate::domain::error::{Problem, UnavailableReason};
use crate::domain::ids::ActorId;
use crate::domain::operation::Operation;
use crate::domain::plan::{Plan, Warning, WarningCode, plan};
use crate::domain::time::Timestamp;
use crate::store::{Db, actors, catalogue, confirmations, holds, orders};
use std::time::Duration;

/// How long an equal order counts as recent.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);
/// When to ask again about an attempt whose outcome is unknown.
const ATTEMPT_WAIT: Duration = Duration::from_secs(2);

pub async fn propose_checkout(context: &Context, call: Call, request: CheckoutRequest) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(Operation::ProposeCheckout, &[], &request);
    let keyed = Keyed::of(&call, Operation::ProposeCheckout, fingerprint);
    let (proposer, settings) = (call.clone(), context.settings);
    let effect = move |db: &mut Db, now| propose(db, &proposer, &request, settings, now);
    once(context, call, keyed, effect).await
}

fn propose(
    db: &mut Db,
    call: &Call,
    request: &CheckoutRequest,
    settings: Settings,
    now: Timestamp,
) -> Result<Answer, Problem> {
    let actor = &call.caller.actor;
    let attempt_digest = request.attempt_digest();
    actors::lock(db, actor)?; // one at a time counts the actor's pending ones
    free_what_is_due(db, request, now)?;
    refuse_pending_attempt(db, actor, &attempt_digest)?;
    refuse_too_many(db, actor, settings.max_pending, now)?;
    let (plan, plan_digest) = current_plan(db, request, now)?;

    let made = Made {
        warnings: warnings(db, actor, &attempt_digest, now)?,
        task: call.task.clone(),
        now,
        ttl: settings.confirmation_ttl,
    };
    let offer = Offer::Checkout(Box::new(plan));
    let confirmation = Confirmation::propose(&call.caller, offer, plan_digest, attempt_digest, made);
    confirmations::insert(db, &confirmation)?;
    hold(db, &confirmation, request, now)?;
    let location = confirmation.confirmation_id.path();
    Ok(Answer::json(201, &confirmation.view(now))?.at(location))
}

/// The plan as it is now, if it is the one that the caller expects.
pub(super) fn current_plan(db: &mut Db, request: &CheckoutRequest, now: Timestamp) -> Result<(Plan, Digest), Problem> {
    let plan = plan(request, &catalogue::for_checkout(db, request, now)?, now)?;
    let digest = plan.digest();
    if !request.guards.hold(plan.total, &digest) {
        return Err(Problem::plan_changed(plan, digest));
    }
    Ok((plan, digest))
}

/// A replayed plan under a new key is the commonest duplicate that keys can't see.
pub(super) fn warnings(
    db: &mut Db,
    actor: &ActorId,
    attempt: &Digest,
    now: Timestamp,
) -> Result<Vec<Warning>, Problem> {
    let recent = orders::find_equal(db, actor, attempt, now.before(RECENT))?;
    let warning = |order_id| Warning {
        code: WarningCode::LooksLikeRecentOrder,
        detail: format!(
            "You ordered the same products to the same address with the same payment method in the last 24 hours \
             ({order_id}). Make sure that a second order is wanted."
        ),
        order_id,
    };
    Ok(recent.map(warning).into_iter().collect())
}

/// Due confirmations that hold what is needed expire now, so that nothing depends on the worker.
fn free_what_is_due(db: &mut Db, request: &CheckoutRequest, now: Timestamp) -> Result<(), Problem> {
    let products = request.product_ids();
    let due = confirmations::due_holding(db, &products, &request.discount_codes, now)?;
    expire::expire(db, &due, &products, now)?;
    Ok(())
}

/// A courtesy: where it has to hold is the confirm's first phase.
fn refuse_pending_attempt(db: &mut Db, actor: &ActorId, attempt: &Digest) -> Result<(), Problem> {
    let Some(other) = confirmations::find_committing(db, actor, attempt)? else { return Ok(()) };
    confirmations::find(db, &other)?.map_or(Ok(()), |other| Err(attempt_pending(&other)))
}

pub(super) fn attempt_pending(other: &Confirmation) -> Problem {
    Problem::attempt_pending(other.confirmation_id.clone(), &other.confirm_path(), ATTEMPT_WAIT)
}

pub(super) fn refuse_too_many(db: &mut Db, actor: &ActorId, limit: i64, now: Timestamp) -> Result<(), Problem> {
    let pending = confirmations::pending_of(db, actor, now, limit)?;
    let Some((_, first_deadline)) = pending.first().filter(|_| pending.len() as i64 >= limit) else { return Ok(()) };
    let wait = first_deadline.until(now);
    Err(Problem::too_many_pending(pending.into_iter().map(|(id, _)| id).collect(), wait))
}

/// Takes the locks in one order: products by id, then discount codes by name. The plan saw enough of each; where
/// another writer was faster, its numbers are the answer.
fn hold(db: &mut Db, confirmation: &Confirmation, request: &CheckoutRequest, now: Timestamp) -> Result<(), Problem> {
    let id = &confirmation.confirmation_id;
    for line in request.lines_by_product() {
        if !holds::hold_stock(db, id, &line.product_id, line.quantity)? {
            current_plan(db, request, now)?;
            return Err(Problem::moved(format!("stock of {} moved under a plan", line.product_id)));
        }
    }
    let mut codes = request.discount_codes.clone();
    codes.sort();
    for code in codes {
        if !holds::hold_discount(db, id, &code)? {
            return Err(Problem::discount_unavailable(&code, UnavailableReason::UsedUp));
        }
    }
    Ok(())
}
