//! The counted calls of agent tasks.

use super::schema::task_calls;
use super::{Db, on};
use crate::domain::ids::{ActorId, TaskId};
use crate::domain::operation::Operation;
use crate::domain::task::{Calls, Counted, Outcome};
use crate::domain::time::Timestamp;
use diesel::dsl::case_when;
use diesel::prelude::*;
use diesel::upsert::excluded;

/// Adds calls to those that are counted already.
pub fn add(db: &mut Db, counted: &Counted, calls: &Calls) -> QueryResult<usize> {
    let new = (
        task_calls::actor_id.eq(&counted.actor),
        task_calls::task_id.eq(&counted.task),
        task_calls::operation.eq(counted.operation),
        task_calls::subject.eq(&counted.subject),
        task_calls::calls.eq(calls.calls),
        task_calls::executed.eq(calls.executed),
        task_calls::replayed.eq(calls.replayed),
        task_calls::refused.eq(calls.refused),
        task_calls::failed.eq(calls.failed),
        task_calls::last_outcome.eq(calls.last_outcome),
        task_calls::last_at.eq(calls.last_at),
    );
    // Another server may have counted a later call already.
    let newer = excluded(task_calls::last_at).ge(task_calls::last_at);
    on!(db, |conn| {
        diesel::insert_into(task_calls::table)
            .values(new)
            .on_conflict((task_calls::actor_id, task_calls::task_id, task_calls::operation, task_calls::subject))
            .do_update()
            .set((
                task_calls::calls.eq(task_calls::calls + excluded(task_calls::calls)),
                task_calls::executed.eq(task_calls::executed + excluded(task_calls::executed)),
                task_calls::replayed.eq(task_calls::replayed + excluded(task_calls::replayed)),
                task_calls::refused.eq(task_calls::refused + excluded(task_calls::refused)),
                task_calls::failed.eq(task_calls::failed + excluded(task_calls::failed)),
                task_calls::last_outcome
                    .eq(case_when(newer, excluded(task_calls::last_outcome)).otherwise(task_calls::last_outcome)),
                task_calls::last_at.eq(case_when(newer, excluded(task_calls::last_at)).otherwise(task_calls::last_at)),
            ))
            .execute(conn)
    })
}

/// The calls of one task of an actor, by operation and subject.
pub fn of(db: &mut Db, actor: &ActorId, task: &TaskId) -> QueryResult<Vec<((Operation, String), Calls)>> {
    type Counts = (i64, i64, i64, i64, i64);
    let rows: Vec<(Operation, String, Counts, Outcome, Timestamp)> = on!(db, |conn| {
        task_calls::table
            .filter(task_calls::actor_id.eq(actor))
            .filter(task_calls::task_id.eq(task))
            .select((
                task_calls::operation,
                task_calls::subject,
                (
                    task_calls::calls,
                    task_calls::executed,
                    task_calls::replayed,
                    task_calls::refused,
                    task_calls::failed,
                ),
                task_calls::last_outcome,
                task_calls::last_at,
            ))
            .load(conn)
    })?;
    let calls = |(operation, subject, counts, last_outcome, last_at): (_, _, Counts, _, _)| {
        let (calls, executed, replayed, refused, failed) = counts;
        ((operation, subject), Calls { calls, executed, replayed, refused, failed, last_outcome, last_at })
    };
    Ok(rows.into_iter().map(calls).collect())
}

/// Keys that were last used before a point in time, oldest first.
pub fn last_used_before(db: &mut Db, before: Timestamp, limit: i64) -> QueryResult<Vec<Counted>> {
    let old: Vec<(ActorId, TaskId, Operation, String)> = on!(db, |conn| {
        task_calls::table
            .filter(task_calls::last_at.lt(before))
            .order(task_calls::last_at)
            .select((task_calls::actor_id, task_calls::task_id, task_calls::operation, task_calls::subject))
            .limit(limit)
            .load(conn)
    })?;
    let counted = |(actor, task, operation, subject)| Counted { actor, task, operation, subject };
    Ok(old.into_iter().map(counted).collect())
}

/// Deletes a key's counts, unless it was used since.
pub fn forget(db: &mut Db, counted: &Counted, before: Timestamp) -> QueryResult<usize> {
    let key = (&counted.actor, &counted.task, counted.operation, &counted.subject);
    on!(db, |conn| diesel::delete(task_calls::table.find(key).filter(task_calls::last_at.lt(before))).execute(conn))
}
