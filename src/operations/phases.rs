//! Atomic phases: how an operation whose money leaves the process survives a crash at any line. Phase 1 commits what is
//! about to be asked; phase 2 asks the provider, outside any transaction; phase 3 commits what it said, by
//! compare-and-set. In between stands a recovery point, from which anyone who takes the lease can go on: always with
//! the same key and the same bytes, so that the provider charges once.

use super::confirm_checkout::{settle_declined, settle_succeeded};
use super::{Context, Reply, Settings};
use crate::domain::answer::Delivery;
use crate::domain::confirmation::{Confirmation, Purpose};
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, PaymentId};
use crate::domain::payment::{Charge, PaymentStatus, ProviderKey};
use crate::domain::time::Timestamp;
use crate::failpoints;
use crate::payments::{Answering, Found, Outcome, PaymentProvider};
use crate::store::payments::{self, PaymentRow};
use crate::store::{Db, confirmations};
use std::time::Duration;

/// When a caller may ask again about an unknown outcome.
const UNKNOWN_WAIT: Duration = Duration::from_secs(1);
/// The longest pause between two recoveries of one payment.
const MAX_BACKOFF: Duration = Duration::from_secs(5 * 60);
/// How often a payment that waits for a person is looked up again, in case it landed after all.
const REVIEW_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// A payment, and the lease under which we may ask the provider about it.
#[derive(Clone)]
pub struct Attempt {
    pub payment: PaymentRow,
    pub owner: String,
    pub key_expires_at: Option<Timestamp>,
}

/// How phase 1 ended.
pub enum Begun {
    Decided(Reply),
    Ask(Attempt),
    Recover(Recovery),
}

/// A payment that was asked for before and isn't decided.
pub struct Recovery {
    pub payment: PaymentId,
    /// The answer while somebody else holds the lease.
    pub busy: Problem,
    pub key_expires_at: Option<Timestamp>,
}

/// The payment of a first attempt, with a lease on it.
pub fn request(
    confirmation: &ConfirmationId,
    charge: &Charge,
    owner: &str,
    provider: &dyn PaymentProvider,
    settings: Settings,
    now: Timestamp,
) -> PaymentRow {
    let payment_id = PaymentId::generate();
    let lease_until = now.after(settings.lease);
    PaymentRow {
        confirmation_id: confirmation.clone(),
        provider_key: ProviderKey::of(&payment_id),
        payment_id,
        request: provider.charge_request(charge),
        amount_minor: charge.amount.minor(),
        currency: charge.amount.currency(),
        status: PaymentStatus::Requested,
        decline_reason: None,
        provider_key_expires_at: now.after(provider.key_lifetime()),
        lease_owner: Some(owner.to_owned()),
        lease_until: Some(lease_until),
        attempts: 1,
        recover_at: lease_until,
        created_at: now,
        decided_at: None,
    }
}

/// All phases, as one task that no connection can interrupt. No phase 2 starts whose phase 1 is not committed.
pub async fn run<F>(context: Context, begin: F, request_id: String) -> Result<Reply, Problem>
where
    F: Fn(&mut Db, &str, Timestamp) -> Result<Begun, Problem> + Send + 'static,
{
    let owner = uuid::Uuid::now_v7().to_string();
    match context.store.write(move |db, now| begin(db, &owner, now)).await? {
        Begun::Decided(reply) => Ok(reply),
        Begun::Ask(attempt) => {
            failpoints::hit(failpoints::AFTER_PHASE_ONE)?;
            let key_expires_at = attempt.key_expires_at;
            ask(&context, attempt, &request_id).await.map_err(|problem| problem.kept_until(key_expires_at))
        }
        Begun::Recover(Recovery { payment, busy, key_expires_at }) => {
            let recovered = recover(&context, payment, &request_id).await;
            match recovered.map_err(|problem| problem.kept_until(key_expires_at))? {
                Some(reply) => Ok(Reply { key_expires_at, ..reply }),
                None => Err(busy.kept_until(key_expires_at)),
            }
        }
    }
}

