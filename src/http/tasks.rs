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

/// Look up a key
///
/// Look up what became of a key, without running anything. Use it when an answer was lost and it isn't certain that
/// sending again is still wanted. `completed` has the stored answer. `in_flight`: the call is running. `unknown`: the
/// money may have moved; send the same call again, with the same key. 404: nothing is kept under the key; the call
/// never arrived, was refused without being stored, or its answer's time is over. 410: a key of money whose answer is
/// no longer kept; look at `resource`. It takes a scope of the operation that the key was used for.
#[utoipa::path(
    operation_id = "get_operation_status",
    tag = "tasks",
    responses((status = 200, description = "What is known of the key's call", body = OperationStatus)),
)]
#[get("/operation-status")]
pub async fn get_operation_status(state: web::Data<State>, request: Checked<Nothing>) -> Result<Reply, Problem> {
    let key = request.named_key()?;
    status::get_operation_status(&state.context, request.call, key).await
}

/// See what a task did
///
/// See what one of one's own tasks did, by operation. Use it after a run to see whether anything was done twice or is
/// still open: it counts the calls that carried this `Agent-Task-Id` and could change something, by how they ended;
/// reads are not counted. More calls than keys means that somebody retried; `in_flight` above zero means that something
/// isn't decided. Counts are kept as long as answers about money (7 days, unless configured otherwise) after the last
/// call; a crash can lose those of the last moment.
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
