//! Atomic phases: how an operation whose money leaves the process survives a crash at any line. Phase 1 commits what is
//! about to be asked; phase 2 asks the provider, outside any transaction; phase 3 commits what it said, by
//! compare-and-set. In between stands a recovery point, from which anyone who takes the lease can go on: always with
//! the same key and the same bytes, so that the provider acts once.

use super::once::IN_FLIGHT_WAIT;
use super::{Context, Reply, Settings, settle};
use crate::domain::answer::{Answer, Delivery};
use crate::domain::error::{Code, Problem};
use crate::domain::ids::PaymentId;
use crate::domain::money::Money;
use crate::domain::payment::{Decision, PaymentStatus, ProviderKey};
use crate::domain::time::Timestamp;
use crate::failpoints;
use crate::payments::{Answering, Found, Outcome, PaymentProvider};
use crate::store::payments::{self, PaymentRow, Subject};
use crate::store::{Db, is_lock_timeout};
use std::time::Duration;

/// When a caller may ask again about an unknown outcome: the shortest wait that `Retry-After` can say.
const UNKNOWN_WAIT: Duration = Duration::from_secs(1);
/// The longest pause between two recoveries of one payment.
const MAX_BACKOFF: Duration = Duration::from_secs(5 * 60);
/// How often a payment that waits for a person is looked up again, in case it landed after all.
const REVIEW_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// A payment, and the lease under which we may ask the provider about it.
#[derive(Clone)]
pub struct Attempt {
    pub payment: Box<PaymentRow>,
    pub owner: String,
}

/// How phase 1 ended, and when the caller's key will be forgotten, if it sent one.
pub struct Begun {
    pub next: Next,
    pub key_expires_at: Option<Timestamp>,
}

/// What is to be done after phase 1.
pub enum Next {
    Reply(Settled),
    Ask(Attempt),
    /// Asked for before and not decided; `busy` is the answer while somebody else holds the lease.
    Recover {
        payment: PaymentId,
        busy: Problem,
    },
}

/// The answer that is kept, on the confirmation or on the claim, and whether this call wrote it.
pub struct Settled {
    pub answer: Answer,
    pub delivery: Delivery,
}

/// Who asks the provider, which one, and how.
pub struct Asking<'a> {
    pub owner: &'a str,
    pub provider: &'a dyn PaymentProvider,
    pub settings: Settings,
}

/// Writes down what is to be asked, with a lease for the first attempt.
pub fn request(
    db: &mut Db,
    subject: Subject,
    amount: Money,
    bytes: String,
    asking: &Asking,
    now: Timestamp,
) -> Result<Attempt, Problem> {
    let payment_id = PaymentId::generate();
    let lease_until = now.after(asking.settings.lease);
    let (confirmation_id, refund_id) = match subject {
        Subject::Charge(confirmation) => (Some(confirmation), None),
        Subject::Refund(refund) => (None, Some(refund)),
    };
    let payment = PaymentRow {
        confirmation_id,
        refund_id,
        provider_key: ProviderKey::of(&payment_id),
        payment_id,
        request: bytes,
        amount_minor: amount.minor(),
        currency: amount.currency(),
        status: PaymentStatus::Requested,
        decline_reason: None,
        provider_key_expires_at: now.after(asking.provider.key_lifetime()),
        lease_owner: Some(asking.owner.to_owned()),
        lease_until: Some(lease_until),
        attempts: 1,
        recover_at: lease_until,
        created_at: now,
        decided_at: None,
    };
    payments::insert(db, &payment)?;
    Ok(Attempt { payment: Box::new(payment), owner: asking.owner.to_owned() })
}

/// All phases, as one task that no connection can interrupt. No phase 2 starts whose phase 1 is not committed.
pub async fn run<F>(context: Context, begin: F, request_id: String) -> Result<Reply, Problem>
where
    F: Fn(&mut Db, &Asking, Timestamp) -> Result<Begun, Problem> + Send + 'static,
{
    let (owner, provider, settings) = (new_owner(), context.provider.clone(), context.settings);
    let job = move |db: &mut Db, now| {
        let begun = begin(db, &Asking { owner: &owner, provider: &*provider, settings }, now)?;
        failpoints::hit(failpoints::BEFORE_PHASE_ONE_COMMIT)?;
        Ok(begun)
    };
    let Begun { next, key_expires_at } = context.store.write(job).await?;
    match go_on(&context, next, &request_id).await {
        Ok(Settled { answer, delivery }) => Ok(Reply { answer, delivery, key_expires_at }),
        Err(problem) => Err(problem.with_key_expiry(key_expires_at)),
    }
}

