//! Confirm: consumes a confirmation, exactly once. The confirmation is its own key and keeps the answer for as long as
//! the order exists; the money moves in the atomic phases of `phases`.

use super::get_confirmation::find_own;
use super::once::{self, IN_FLIGHT_WAIT, Keyed};
use super::phases::{self, Attempt, Begun, Recovery};
use super::propose_checkout::attempt_pending;
use super::{Call, Context, Reply, Settings};
use crate::domain::answer::{Answer, Delivery};
use crate::domain::checkout::Guards;
use crate::domain::confirmation::{Confirmation, Move, Purpose, Status};
use crate::domain::digest::Fingerprint;
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, OrderId, PaymentId};
use crate::domain::operation::Operation;
use crate::domain::order::{Confirmed, OrderStatus};
use crate::domain::payment::{Charge, Payment};
use crate::domain::time::Timestamp;
use crate::failpoints;
use crate::payments::PaymentProvider;
use crate::store::confirmations::Commit;
use crate::store::holds::{self, Release};
use crate::store::{Db, confirmations, orders, payments};

/// A confirm as it was asked for.
#[derive(Clone)]
struct Confirm {
    call: Call,
    id: ConfirmationId,
    guards: Guards,
    keyed: Option<Keyed>,
}

pub async fn confirm_checkout(
    context: &Context,
    call: Call,
    id: ConfirmationId,
    guards: Guards,
) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(Operation::ConfirmCheckout, &[id.as_str()], &guards);
    let keyed = Keyed::of(&call, Operation::ConfirmCheckout, fingerprint);
    let confirm = Confirm { call, id, guards, keyed };

    let lookup = confirm.clone();
    if let Stand::Decided(reply) = context.store.read(move |db, now| stand(db, &lookup, now)).await? {
        return Ok(reply);
    }
    let (provider, settings) = (context.provider.clone(), context.settings);
    let request_id = confirm.call.request_id.clone();
    let begin = move |db: &mut Db, owner: &str, now| begin(db, &confirm, owner, &*provider, settings, now);
    context.tasks.run(phases::run(context.clone(), begin, request_id)).await
}

/// Where the confirmation stands, for this caller and key.
enum Stand {
    Decided(Reply),
    Committing(Recovery),
    Pending(Box<Confirmation>),
}

fn stand(db: &mut Db, confirm: &Confirm, now: Timestamp) -> Result<Stand, Problem> {
    let confirmation = find_own(db, &confirm.call.caller.actor, &confirm.id)?;
    if confirmation.purpose != Purpose::Checkout {
        return Err(Problem::wrong_operation(confirmation.purpose.as_str()));
    }
    let claim = match &confirm.keyed {
        Some(keyed) => once::own_claim(db, keyed, now)?,
        None => None,
    };
    let key_expires_at = claim.as_ref().map(|claim| claim.expires_at);
    match confirmation.status {
        Status::Cancelled => Err(Problem::confirmation_cancelled()),
        Status::Expired => Err(Problem::confirmation_expired()),
        Status::Pending => Ok(Stand::Pending(Box::new(confirmation))),
        Status::Committing => {
            let payment = payments::find_by_confirmation(db, &confirm.id)?
                .ok_or_else(|| Problem::internal("a committing confirmation without a payment"))?;
            let busy = match claim {
                Some(_) => Problem::key_in_flight(IN_FLIGHT_WAIT),
                None => Problem::operation_in_flight(IN_FLIGHT_WAIT),
            };
            Ok(Stand::Committing(Recovery { payment: payment.payment_id, busy, key_expires_at }))
        }
        Status::Confirmed | Status::Declined => {
            let answer = confirmation.decision.ok_or_else(|| Problem::internal("a decision without an answer"))?;
            Ok(Stand::Decided(Reply { answer, delivery: Delivery::Replayed, key_expires_at }))
        }
    }
}

