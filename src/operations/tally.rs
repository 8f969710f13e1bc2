//! Counts the calls of agent tasks, without a write on any call's path: counts gather in memory and are written down by
//! a worker, and when the server stops. A crash loses what was gathered since, and a batch whose commit ended in an error
//! may be counted twice; nothing is decided by counts.

use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, TaskId};
use crate::domain::operation::Operation;
use crate::domain::task::{Calls, Counted, Task};
use crate::effects::Effect;
use crate::store::{Db, Store, tasks};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::RwLock;

/// Keys gathered at once. A second's worth of calls is far below; beyond it calls go uncounted.
const MAX_GATHERED: usize = 20_000;
/// Counts in one transaction: small, so that callers aren't kept waiting behind it.
const BATCH: usize = 200;

type Counts = HashMap<Counted, Calls>;

/// Cheap to clone.
#[derive(Clone, Default)]
pub struct Tally {
    gathered: Arc<Mutex<Counts>>,
    /// Taken from `gathered` and not in the database yet. Whoever reads both holds this lock, so that a count is seen
    /// in exactly one of the three places.
    leaving: Arc<RwLock<Vec<(Counted, Calls)>>>,
}

impl Tally {
    /// Counts a call, if it is of an operation that can change something.
    pub fn count(&self, counted: Counted, call: Calls) {
        if counted.operation.profile().effect == Effect::Pure {
            return;
        }
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        if gathered.len() < MAX_GATHERED || gathered.contains_key(&counted) {
            gathered.entry(counted).and_modify(|calls| calls.add(&call)).or_insert(call);
        }
    }

    /// Writes down what was gathered. What can't be written now is tried again the next time.
    pub async fn flush(&self, store: &Store) -> Result<(), Problem> {
        let mut leaving = self.leaving.write().await;
        if leaving.is_empty() {
            leaving.extend(self.gathered.lock().unwrap_or_else(PoisonError::into_inner).drain());
            leaving.sort_by(|(one, _), (other, _)| one.cmp(other)); // so that instances take the rows in one order
        }
        while !leaving.is_empty() {
            let batch = leaving[leaving.len().saturating_sub(BATCH)..].to_vec();
            let left = leaving.len() - batch.len();
            let job = move |db: &mut Db, _| {
                for (counted, calls) in &batch {
                    tasks::add(db, counted, calls)?;
                }
                Ok(())
            };
            store.write_when_room(job).await?;
            leaving.truncate(left);
        }
        Ok(())
    }

    /// What one task of an actor did, up to now.
    pub async fn task(&self, store: &Store, actor: ActorId, task: TaskId) -> Result<Task, Problem> {
        let leaving = self.leaving.read().await;
        let (of, named) = (actor.clone(), task.clone());
        let written = store.read(move |db, _| Ok(tasks::of(db, &of, &named)?)).await?;
        let mut sums: HashMap<(Operation, String), Calls> = written.into_iter().collect();
        let gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        for (counted, calls) in leaving.iter().map(|(counted, calls)| (counted, calls)).chain(gathered.iter()) {
            if counted.actor == actor && counted.task == task {
                let subject = (counted.operation, counted.subject.clone());
                sums.entry(subject).and_modify(|sum| sum.add(calls)).or_insert(*calls);
            }
        }
        Ok(Task::of(task, sums.into_iter().map(|((operation, _), calls)| (operation, calls))))
    }
}
