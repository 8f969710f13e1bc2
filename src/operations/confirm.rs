//! Confirm: consumes a confirmation, exactly once. The confirmation is its own key and keeps the answer for as long as
//! the order exists; the money moves in the atomic phases of `phases`. This is what every two-step operation shares;
//! what they differ in is a [`TwoStep`].

use super::once::{self, IN_FLIGHT_WAIT, Keyed};
use super::phases::{self, Asking, Begun, Next, Settled};
use super::propose_checkout::attempt_pending;
use super::{Call, Context, Reply, Settings};
use crate::domain::actor::Caller;
use crate::domain::answer::{Answer, Delivery};
use crate::domain::checkout::Guards;
use crate::domain::confirmation::{Confirmation, Offer, Purpose, Status};
use crate::domain::digest::Fingerprint;
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, PaymentId};
use crate::domain::operation::Operation;
use crate::domain::time::Timestamp;
use crate::failpoints;
use crate::store::confirmations::Commit;
use crate::store::payments::Subject;
use crate::store::{Db, confirmations, payments};

/// The second step of one operation.
pub trait TwoStep: 'static {
    const OPERATION: Operation;
    const PURPOSE: Purpose;

    /// The confirmation, if this caller may confirm it. Anybody else's looks like none.
    fn find(db: &mut Db, caller: &Caller, id: &ConfirmationId, settings: Settings) -> Result<Confirmation, Problem>;

    /// Locks that have to be taken before the confirmation's.
    fn lock(_: &mut Db, _: &Confirmation) -> Result<(), Problem> {
        Ok(())
    }

    /// The end of phase 1, when the confirmation is committing: writes down what the provider is to be asked. Where nobody
    /// has to be asked, settles it.
    fn start(
        db: &mut Db,
        confirmation: &Confirmation,
        request_id: &str,
        asking: &Asking,
        now: Timestamp,
    ) -> Result<Next, Problem>;
}

/// A confirm as it was asked for.
#[derive(Clone)]
struct Confirm {
    call: Call,
    id: ConfirmationId,
    guards: Guards,
    keyed: Option<Keyed>,
}

pub async fn confirm<T: TwoStep>(
    context: &Context,
    call: Call,
    id: ConfirmationId,
    guards: Guards,
) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(T::OPERATION, &[id.as_str()], &guards);
    let keyed = Keyed::of(&call, T::OPERATION, fingerprint).map(|keyed| keyed.about(id.path()));
    let confirm = Confirm { call, id, guards, keyed };

    let (lookup, settings) = (confirm.clone(), context.settings);
    if let Some(reply) = context.store.read(move |db, now| replay::<T>(db, &lookup, settings, now)).await? {
        return Ok(reply);
    }
    let request_id = confirm.call.request_id.clone();
    let begin = move |db: &mut Db, asking: &Asking, now| begin::<T>(db, &confirm, asking, now);
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
fn find_state<T: TwoStep>(
    db: &mut Db,
    confirm: &Confirm,
    settings: Settings,
    now: Timestamp,
) -> Result<(State, Option<Timestamp>), Problem> {
    let confirmation = T::find(db, &confirm.call.caller, &confirm.id, settings)?;
    if confirmation.offer.purpose() != T::PURPOSE {
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
            let payment = payments::find_by_subject(db, &subject(&confirmation)?)?
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

/// What the payment of a committing confirmation is for.
pub(super) fn subject(confirmation: &Confirmation) -> Result<Subject, Problem> {
    match (&confirmation.offer, &confirmation.refund_id) {
        (Offer::Checkout(_), _) => Ok(Subject::Charge(confirmation.confirmation_id.clone())),
        (Offer::Refund(_), Some(refund)) => Ok(Subject::Refund(refund.clone())),
        (Offer::Refund(_), None) => Err(Problem::internal("a committing confirmation without its refund")),
    }
}

fn replay<T: TwoStep>(
    db: &mut Db,
    confirm: &Confirm,
    settings: Settings,
    now: Timestamp,
) -> Result<Option<Reply>, Problem> {
    match find_state::<T>(db, confirm, settings, now)? {
        (State::Decided(answer), key_expires_at) => {
            Ok(Some(Reply { answer, delivery: Delivery::Replayed, key_expires_at }))
        }
        (State::Committing { .. } | State::Pending(_), _) => Ok(None),
    }
}

/// Phase 1: guards, claim, `pending → committing`, and a payment under our lease.
fn begin<T: TwoStep>(db: &mut Db, confirm: &Confirm, asking: &Asking, now: Timestamp) -> Result<Begun, Problem> {
    failpoints::hit(failpoints::BEFORE_CLAIM)?;
    let (state, key_expires_at) = find_state::<T>(db, confirm, asking.settings, now)?;
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
    if !confirm.guards.hold(confirmation.offer.amount(), &confirmation.plan_digest) {
        return Err(Problem::confirmation_mismatch(confirmation.offer, confirmation.plan_digest));
    }
    if now >= confirmation.expires_at {
        return Err(Problem::confirmation_expired());
    }
    let key_expires_at = claim(db, confirm, asking.settings, now)?;
    T::lock(db, &confirmation)?;
    commit(db, &confirmation, now)?;
    let next = T::start(db, &confirmation, &confirm.call.request_id, asking, now)?;
    Ok(Begun { next, key_expires_at })
}

/// Where another writer took the key in between, the next look says for which request.
fn claim(db: &mut Db, confirm: &Confirm, settings: Settings, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let Some(keyed) = &confirm.keyed else { return Ok(None) };
    let claim = once::claim(db, keyed, settings.retention, now)?;
    claim.map(|claim| Some(claim.expires_at)).ok_or_else(|| Problem::moved("the key was claimed under a confirm"))
}

/// `pending → committing`. The statement repeats state and deadline; an equal attempt that is undecided forbids it.
fn commit(db: &mut Db, confirmation: &Confirmation, now: Timestamp) -> Result<(), Problem> {
    match confirmations::begin_commit(db, &confirmation.confirmation_id, now)? {
        Commit::Begun => Ok(()),
        Commit::NotPending => Err(Problem::moved(format!("{} moved under a confirm", confirmation.confirmation_id))),
        Commit::AttemptPending => {
            let other = confirmations::find_committing(db, &confirmation.actor, &confirmation.attempt_digest)?;
            let other = match other {
                Some(id) => confirmations::find(db, &id)?,
                None => None,
            };
            let gone = || Problem::moved("the other attempt was decided just now");
            Err(other.map_or_else(gone, |other| attempt_pending(&other)))
        }
    }
}
