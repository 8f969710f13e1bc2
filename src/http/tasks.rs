//! What became of a key, and what a task did.

use super::State;
use super::checked::{Checked, Nothing};
use crate::domain::error::Problem;
use crate::domain::ids::TaskId;
use crate::domain::task::Task;
use crate::operations::Reply;
use crate::operations::get_operation_status::{self as status, OperationStatus};
use crate::operations::get_task as get_one;
use actix_web::{Responder, get, web};

/// Look up what became of a key, without running anything.
///
/// 404 if nothing is known of the key: this actor never used it, or its answer's time is over. `unknown` means that the
/// money may have moved: send the same call again, with the same key.
#[utoipa::path(
    operation_id = "get_operation_status",
    tag = "tasks",
    params(("Idempotency-Key" = String, Header, description = "The key to look up")),
    responses((status = 200, description = "What is known of the key's call", body = OperationStatus)),
)]
#[get("/operation-status")]
pub async fn get_operation_status(state: web::Data<State>, request: Checked<Nothing>) -> Result<Reply, Problem> {
    let key = request.named_key()?;
    status::get_operation_status(&state.context, request.call, key).await
}

/// See what one of one's own tasks did, by operation.
///
/// Counts the calls that carried this `Agent-Task-Id` and could change something; reads are not counted. Counts are kept as long as answers about money (7 days, unless configured otherwise) after the
/// last call; a crash can lose those of the last moment.
#[utoipa::path(
    operation_id = "get_task",
    tag = "tasks",
    params(("task_id" = TaskId, Path, description = "The `Agent-Task-Id` of its calls, percent-encoded")),
    responses((status = 200, description = "What it did up to now", body = Task)),
)]
#[get("/tasks/{task_id}")]
pub async fn get_task(state: web::Data<State>, request: Checked<Nothing>) -> Result<impl Responder, Problem> {
    let task = request.id(TaskId::parse, "task")?;
    get_one::get_task(&state.context, request.call, task).await.map(web::Json)
}
