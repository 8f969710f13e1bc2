//! Forgetting: the clock decides when an answer's time is over; this makes room. It touches only finished claims, in
//! bounded batches. A money key keeps its claim, so that it is never new work again.

use super::Context;
use crate::domain::error::Problem;
use crate::domain::operation::Operation;
use crate::domain::time::Timestamp;
use crate::effects::RetentionClass;
use crate::store::{Db, claims, tasks};

/// Rows in one transaction: small, so that callers aren't kept waiting behind it.
const BATCH: i64 = 200;

/// Forgets what is due. Returns how many answers it forgot.
pub async fn forget_due(context: &Context) -> Result<usize, Problem> {
    let mut forgotten = 0;
    for class in [RetentionClass::Other, RetentionClass::Money] {
        loop {
            let batch = forget_answers(context, class).await?;
            forgotten += batch;
            if batch < BATCH as usize {
                break;
            }
        }
    }
    while forget_tasks(context).await? == BATCH as usize {}
    Ok(forgotten)
}

async fn forget_answers(context: &Context, class: RetentionClass) -> Result<usize, Problem> {
    let operations = Operation::retained(class);
    let due = context.store.read(move |db, now| Ok(claims::to_forget(db, &operations, now, BATCH)?)).await?;
    let count = due.len();
    if count > 0 {
        let forget = move |db: &mut Db, now| {
            for (actor, key) in &due {
                match class {
                    RetentionClass::Other => claims::forget_expired(db, actor, key, now)?,
                    RetentionClass::Money => claims::forget_answer(db, actor, key, now)?,
                };
            }
            Ok(())
        };
        context.store.write_when_room(forget).await?;
    }
    Ok(count)
}

/// The counts of a task are kept as long as answers about money.
async fn forget_tasks(context: &Context) -> Result<usize, Problem> {
    let retention = context.settings.retention.money;
    let old = move |db: &mut Db, now: Timestamp| Ok(tasks::last_used_before(db, now.before(retention), BATCH)?);
    let old = context.store.read(old).await?;
    let count = old.len();
    if count > 0 {
        let forget = move |db: &mut Db, now: Timestamp| {
            for counted in &old {
                tasks::forget(db, counted, now.before(retention))?;
            }
            Ok(())
        };
        context.store.write_when_room(forget).await?;
    }
    Ok(count)
}