/// Goes on from the recovery point: takes the lease, looks the key up at the provider, and sends the same bytes again
/// if it wasn't seen and the provider still knows the key. None while another call holds the lease.
pub async fn recover(context: &Context, id: PaymentId, request_id: &str) -> Result<Option<Reply>, Problem> {
    let lease = context.settings.lease;
    let taken = context.store.write_when_room(move |db, now| take_lease(db, &id, lease, now)).await?;
    let attempt = match taken {
        Lease::Taken(attempt) => attempt,
        Lease::Decided(reply) => return Ok(Some(reply)),
        Lease::Busy => return Ok(None),
    };
    let found = in_time(context, context.provider.find(&attempt.payment.provider_key)).await;
    let reply = match found {
        Some(Found::Decided(outcome)) => finish(context, attempt, outcome, request_id).await,
        Some(Found::NotSeen) if context.store.clock().now() < attempt.payment.provider_key_expires_at => {
            ask(context, attempt, request_id).await
        }
        Some(Found::NotSeen) => give_up_lease(context, attempt, REVIEW_INTERVAL, Problem::payment_needs_review()).await,
        None => finish(context, attempt, Outcome::Unknown("the look-up timed out".into()), request_id).await,
    };
    reply.map(Some)
}

enum Lease {
    Taken(Attempt),
    Decided(Reply),
    Busy,
}

fn take_lease(db: &mut Db, id: &PaymentId, lease: Duration, now: Timestamp) -> Result<Lease, Problem> {
    let owner = uuid::Uuid::now_v7().to_string();
    let taken = payments::take_lease(db, id, &owner, now, now.after(lease))?;
    let payment = payments::find(db, id)?;
    if taken {
        return Ok(Lease::Taken(Attempt { payment, owner, key_expires_at: None }));
    }
    match payment.status {
        PaymentStatus::Requested => Ok(Lease::Busy),
        PaymentStatus::Succeeded | PaymentStatus::Declined => {
            Ok(Lease::Decided(decided(db, &payment, Delivery::Replayed)?))
        }
    }
}

/// Phase 2, then phase 3. A process that was held up until its lease ran out doesn't send any more: somebody else may
/// have settled the payment by now, and the provider may have forgotten the key.
async fn ask(context: &Context, attempt: Attempt, request_id: &str) -> Result<Reply, Problem> {
    failpoints::hit(failpoints::BEFORE_PROVIDER)?;
    let now = context.store.clock().now();
    if attempt.payment.lease_until.is_none_or(|until| now >= until) || now >= attempt.payment.provider_key_expires_at {
        let cause = "the lease ran out before the request was sent";
        return finish(context, attempt, Outcome::Unknown(cause.into()), request_id).await;
    }
    let charge = context.provider.charge(&attempt.payment.provider_key, &attempt.payment.request);
    let outcome = in_time(context, charge).await.unwrap_or_else(|| Outcome::Unknown("the provider timed out".into()));
    failpoints::hit(failpoints::PROVIDER_ANSWERED)?;
    finish(context, attempt, outcome, request_id).await
}

/// Phase 3: a decided outcome is written once, whoever brings it; an unknown one gives up the lease.
async fn finish(context: &Context, attempt: Attempt, outcome: Outcome, request_id: &str) -> Result<Reply, Problem> {
    if let Outcome::Unknown(cause) = &outcome {
        tracing::warn!(payment = attempt.payment.payment_id.as_str(), cause, "outcome unknown");
        let wait = backoff(context.settings.worker_interval, attempt.payment.attempts);
        let unknown = Problem::outcome_unknown(UNKNOWN_WAIT).kept_until(attempt.key_expires_at);
        return give_up_lease(context, attempt, wait, unknown).await;
    }
    let (settled, request_id) = (attempt.clone(), request_id.to_owned());
    let job = move |db: &mut Db, now| decide(db, &settled, &outcome, &request_id, now);
    let reply = match context.store.write_when_room(job).await {
        Ok(reply) => reply,
        // The provider's word is not lost: whoever comes next finds it again.
        Err(problem) => {
            let unknown = unknown(problem).kept_until(attempt.key_expires_at);
            let wait = backoff(context.settings.worker_interval, attempt.payment.attempts);
            return give_up_lease(context, attempt, wait, unknown).await;
        }
    };
    failpoints::hit(failpoints::AFTER_PHASE_THREE_COMMIT)?;
    Ok(reply)
}

