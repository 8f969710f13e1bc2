//! What one of the caller's own tasks did: the calls that carried its `Agent-Task-Id`, by operation.

use super::{Call, Context};
use crate::domain::error::Problem;
use crate::domain::ids::TaskId;
use crate::domain::task::Task;

pub async fn get_task(context: &Context, call: Call, task: TaskId) -> Result<Task, Problem> {
    let task = context.tally.task(&context.store, call.caller.actor, task).await?;
    if task.operations.is_empty() {
        return Err(Problem::not_found("task"));
    }
    Ok(task)
}
