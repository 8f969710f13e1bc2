//! Run once: what every keyed call shares (the claim, its standing, the answer that is kept), and the envelope of local
//! operations: claim, effect and answer share one transaction, so that a crash leaves
//! all of them or none. A repeat gets the first answer, byte for byte.

use super::{Call, Context, Reply};
use crate::domain::answer::{Answer, Delivery};
use crate::domain::digest::Fingerprint;
use crate::domain::error::{Problem, Stored};
use crate::domain::ids::{ActorId, TaskId};
use crate::domain::key::IdempotencyKey;
use crate::domain::operation::Operation;
use crate::domain::time::Timestamp;
use crate::effects::{Retention, RetentionClass};
use crate::failpoints;
use crate::store::claims::{self, Claim};
use crate::store::{Db, is_lock_timeout};
use std::time::Duration;

/// When to ask again about a call that is still running.
pub const IN_FLIGHT_WAIT: Duration = Duration::from_secs(1);

/// A key about to be claimed for a request.
#[derive(Clone, Debug)]
pub struct Keyed {
    pub actor: ActorId,
    pub key: IdempotencyKey,
    pub operation: Operation,
    pub fingerprint: Fingerprint,
    pub task: Option<TaskId>,
    /// The path of what the call is about, where that is known before it runs.
    pub resource: Option<String>,
}

impl Keyed {
    /// None where the operation needs no key and none was sent.
    pub fn of(call: &Call, operation: Operation, fingerprint: Fingerprint) -> Option<Self> {
        let (actor, task) = (call.caller.actor.clone(), call.task.clone());
        call.key.clone().map(|key| Self { actor, key, operation, fingerprint, task, resource: None })
    }

    pub fn about(self, resource: String) -> Self {
        Self { resource: Some(resource), ..self }
    }
}

/// Runs `effect` at most once for the call's key, where it has one. A refusal that the error table stores becomes the key's answer; any
/// other failure leaves no trace, the claim included.
pub async fn once<F>(context: &Context, call: Call, keyed: Option<Keyed>, effect: F) -> Result<Reply, Problem>
where
    F: Fn(&mut Db, Timestamp) -> Result<Answer, Problem> + Send + 'static,
{
    let Some(keyed) = keyed else {
        let answer = context.store.write(effect).await?;
        return Ok(Reply { answer, delivery: Delivery::Executed, key_expires_at: None });
    };
    let lookup = keyed.clone();
    if let Found::Answered(reply) = context.store.read(move |db, now| find(db, &lookup, now)).await? {
        return Ok(reply);
    }
    let retention = context.settings.retention;
    let job = move |db: &mut Db, now| run(db, &keyed, retention, &call.request_id, &effect, now);
    let reply = context.store.write(job).await?;
    failpoints::hit(failpoints::AFTER_LOCAL_COMMIT)?;
    Ok(reply)
}

fn run(
    db: &mut Db,
    keyed: &Keyed,
    retention: Retention,
    request_id: &str,
    effect: &impl Fn(&mut Db, Timestamp) -> Result<Answer, Problem>,
    now: Timestamp,
) -> Result<Reply, Problem> {
    failpoints::hit(failpoints::BEFORE_CLAIM)?;
    let Some(claim) = claim(db, keyed, retention, now)? else {
        return match find(db, keyed, now)? {
            Found::Answered(reply) => Ok(reply),
            Found::Nothing | Found::Open(_) => Err(Problem::key_in_flight(IN_FLIGHT_WAIT)),
        };
    };
    let outcome = db.savepoint(|db| effect(db, now));
    let answer = keep(db, &claim, outcome, request_id)?;
    failpoints::hit(failpoints::BEFORE_LOCAL_COMMIT)?;
    Ok(Reply { answer, delivery: Delivery::Executed, key_expires_at: Some(claim.expires_at) })
}

/// Makes an outcome the claim's answer, if it is one that is stored. Anything else is for the whole job to undo.
pub fn keep(db: &mut Db, claim: &Claim, outcome: Result<Answer, Problem>, request_id: &str) -> Result<Answer, Problem> {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(refusal) if refusal.code.row().stored == Stored::Yes => refusal.answer(request_id)?,
        Err(problem) => return Err(problem),
    };
    claims::answer(db, &claim.actor_id, &claim.idempotency_key, &answer)?;
    Ok(answer)
}

