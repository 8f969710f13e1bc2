//! Batch update: one result an item, in the order of the request. Atomic writes all or none; per item, each is written
//! or refused by itself. `set` replaces and never adds, so a repeat changes nothing.

use super::once::once;
use super::{Call, Context, Reply, expire};
use crate::domain::answer::Answer;
use crate::domain::digest::Fingerprint;
use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, ProductId};
use crate::domain::operation::Operation;
use crate::domain::product_update::{BatchMode, BatchUpdate, BatchUpdated, Change, ItemResult, ItemStatus, change};
use crate::domain::time::Timestamp;
use crate::store::{Db, confirmations, products};

pub async fn batch_update_products(context: &Context, call: Call, batch: BatchUpdate) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(Operation::BatchUpdateProducts, &[], &batch);
    let author = call.clone();
    let effect = move |db: &mut Db, now| update_all(db, &author, &batch, now);
    once(context, call, Operation::BatchUpdateProducts, fingerprint, effect).await
}

fn update_all(db: &mut Db, author: &Call, batch: &BatchUpdate, now: Timestamp) -> Result<Answer, Problem> {
    let ids: Vec<ProductId> = batch.updates.iter().map(|update| update.product_id.clone()).collect();
    let due = confirmations::due_holding(db, &ids, &[], now)?;
    expire::expire(db, &due, now)?;

    let found = products::listed(db, &ids)?;
    let mut results = Vec::new();
    for update in &batch.updates {
        let id = &update.product_id;
        match change(update, found.get(id)) {
            Ok(change) => results.push(write(db, &author.caller.actor, id, change, now)?),
            Err(refusal) => {
                let problem = serde_json::to_value(refusal.body(&author.request_id)).map_err(Problem::internal)?;
                results.push(ItemResult::refused(id.clone(), problem));
                if batch.mode == BatchMode::Atomic {
                    return Err(Problem::batch_stopped(only_last_counts(ids, results)));
                }
            }
        }
    }
    Answer::json(200, &BatchUpdated { mode: batch.mode, results })
}

fn write(db: &mut Db, author: &ActorId, id: &ProductId, change: Change, now: Timestamp) -> Result<ItemResult, Problem> {
    let (done, status, version) = match change {
        Change::None(version) => (true, ItemStatus::Unchanged, version),
        Change::Create(listing) => (products::create(db, id, &listing, Some(author), now)?, ItemStatus::Created, 1),
        Change::Update(found, listing) => {
            (products::update(db, id, found, &listing, author, now)?, ItemStatus::Updated, found.version + 1)
        }
    };
    match done {
        true => Ok(ItemResult::written(id.clone(), status, version)),
        false => Err(Problem::overloaded(format!("{id} moved under an update"))),
    }
}

/// The batch was stopped by the last result: what came before it is undone, what comes after it was never begun.
fn only_last_counts(ids: Vec<ProductId>, mut results: Vec<ItemResult>) -> Vec<ItemResult> {
    let stopped_by = results.pop();
    let mut all: Vec<ItemResult> = ids.into_iter().map(ItemResult::not_written).collect();
    if let Some(result) = stopped_by {
        all[results.len()] = result;
    }
    all
}
