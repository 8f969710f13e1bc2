//! Batch update: one result an item, in the order of the request. Atomic writes all or none; per item, each is written
//! or refused by itself. `set` replaces and never adds: sent again at once, it changes nothing. Sent late, it overwrites
//! what came in between; against that stand the key, and `if_version`, which sees everything but sales.

use super::once::{Keyed, once};
use super::{Call, Context, Reply, expire};
use crate::domain::answer::Answer;
use crate::domain::digest::Fingerprint;
use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, ProductId};
use crate::domain::operation::Operation;
use crate::domain::product_update::{
    BatchMode, BatchUpdate, BatchUpdated, Change, UpdateOutcome, UpdateResult, change,
};
use crate::domain::time::Timestamp;
use crate::store::{Db, confirmations, products};
use serde_json::Value;
use std::collections::BTreeMap;

pub async fn batch_update_products(context: &Context, call: Call, batch: BatchUpdate) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(Operation::BatchUpdateProducts, &[], &batch);
    let keyed = Keyed::of(&call, Operation::BatchUpdateProducts, fingerprint);
    let author = call.clone();
    let effect = move |db: &mut Db, now| update_all(db, &author, &batch, now);
    once(context, call, keyed, effect).await
}

fn update_all(db: &mut Db, author: &Call, batch: &BatchUpdate, now: Timestamp) -> Result<Answer, Problem> {
    let ids: Vec<ProductId> = batch.updates.iter().map(|update| update.product_id.clone()).collect();
    let due = confirmations::due_holding(db, &ids, &[], now)?;
    expire::expire(db, &due, &ids, now)?;
    let found = products::find_listed(db, &ids)?;
    let decided: Vec<_> = batch.updates.iter().map(|update| change(update, found.get(&update.product_id))).collect();
    let stopped = batch.mode == BatchMode::Atomic && decided.iter().any(Result::is_err);
    let mut results = BTreeMap::new(); // by id: the order in which rows are locked, and written
    for (id, decided) in ids.iter().zip(decided).collect::<BTreeMap<_, _>>() {
        let outcome = match decided {
            Err(refusal) => UpdateOutcome::Refused { problem: as_value(&refusal, &author.request_id)? },
            Ok(_) if stopped => UpdateOutcome::NotWritten,
            Ok(change) => write(db, &author.caller.actor, id, change, now)?,
        };
        results.insert(id, outcome);
    }
    let in_order = |id: &ProductId| results.remove(id).map(|outcome| UpdateResult { product_id: id.clone(), outcome });
    let results: Vec<UpdateResult> = ids.iter().filter_map(in_order).collect();
    match stopped {
        true => Err(Problem::batch_stopped(results)),
        false => Answer::json(200, &BatchUpdated { mode: batch.mode, results }),
    }
}

fn as_value(refusal: &Problem, request_id: &str) -> Result<Value, Problem> {
    serde_json::to_value(refusal.body(request_id)).map_err(Problem::internal)
}

fn write(
    db: &mut Db,
    author: &ActorId,
    id: &ProductId,
    change: Change,
    now: Timestamp,
) -> Result<UpdateOutcome, Problem> {
    let outcome = match change {
        Change::Unchanged(version) => Some(UpdateOutcome::Unchanged { version }),
        Change::Create(listing) => {
            products::create(db, id, &listing, Some(author), now)?.map(|version| UpdateOutcome::Created { version })
        }
        Change::Update(found, listing) => {
            products::update(db, id, found, &listing, author, now)?.map(|version| UpdateOutcome::Updated { version })
        }
    };
    outcome.ok_or_else(|| Problem::moved(format!("{id} moved under an update")))
}