/// Takes the key. None when it is taken already, by this request or by another one.
pub fn claim(db: &mut Db, keyed: &Keyed, retention: Retention, now: Timestamp) -> Result<Option<Claim>, Problem> {
    if let Some(taken) = claims::find(db, &keyed.actor, &keyed.key)? {
        if !matches!(standing(&taken, now), Standing::Forgotten) {
            return Ok(None);
        }
        claims::forget_expired(db, &keyed.actor, &keyed.key, now)?;
    }
    let claim = Claim {
        actor_id: keyed.actor.clone(),
        idempotency_key: keyed.key.clone(),
        operation: keyed.operation,
        fingerprint: keyed.fingerprint.digest().clone(),
        fingerprint_version: Fingerprint::VERSION,
        task_id: keyed.task.clone(),
        resource: keyed.resource.clone(),
        created_at: now,
        expires_at: now.after(retention.of(keyed.operation.profile().retention)),
        answer_status: None,
        answer_body: None,
        answer_location: None,
    };
    match claims::claim(db, &claim) {
        Ok(claimed) => Ok(claimed.then_some(claim)),
        // The first call with this key has it, and takes longer than we wait.
        Err(error) if is_lock_timeout(&error) => Err(Problem::key_in_flight(IN_FLIGHT_WAIT)),
        Err(error) => Err(error.into()),
    }
}

/// Where a claim stands.
pub enum Standing {
    /// Time decides, not the sweeper: an expired claim counts as swept, unless money was meant by it.
    Forgotten,
    /// Its answer is no longer kept, and its key is never new work.
    Expired,
    Answered(Answer),
    /// No answer stands on it: it is not decided, or its answer is kept elsewhere.
    Open,
}

pub fn standing(claim: &Claim, now: Timestamp) -> Standing {
    let over = now >= claim.expires_at || claim.is_swept();
    match claim.operation.profile().retention {
        RetentionClass::Other if over => Standing::Forgotten,
        // What isn't decided yet is never too old to be settled.
        RetentionClass::Money if over && claim.is_answered() => Standing::Expired,
        RetentionClass::Other | RetentionClass::Money => claim.answer().map_or(Standing::Open, Standing::Answered),
    }
}

/// The claim behind a key, if it is this very request's. A key that names another request is refused.
pub fn own_claim(db: &mut Db, keyed: &Keyed, now: Timestamp) -> Result<Option<Claim>, Problem> {
    match claims::find(db, &keyed.actor, &keyed.key)? {
        None => Ok(None),
        Some(claim) if matches!(standing(&claim, now), Standing::Forgotten) => Ok(None),
        Some(claim) if is_same_request(&claim, keyed) => Ok(Some(claim)),
        Some(claim) => Err(Problem::key_reused().with_key_expiry(Some(claim.expires_at))),
    }
}

/// What stands behind a key.
pub enum Found {
    Nothing,
    Answered(Reply),
    /// Claimed by this request and not answered yet.
    Open(Claim),
}

pub fn find(db: &mut Db, keyed: &Keyed, now: Timestamp) -> Result<Found, Problem> {
    let Some(claim) = own_claim(db, keyed, now)? else { return Ok(Found::Nothing) };
    match standing(&claim, now) {
        Standing::Forgotten => Ok(Found::Nothing),
        Standing::Expired => Err(Problem::key_expired(claim.resource)),
        Standing::Open => Ok(Found::Open(claim)),
        Standing::Answered(answer) => {
            Ok(Found::Answered(Reply { answer, delivery: Delivery::Replayed, key_expires_at: Some(claim.expires_at) }))
        }
    }
}

/// Fingerprints of two versions can't be compared: there the operation has to do, since a late retry is likelier than a
/// reuse.
fn is_same_request(claim: &Claim, keyed: &Keyed) -> bool {
    match claim.fingerprint_version == Fingerprint::VERSION {
        true => claim.fingerprint == *keyed.fingerprint.digest(),
        false => claim.operation == keyed.operation,
    }
}
