//! Confirm: consumes a confirmation, exactly once. The confirmation is its own key and keeps the answer for as long as
//! the order exists; the money moves in the atomic phases of `phases`.

use super::get_confirmation::find_own;
use super::once::{self, IN_FLIGHT_WAIT, Keyed};
use super::phases::{self, Attempt, Begun, Next, Settled};
use super::propose_checkout::attempt_pending;
use super::settle_checkout::settle_checkout;
use super::{Call, Context, Reply, Settings};
use crate::domain::answer::{Answer, Delivery};
use crate::domain::checkout::Guards;
use crate::domain::confirmation::{Confirmation, Purpose, Status};
use crate::domain::digest::Fingerprint;
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, PaymentId};
use crate::domain::operation::Operation;
use crate::domain::payment::{Charge, Decision};
use crate::domain::time::Timestamp;
use crate::failpoints;
use crate::payments::PaymentProvider;
use crate::store::confirmations::Commit;
use crate::store::{Db, confirmations, payments};

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
    let keyed = keyed.map(|keyed| keyed.about(id.path()));
    let confirm = Confirm { call, id, guards, keyed };

    let lookup = confirm.clone();
    if let Some(reply) = context.store.read(move |db, now| replay(db, &lookup, now)).await? {
        return Ok(reply);
    }
    let (provider, settings) = (context.provider.clone(), context.settings);
    let request_id = confirm.call.request_id.clone();
    let begin = move |db: &mut Db, owner: &str, now| begin(db, &confirm, owner, &*provider, settings, now);
    context.tasks.run(phases::run(context.clone(), begin, request_id)).await
}

/// What a confirmation allows this confirm to do.
enum State {
    Decided(Answer),
    /// Sent to the provider; `busy` is the answer while another call is on it.
    Committing {
        payment: PaymentId,
        busy: Problem,
    },
    Pending(Box<Confirmation>),
}

/// The state, and when the confirm's key will be forgotten if it has been claimed already.
fn find_state(db: &mut Db, confirm: &Confirm, now: Timestamp) -> Result<(State, Option<Timestamp>), Problem> {
    let confirmation = find_own(db, &confirm.call.caller.actor, &confirm.id)?;
    if confirmation.purpose != Purpose::Checkout {
        return Err(Problem::wrong_operation(&confirmation.confirm_path()));
    }
    let claim = match &confirm.keyed {
        Some(keyed) => once::own_claim(db, keyed, now)?,
        None => None,
    };
    let state = match confirmation.status {
        Status::Cancelled => return Err(Problem::confirmation_cancelled()),
        Status::Expired => return Err(Problem::confirmation_expired()),
        Status::Pending => State::Pending(Box::new(confirmation)),
        Status::Committing => {
            let payment = payments::find_by_confirmation(db, &confirm.id)?
                .ok_or_else(|| Problem::internal("a committing confirmation without a payment"))?;
            let busy = match claim {
                Some(_) => Problem::key_in_flight(IN_FLIGHT_WAIT),
                None => Problem::operation_in_flight(IN_FLIGHT_WAIT),
            };
            State::Committing { payment: payment.payment_id, busy }
        }
        Status::Confirmed | Status::Declined => {
            let answer = confirmation.decision.ok_or_else(|| Problem::internal("a decision without an answer"))?;
            State::Decided(answer)
        }
    };
    // The answer outlives the key: a time that is past says nothing.
    Ok((state, claim.map(|claim| claim.expires_at).filter(|at| now < *at)))
}

fn replay(db: &mut Db, confirm: &Confirm, now: Timestamp) -> Result<Option<Reply>, Problem> {
    match find_state(db, confirm, now)? {
        (State::Decided(answer), key_expires_at) => {
            Ok(Some(Reply { answer, delivery: Delivery::Replayed, key_expires_at }))
        }
        (State::Committing { .. } | State::Pending(_), _) => Ok(None),
    }
}

/// Phase 1: guards, claim, `pending → committing`, and a payment under our lease.
fn begin(
    db: &mut Db,
    confirm: &Confirm,
    owner: &str,
    provider: &dyn PaymentProvider,
    settings: Settings,
    now: Timestamp,
) -> Result<Begun, Problem> {
    failpoints::hit(failpoints::BEFORE_CLAIM)?;
    let (state, key_expires_at) = find_state(db, confirm, now)?;
    let confirmation = match state {
        State::Decided(answer) => {
            let next = Next::Reply(Settled { answer, delivery: Delivery::Replayed });
            return Ok(Begun { next, key_expires_at });
        }
        State::Committing { payment, busy } => {
            return Ok(Begun { next: Next::Recover { payment, busy }, key_expires_at });
        }
        State::Pending(confirmation) => confirmation,
    };
    if !confirm.guards.hold(&confirmation.plan, &confirmation.plan_digest) {
        return Err(Problem::confirmation_mismatch(confirmation.plan, confirmation.plan_digest));
    }
    if now >= confirmation.expires_at {
        return Err(Problem::confirmation_expired());
    }
    let key_expires_at = claim(db, confirm, settings, now)?;
    commit(db, &confirmation, now)?;
    let next = pay(db, &confirmation, &confirm.call.request_id, owner, provider, settings, now)?;
    Ok(Begun { next, key_expires_at })
}

/// Where another writer took the key in between, it is this very confirm that is running.
fn claim(db: &mut Db, confirm: &Confirm, settings: Settings, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let Some(keyed) = &confirm.keyed else { return Ok(None) };
    let claim = once::claim(db, keyed, settings.retention, now)?;
    claim.map(|claim| Some(claim.expires_at)).ok_or_else(|| Problem::key_in_flight(IN_FLIGHT_WAIT))
}

/// `pending → committing`. The statement repeats state and deadline; an equal attempt that is undecided forbids it.
fn commit(db: &mut Db, confirmation: &Confirmation, now: Timestamp) -> Result<(), Problem> {
    match confirmations::begin_commit(db, &confirmation.confirmation_id, now)? {
        Commit::Begun => Ok(()),
        Commit::NotPending => Err(Problem::operation_in_flight(IN_FLIGHT_WAIT)),
        Commit::AttemptPending => {
            let other = confirmations::find_committing(db, &confirmation.actor, &confirmation.attempt_digest)?;
            Err(other.map_or_else(|| Problem::overloaded("the other attempt was decided just now"), attempt_pending))
        }
    }
}

/// Writes down what the provider is to be asked. A total of zero asks nobody.
fn pay(
    db: &mut Db,
    confirmation: &Confirmation,
    request_id: &str,
    owner: &str,
    provider: &dyn PaymentProvider,
    settings: Settings,
    now: Timestamp,
) -> Result<Next, Problem> {
    let (id, plan) = (&confirmation.confirmation_id, &confirmation.plan);
    if plan.total.is_zero() {
        let answer = settle_checkout(db, confirmation, None, &Decision::Succeeded, request_id, now)?
            .ok_or_else(|| Problem::internal(format!("{id} was not committing")))?;
        return Ok(Next::Reply(Settled { answer, delivery: Delivery::Executed }));
    }
    let charge = Charge { amount: plan.total, method: plan.payment_method.clone() };
    let payment = phases::request(id, &charge, owner, provider, settings, now);
    payments::insert(db, &payment)?;
    Ok(Next::Ask(Attempt { payment, owner: owner.to_owned() }))
}
