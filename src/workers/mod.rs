//! The workers: expire what is due, recover what is undecided, forget what is old, write down what was counted. None
//! is needed for correctness; each is bounded.

use crate::operations::{Context, expire, forget, phases};
use crate::store::payments;
use futures_util::future::join_all;
use std::pin::Pin;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Payments recovered side by side.
const RECOVERIES: i64 = 16;

type Round = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs all until `stop` is cancelled. A round that has begun is finished.
pub fn start(context: &Context, stop: &CancellationToken) {
    every_interval(context, stop, |context| Box::pin(expire_due(context)));
    every_interval(context, stop, |context| Box::pin(recover_undecided(context)));
    every_interval(context, stop, |context| Box::pin(forget_due(context)));
    every_interval(context, stop, |context| Box::pin(write_tally(context)));
}

fn every_interval(context: &Context, stop: &CancellationToken, round: fn(Context) -> Round) {
    let (context, stop) = (context.clone(), stop.clone());
    let mut ticks = interval(context.settings.worker_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    context.tasks.clone().spawn(async move {
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            round(context.clone()).await;
        }
    });
}

async fn expire_due(context: Context) {
    if let Err(problem) = expire::expire_due(&context).await {
        tracing::warn!(cause = problem.cause, "expiring failed");
    }
}

async fn forget_due(context: Context) {
    if let Err(problem) = forget::forget_due(&context).await {
        tracing::warn!(cause = problem.cause, "forgetting failed");
    }
}

pub async fn write_tally(context: Context) {
    if let Err(problem) = context.tally.flush(&context.store).await {
        tracing::warn!(cause = problem.cause, "counts of tasks are not written yet");
    }
}

/// Undecided payments whose time has come: those of a crash, and those that nobody asks about.
async fn recover_undecided(context: Context) {
    let due = context.store.read(|db, now| Ok(payments::to_recover(db, now, RECOVERIES)?)).await;
    let recover = |id: crate::domain::ids::PaymentId| {
        let context = &context;
        async move {
            // The answer is stored for whoever asks.
            let request_id = format!("recovery-{id}");
            match phases::recover(context, id, &request_id).await {
                Ok(Some(settled)) => tracing::info!(request_id, status = settled.answer.status, "settled"),
                Ok(None) => {}
                Err(problem) => {
                    tracing::warn!(request_id, code = problem.code.as_str(), cause = problem.cause, "not settled yet");
                }
            }
        }
    };
    match due {
        Ok(due) => {
            join_all(due.into_iter().map(recover)).await;
        }
        Err(problem) => tracing::warn!(cause = problem.cause, "recovery failed"),
    }
}
