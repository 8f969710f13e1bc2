//! What became of a key, and what a task did.

use super::State;
use super::checked::{Checked, Nothing, task_id};
use crate::domain::error::Problem;
use crate::domain::task::Task;
use crate::operations::get_operation_status::{self as status, OperationStatus};
use crate::operations::get_task as get_one;
use actix_web::{Responder, get, web};

/// Look up what became of a key, without running anything.
///
/// 404 if this actor never used it: nothing was done under it. `unknown` means that the money may have moved: send the
/// same call again.
#[utoipa::path(
    operation_id = "get_operation_status",
    tag = "tasks",
    params(("Idempotency-Key" = String, Header, description = "The key to look up")),
    responses((status = 200, description = "What is known of the key's call", body = OperationStatus)),
)]
#[get("/operation-status")]
pub async fn get_operation_status(
    state: web::Data<State>,
    request: Checked<Nothing>,
) -> Result<impl Responder, Problem> {
    let key = request.named_key()?;
    status::get_operation_status(&state.context, request.call, key).await.map(web::Json)
}

/// See what one of one's own tasks did, by operation.
///
/// Counts the calls that carried this `Agent-Task-Id` and could change something; reads are not counted. Counts are kept
/// for a week after the last call, and those of the last second before a crash can be lost.
#[utoipa::path(
    operation_id = "get_task",
    tag = "tasks",
    params(("task_id" = String, Path, description = "The `Agent-Task-Id` of its calls")),
    responses((status = 200, description = "What it did up to now", body = Task)),
)]
#[get("/tasks/{task_id}")]
pub async fn get_task(state: web::Data<State>, request: Checked<Nothing>) -> Result<impl Responder, Problem> {
    let task = request.id(task_id, "task")?;
    get_one::get_task(&state.context, request.call, task).await.map(web::Json)
}
