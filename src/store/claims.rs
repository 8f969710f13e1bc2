//! Claims: "this actor's key is taken by this fingerprint".

use super::schema::claims;
use super::{Db, on};
use crate::domain::answer::Answer;
use crate::domain::digest::Digest;
use crate::domain::ids::{ActorId, TaskId};
use crate::domain::key::IdempotencyKey;
use crate::domain::operation::Operation;
use crate::domain::time::Timestamp;
use diesel::prelude::*;

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = claims, treat_none_as_default_value = false)]
pub struct Claim {
    pub actor_id: ActorId,
    pub idempotency_key: IdempotencyKey,
    pub operation: Operation,
    pub fingerprint: Digest,
    pub fingerprint_version: i64,
    pub task_id: Option<TaskId>,
    pub resource: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub answer_status: Option<i64>,
    pub answer_body: Option<String>,
    pub answer_location: Option<String>,
}

impl Claim {
    /// The stored answer, once there is one and as long as it is kept.
    pub fn answer(&self) -> Option<Answer> {
        let status = u16::try_from(self.answer_status?).ok()?;
        let body = self.answer_body.clone()?;
        Some(Answer { status, body, location: self.answer_location.clone() })
    }

    pub fn is_answered(&self) -> bool {
        self.answer_status.is_some()
    }

    /// Answered once, and the answer is no longer kept.
    pub fn is_swept(&self) -> bool {
        self.is_answered() && self.answer_body.is_none()
    }
}

pub fn find(db: &mut Db, actor: &ActorId, key: &IdempotencyKey) -> QueryResult<Option<Claim>> {
    on!(db, |conn| claims::table.find((actor, key)).select(Claim::as_select()).first(conn).optional())
}

/// True for the one caller that claimed the key; false for everyone after.
pub fn claim(db: &mut Db, claim: &Claim) -> QueryResult<bool> {
    on!(db, |conn| {
        diesel::insert_into(claims::table)
            .values(claim)
            .on_conflict((claims::actor_id, claims::idempotency_key))
            .do_nothing()
            .execute(conn)
    })
    .map(|rows| rows == 1)
}

/// Gives the claim its answer, in the transaction that has the effect. A location is what the call was about.
pub fn answer(db: &mut Db, actor: &ActorId, key: &IdempotencyKey, answer: &Answer) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(claims::table.find((actor, key)))
            .set((
                claims::answer_status.eq(i64::from(answer.status)),
                claims::answer_body.eq(&answer.body),
                claims::answer_location.eq(&answer.location),
                answer.location.as_ref().map(|location| claims::resource.eq(location)),
            ))
            .execute(conn)
    })
}

/// Names what the call has made, before it is answered.
pub fn set_resource(db: &mut Db, claim: &Claim, resource: &str) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(claims::table.find((&claim.actor_id, &claim.idempotency_key)))
            .set(claims::resource.eq(resource))
            .execute(conn)
    })
}

/// Makes room for new work under a key whose time is over.
pub fn forget_expired(db: &mut Db, actor: &ActorId, key: &IdempotencyKey, now: Timestamp) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::delete(claims::table.find((actor, key)).filter(claims::expires_at.le(now))).execute(conn)
    })
}

/// Finished claims of these operations whose time is over and whose answer is still kept, oldest first.
pub fn to_forget(
    db: &mut Db,
    operations: &[Operation],
    now: Timestamp,
    limit: i64,
) -> QueryResult<Vec<(ActorId, IdempotencyKey)>> {
    on!(db, |conn| {
        claims::table
            .filter(claims::expires_at.le(now))
            .filter(claims::answer_body.is_not_null())
            .filter(claims::operation.eq_any(operations))
            .order(claims::expires_at)
            .select((claims::actor_id, claims::idempotency_key))
            .limit(limit)
            .load(conn)
    })
}

/// Clears an answer whose time is over. The claim stays: its key is never new work again.
pub fn forget_answer(db: &mut Db, actor: &ActorId, key: &IdempotencyKey, now: Timestamp) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(claims::table.find((actor, key)).filter(claims::expires_at.le(now)))
            .set(claims::answer_body.eq(None::<String>))
            .execute(conn)
    })
}