/// Phase 1: claim, guards, `pending → committing`, and a payment under our lease.
fn begin(
    db: &mut Db,
    confirm: &Confirm,
    owner: &str,
    provider: &dyn PaymentProvider,
    settings: Settings,
    now: Timestamp,
) -> Result<Begun, Problem> {
    failpoints::hit(failpoints::BEFORE_CLAIM)?;
    let confirmation = match stand(db, confirm, now)? {
        Stand::Decided(reply) => return Ok(Begun::Decided(reply)),
        Stand::Committing(recovery) => return Ok(Begun::Recover(recovery)),
        Stand::Pending(confirmation) => confirmation,
    };
    if !confirm.guards.hold(&confirmation.plan, &confirmation.plan_digest) {
        return Err(Problem::confirmation_mismatch(confirmation.plan, confirmation.plan_digest));
    }
    let key_expires_at = match &confirm.keyed {
        Some(keyed) => Some(claim(db, keyed, settings, now)?),
        None => None,
    };
    match confirmations::begin_commit(db, &confirm.id, now)? {
        Commit::Begun => {}
        Commit::NotPending => return Err(Problem::confirmation_expired()),
        Commit::AttemptPending => return Err(refuse_second_attempt(db, &confirmation)?),
    }
    let plan = &confirmation.plan;
    if plan.total.is_zero() {
        let answer = settle_succeeded(db, &confirmation, None, now)?
            .ok_or_else(|| Problem::internal(format!("{} was not committing", confirm.id)))?;
        return Ok(Begun::Decided(Reply { answer, delivery: Delivery::Executed, key_expires_at }));
    }
    let charge = Charge { amount: plan.total, method: plan.payment_method.clone() };
    let payment = phases::request(&confirm.id, &charge, owner, provider, settings, now);
    payments::insert(db, &payment)?;
    Ok(Begun::Ask(Attempt { payment, owner: owner.to_owned(), key_expires_at }))
}

/// Where another writer took the key in between, it is this very confirm that is running.
fn claim(db: &mut Db, keyed: &Keyed, settings: Settings, now: Timestamp) -> Result<Timestamp, Problem> {
    let claim = once::claim(db, keyed, settings.retention, now)?;
    claim.map(|claim| claim.expires_at).ok_or_else(|| Problem::key_in_flight(IN_FLIGHT_WAIT))
}

fn refuse_second_attempt(db: &mut Db, confirmation: &Confirmation) -> Result<Problem, Problem> {
    let other = confirmations::find_committing(db, &confirmation.actor, &confirmation.attempt_digest)?;
    Ok(other.map_or_else(|| Problem::overloaded("the other attempt was decided just now"), attempt_pending))
}

/// Phase 3, once the provider has charged (or there was nothing to charge): the order, and the units out of stock.
/// None when the confirmation was decided before.
pub(super) fn settle_succeeded(
    db: &mut Db,
    confirmation: &Confirmation,
    payment: Option<&PaymentId>,
    now: Timestamp,
) -> Result<Option<Answer>, Problem> {
    let (id, plan) = (&confirmation.confirmation_id, &confirmation.plan);
    let order_id = OrderId::generate();
    let confirmed = Confirmed {
        order_id: &order_id,
        confirmation_id: id,
        status: OrderStatus::Confirmed,
        total: plan.total,
        payment: payment.cloned().map(|id| Payment::captured(id, plan.total)),
        plan,
    };
    let answer = Answer::json(200, &confirmed)?;
    if !confirmations::decide(db, id, Move::Confirm, &answer, Some(&order_id))? {
        return Ok(None);
    }
    orders::insert(db, &order_id, confirmation, payment, now)?;
    holds::release(db, std::slice::from_ref(id), Release::Sold)?;
    Ok(Some(answer))
}

/// Phase 3, once the provider has declined: what was held is free again. None when it was decided before.
pub(super) fn settle_declined(
    db: &mut Db,
    confirmation: &Confirmation,
    reason: &str,
    request_id: &str,
) -> Result<Option<Answer>, Problem> {
    let id = &confirmation.confirmation_id;
    let answer = Problem::payment_declined(id.clone(), reason.to_owned()).answer(request_id)?;
    if !confirmations::decide(db, id, Move::Decline, &answer, None)? {
        return Ok(None);
    }
    holds::release(db, std::slice::from_ref(id), Release::Freed)?;
    Ok(Some(answer))
}
