//! Confirmations: read one, cancel one.

use super::State;
use super::checked::{Checked, NoBody};
use crate::domain::answer::Answer;
use crate::domain::confirmation::ConfirmationView;
use crate::domain::error::Problem;
use crate::domain::ids::ConfirmationId;
use crate::operations::Reply;
use crate::operations::cancel_confirmation as cancel;
use crate::operations::get_confirmation as get_one;
use actix_web::{delete, get, web};

/// Read a confirmation of one's own.
#[utoipa::path(
    operation_id = "get_confirmation",
    tag = "confirmations",
    params(("confirmation_id" = ConfirmationId, Path)),
    responses((status = 200, description = "The confirmation as it is now", body = ConfirmationView)),
)]
#[get("/confirmations/{confirmation_id}")]
pub async fn get_confirmation(state: web::Data<State>, request: Checked<NoBody>) -> Result<Answer, Problem> {
    let id = request.id(ConfirmationId::parse, "confirmation")?;
    get_one::get_confirmation(&state.context, request.call, id).await
}

/// Cancel a pending confirmation: what it holds is free again.
///
/// A repeat answers 404: the state is what was asked for. With a key, the repeat replays the 204.
#[utoipa::path(
    operation_id = "cancel_confirmation",
    tag = "confirmations",
    params(("confirmation_id" = ConfirmationId, Path)),
    responses((status = 204, description = "Cancelled")),
)]
#[delete("/confirmations/{confirmation_id}")]
pub async fn cancel_confirmation(state: web::Data<State>, request: Checked<NoBody>) -> Result<Reply, Problem> {
    let id = request.id(ConfirmationId::parse, "confirmation")?;
    cancel::cancel_confirmation(&state.context, request.call, id).await
}