fn decide(
    db: &mut Db,
    attempt: &Attempt,
    outcome: &Outcome,
    request_id: &str,
    now: Timestamp,
) -> Result<Reply, Problem> {
    let payment = &attempt.payment;
    let (status, reason) = match outcome {
        Outcome::Succeeded => (PaymentStatus::Succeeded, None),
        Outcome::Declined(reason) => (PaymentStatus::Declined, Some(reason.as_str())),
        Outcome::Unknown(_) => return Err(Problem::internal("an unknown outcome decides nothing")),
    };
    let confirmation = confirmation_of(db, payment)?;
    let settled = match (confirmation.purpose, reason) {
        (Purpose::Checkout, None) => settle_succeeded(db, &confirmation, Some(&payment.payment_id), now)?,
        (Purpose::Checkout, Some(reason)) => settle_declined(db, &confirmation, reason, request_id)?,
        (Purpose::Refund, _) => return Err(Problem::internal("refunds have no payments yet")),
    };
    let Some(answer) = settled else { return decided(db, payment, Delivery::Replayed) };
    if !payments::decide(db, &payment.payment_id, status, reason, now)? {
        return Err(Problem::internal(format!("{} was decided without its confirmation", payment.payment_id)));
    }
    failpoints::hit(failpoints::BEFORE_PHASE_THREE_COMMIT)?;
    Ok(Reply { answer, delivery: Delivery::Executed, key_expires_at: attempt.key_expires_at })
}

/// The answer that stands on the confirmation, whoever wrote it.
fn decided(db: &mut Db, payment: &PaymentRow, delivery: Delivery) -> Result<Reply, Problem> {
    let answer = confirmation_of(db, payment)?
        .decision
        .ok_or_else(|| Problem::internal(format!("{} is decided without an answer", payment.payment_id)))?;
    Ok(Reply { answer, delivery, key_expires_at: None })
}

fn confirmation_of(db: &mut Db, payment: &PaymentRow) -> Result<Confirmation, Problem> {
    confirmations::find(db, &payment.confirmation_id)?
        .ok_or_else(|| Problem::internal(format!("{} has no confirmation", payment.payment_id)))
}

/// The payment stays requested and the caller gets `answer`, unless somebody else has decided it meanwhile.
async fn give_up_lease(context: &Context, attempt: Attempt, wait: Duration, answer: Problem) -> Result<Reply, Problem> {
    let job = move |db: &mut Db, now: Timestamp| {
        let payment = &attempt.payment;
        payments::give_up_lease(db, &payment.payment_id, &attempt.owner, now.after(wait))?;
        match payments::find(db, &payment.payment_id)?.status {
            PaymentStatus::Requested => Ok(None),
            PaymentStatus::Succeeded | PaymentStatus::Declined => Ok(Some(decided(db, payment, Delivery::Replayed)?)),
        }
    };
    context.store.write_when_room(job).await.map_err(unknown)?.ok_or(answer)
}

/// A write that failed after the provider was asked: to the caller, the outcome is unknown, not "nothing was done".
fn unknown(failed: Problem) -> Problem {
    Problem { cause: failed.cause, ..Problem::outcome_unknown(UNKNOWN_WAIT) }
}

async fn in_time<T>(context: &Context, answering: Answering<'_, T>) -> Option<T> {
    tokio::time::timeout(context.settings.provider_timeout, answering).await.ok()
}

/// Doubles with every attempt, up to [`MAX_BACKOFF`].
fn backoff(first: Duration, attempts: i64) -> Duration {
    let doublings = u32::try_from(attempts - 1).unwrap_or(0).min(16);
    first.saturating_mul(1 << doublings).min(MAX_BACKOFF)
}