async fn go_on(context: &Context, next: Next, request_id: &str) -> Result<Settled, Problem> {
    match next {
        Next::Reply(settled) => Ok(settled),
        Next::Ask(attempt) => {
            failpoints::hit(failpoints::AFTER_PHASE_ONE)?;
            ask(context, attempt, request_id).await
        }
        Next::Recover { payment, busy } => recover(context, payment, request_id).await?.ok_or(busy),
    }
}

/// Goes on from the recovery point: takes the lease, looks the key up at the provider, and sends the same bytes again
/// if it wasn't seen and the provider still knows the key. None while another call holds the lease.
pub async fn recover(context: &Context, id: PaymentId, request_id: &str) -> Result<Option<Settled>, Problem> {
    let lease = context.settings.lease;
    let attempt = match context.store.write_when_room(move |db, now| take_lease(db, &id, lease, now)).await {
        Ok(Lease::Taken(attempt)) => attempt,
        Ok(Lease::Decided(settled)) => return Ok(Some(settled)),
        Ok(Lease::Busy) => return Ok(None),
        Err(held) if held.code == Code::OperationInFlight => return Ok(None),
        // It was sent before: whatever keeps us from it now, nobody can say that nothing was done.
        Err(failed) => return Err(outcome_unknown(failed)),
    };
    let looking = context.provider.find(&attempt.payment.provider_key);
    let found = in_time(context, looking).await.unwrap_or_else(|| Found::Unknown("the look-up timed out".into()));
    let forgotten = context.store.clock().now() >= attempt.payment.provider_key_expires_at;
    let settled = match found {
        Found::Decided(decision) => finish(context, attempt, decision, request_id).await,
        Found::Unknown(cause) => leave_unknown(context, attempt, &cause).await,
        Found::NotSeen if forgotten => {
            give_up_lease(context, attempt, REVIEW_INTERVAL, Problem::payment_needs_review()).await
        }
        Found::NotSeen => ask(context, attempt, request_id).await,
    };
    settled.map(Some)
}

enum Lease {
    Taken(Attempt),
    Decided(Settled),
    Busy,
}

fn take_lease(db: &mut Db, id: &PaymentId, lease: Duration, now: Timestamp) -> Result<Lease, Problem> {
    let owner = new_owner();
    let taken = payments::take_lease(db, id, &owner, now, now.after(lease)).map_err(|error| {
        // Somebody is writing the decision down, and takes longer than we wait.
        if is_lock_timeout(&error) { Problem::operation_in_flight(IN_FLIGHT_WAIT) } else { error.into() }
    })?;
    let payment = payments::find(db, id)?;
    if taken {
        return Ok(Lease::Taken(Attempt { payment: Box::new(payment), owner }));
    }
    match payment.status {
        PaymentStatus::Requested => Ok(Lease::Busy),
        PaymentStatus::Succeeded | PaymentStatus::Declined => Ok(Lease::Decided(read_decision(db, &payment)?)),
    }
}

/// Phase 2, then phase 3. A process that was held up until its lease ran out doesn't send any more: somebody else may
/// have settled the payment by now, and the provider may have forgotten the key.
async fn ask(context: &Context, attempt: Attempt, request_id: &str) -> Result<Settled, Problem> {
    failpoints::hit(failpoints::BEFORE_PROVIDER)?;
    let (payment, now) = (&attempt.payment, context.store.clock().now());
    if payment.lease_until.is_none_or(|until| now >= until) || now >= payment.provider_key_expires_at {
        return leave_unknown(context, attempt, "the lease ran out before the request was sent").await;
    }
    let asking = match payment.subject()? {
        Subject::Charge(_) => context.provider.charge(&payment.provider_key, &payment.request),
        Subject::Refund(_) => context.provider.refund(&payment.provider_key, &payment.request),
    };
    let outcome = in_time(context, asking).await;
    failpoints::hit(failpoints::PROVIDER_ANSWERED)?;
    match outcome {
        Some(Outcome::Decided(decision)) => finish(context, attempt, decision, request_id).await,
        Some(Outcome::Unknown(cause)) => leave_unknown(context, attempt, &cause).await,
        None => leave_unknown(context, attempt, "the provider timed out").await,
    }
}

