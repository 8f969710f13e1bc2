//! What the calls of one agent task came to, so that a rising count of retries is seen.

use super::operation::Operation;
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;
use std::collections::BTreeMap;

words! {
    /// How one call ended.
    pub enum Outcome {
        Executed = "executed",
        /// With the answer of an earlier call.
        Replayed = "replayed",
        Refused = "refused",
        /// Without a decision: an earlier call is still running, or the provider's word is not known yet.
        InFlight = "in_flight",
        /// Something went wrong on our side.
        Failed = "failed",
    }
}

/// The calls of one key of one task.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    pub calls: i64,
    pub executed: i64,
    pub replayed: i64,
    pub refused: i64,
    pub failed: i64,
    pub last_outcome: Outcome,
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
    #[schema(example = "task-7f3a")]
    pub task_id: String,
    pub operations: Vec<TaskOperation>,
}

/// The task's calls of one operation. `calls` less the four counts after `keys` ended without a decision.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct TaskOperation {
    pub operation_id: Operation,
    pub calls: i64,
    /// Distinct keys; a call without one counts by the resource in its path.
    pub keys: i64,
    pub executed: i64,
    /// More calls than keys, and most of them replayed: somebody retries.
    pub replayed: i64,
    pub refused: i64,
    /// Answered 5xx, other than undecided.
    pub failed: i64,
    /// Keys whose last call ended without a decision: ask again with the same key.
    pub in_flight: i64,
    pub last_outcome: Outcome,
    pub last_at: Timestamp,
}

impl Task {
    /// Adds up the keys of each operation.
    pub fn of(task_id: String, keys: impl IntoIterator<Item = (Operation, Calls)>) -> Self {
        let mut operations: BTreeMap<Operation, (i64, i64, Calls)> = BTreeMap::new();
        for (operation, calls) in keys {
            let undecided = i64::from(calls.last_outcome == Outcome::InFlight);
            let sum = operations.entry(operation).and_modify(|(_, _, sum)| sum.add(&calls)).or_insert((0, 0, calls));
            sum.0 += 1;
            sum.1 += undecided;
        }
        let operation = |(operation_id, (keys, in_flight, sum)): (Operation, (i64, i64, Calls))| TaskOperation {
            operation_id,
            calls: sum.calls,
            keys,
            executed: sum.executed,
            replayed: sum.replayed,
            refused: sum.refused,
            failed: sum.failed,
            in_flight,
            last_outcome: sum.last_outcome,
            last_at: sum.last_at,
        };
        Self { task_id, operations: operations.into_iter().map(operation).collect() }
    }
}
