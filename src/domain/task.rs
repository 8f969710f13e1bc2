//! What the calls of one agent task came to, so that a rising count of retries is seen.

use super::ids::{ActorId, TaskId};
use super::operation::Operation;
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;
use std::collections::BTreeMap;

words! {
    /// How one call ended.
    pub enum Outcome {
        /// It did what was asked.
        Executed = "executed",
        /// With the answer of an earlier call.
        Replayed = "replayed",
        /// It ended in a 4xx: what was asked was not done.
        Refused = "refused",
        /// Undecided: an earlier call is still running, or whether it took effect is not known yet.
        InFlight = "in_flight",
        /// Something went wrong on our side.
        Failed = "failed",
    }
}

/// What calls are counted by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Counted {
    pub actor: ActorId,
    pub task: TaskId,
    pub operation: Operation,
    /// The key; where none was sent, the id in the path.
    pub subject: String,
}

/// Calls, by how they ended. `calls` are `executed` + `replayed` + `refused` + `failed` + those that ended undecided.
#[derive(Clone, Copy, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = TaskCalls)]
pub struct Calls {
    /// All of them: those that are counted below, and those that ended undecided.
    #[schema(minimum = 0, example = 3)]
    pub calls: i64,
    /// Those that did something.
    #[schema(minimum = 0, example = 1)]
    pub executed: i64,
    /// Those that were answered with an earlier call's answer. Many of them: somebody retries.
    #[schema(minimum = 0, example = 2)]
    pub replayed: i64,
    /// Those that ended in a problem of the request or of the state.
    #[schema(minimum = 0, example = 0)]
    pub refused: i64,
    /// Those that ended in a problem of ours.
    #[schema(minimum = 0, example = 0)]
    pub failed: i64,
    /// How the last of them ended.
    pub last_outcome: Outcome,
    /// When that was.
    pub last_at: Timestamp,
}

impl Calls {
    pub fn one(outcome: Outcome, at: Timestamp) -> Self {
        let is = |other| i64::from(outcome == other);
        Self {
            calls: 1,
            executed: is(Outcome::Executed),
            replayed: is(Outcome::Replayed),
            refused: is(Outcome::Refused),
            failed: is(Outcome::Failed),
            last_outcome: outcome,
            last_at: at,
        }
    }

    pub fn add(&mut self, other: &Calls) {
        self.calls += other.calls;
        self.executed += other.executed;
        self.replayed += other.replayed;
        self.refused += other.refused;
        self.failed += other.failed;
        if other.last_at >= self.last_at {
            (self.last_outcome, self.last_at) = (other.last_outcome, other.last_at);
        }
    }
}

/// What one task did.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Task {
    /// The `Agent-Task-Id` of its calls.
    pub task_id: TaskId,
    /// One an operation that was called.
    pub operations: Vec<TaskOperation>,
}

/// The task's calls of one operation.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct TaskOperation {
    /// What was called.
    pub operation_id: Operation,
    /// Distinct keys; a call without one counts by the resource in its path.
    #[schema(minimum = 0, example = 1)]
    pub keys: i64,
    /// Keys (not calls) whose last call ended undecided: ask again with the same key.
    #[schema(minimum = 0, example = 0)]
    pub in_flight: i64,
    #[serde(flatten)]
    pub sum: Calls,
}

impl Task {
    /// Adds up the keys of each operation.
    pub fn of(task_id: TaskId, keys: impl IntoIterator<Item = (Operation, Calls)>) -> Self {
        let mut operations: BTreeMap<Operation, TaskOperation> = BTreeMap::new();
        for (operation_id, calls) in keys {
            let in_flight = i64::from(calls.last_outcome == Outcome::InFlight);
            let first = TaskOperation { operation_id, keys: 1, in_flight, sum: calls };
            let more = |operation: &mut TaskOperation| {
                operation.keys += 1;
                operation.in_flight += in_flight;
                operation.sum.add(&calls);
            };
            operations.entry(operation_id).and_modify(more).or_insert(first);
        }
        Self { task_id, operations: operations.into_values().collect() }
    }
}