/// Phase 3: a decision is written once, whoever brings it. When it can't be written it isn't lost: whoever comes next
/// finds it at the provider.
async fn finish(context: &Context, attempt: Attempt, decision: Decision, request_id: &str) -> Result<Settled, Problem> {
    let (payment, request_id) = (attempt.payment.clone(), request_id.to_owned());
    let job = move |db: &mut Db, now| settle(db, &payment, &decision, &request_id, now);
    let settled = match context.store.write_when_room(job).await {
        Ok(settled) => settled,
        Err(failed) => {
            let wait = backoff(context.settings.worker_interval, attempt.payment.attempts);
            return give_up_lease(context, attempt, wait, outcome_unknown(failed)).await;
        }
    };
    failpoints::hit(failpoints::AFTER_PHASE_THREE_COMMIT)?;
    Ok(settled)
}

fn settle(
    db: &mut Db,
    payment: &PaymentRow,
    decision: &Decision,
    request_id: &str,
    now: Timestamp,
) -> Result<Settled, Problem> {
    let answer = settle::settle(db, payment, decision, request_id, now)?;
    let Some(answer) = answer else { return read_decision(db, payment) };
    if !payments::decide(db, &payment.payment_id, decision, now)? {
        return Err(Problem::internal(format!("{} was decided without what it is for", payment.payment_id)));
    }
    failpoints::hit(failpoints::BEFORE_PHASE_THREE_COMMIT)?;
    Ok(Settled { answer, delivery: Delivery::Executed })
}

/// What somebody else has settled.
fn read_decision(db: &mut Db, payment: &PaymentRow) -> Result<Settled, Problem> {
    Ok(Settled { answer: settle::kept_answer(db, payment)?, delivery: Delivery::Replayed })
}

async fn leave_unknown(context: &Context, attempt: Attempt, cause: &str) -> Result<Settled, Problem> {
    tracing::warn!(payment = attempt.payment.payment_id.as_str(), cause, "outcome unknown");
    let wait = backoff(context.settings.worker_interval, attempt.payment.attempts);
    give_up_lease(context, attempt, wait, Problem::outcome_unknown(UNKNOWN_WAIT)).await
}

/// The payment stays requested and the caller gets `answer`, unless somebody else has decided it meanwhile.
async fn give_up_lease(
    context: &Context,
    attempt: Attempt,
    wait: Duration,
    answer: Problem,
) -> Result<Settled, Problem> {
    let job = move |db: &mut Db, now: Timestamp| {
        let payment = &attempt.payment;
        payments::give_up_lease(db, &payment.payment_id, &attempt.owner, now.after(wait))?;
        match payments::find(db, &payment.payment_id)?.status {
            PaymentStatus::Requested => Ok(None),
            PaymentStatus::Succeeded | PaymentStatus::Declined => read_decision(db, payment).map(Some),
        }
    };
    context.store.write_when_room(job).await.map_err(outcome_unknown)?.ok_or(answer)
}

/// A write that failed after the provider was asked: to the caller the outcome is unknown, not "nothing was done".
fn outcome_unknown(failed: Problem) -> Problem {
    Problem { cause: failed.cause, ..Problem::outcome_unknown(UNKNOWN_WAIT) }
}

async fn in_time<T>(context: &Context, answering: Answering<'_, T>) -> Option<T> {
    tokio::time::timeout(context.settings.provider_timeout, answering).await.ok()
}

fn new_owner() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Doubles with every attempt, up to [`MAX_BACKOFF`].
fn backoff(first: Duration, attempts: i64) -> Duration {
    let doublings = u32::try_from(attempts - 1).unwrap_or(0).min(16);
    first.saturating_mul(1 << doublings).min(MAX_BACKOFF)
}
