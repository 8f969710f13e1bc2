//! Confirmations: list them, read one, cancel one.

use super::State;
use super::checked::{Checked, Input, Nothing, Source};
use super::json::Faults;
use super::query::{Numeral, page, unless_empty};
use crate::domain::answer::Answer;
use crate::domain::confirmation::{ConfirmationView, Status};
use crate::domain::error::Problem;
use crate::domain::ids::ConfirmationId;
use crate::domain::page::PageRequest;
use crate::operations::cancel_confirmation as cancel;
use crate::operations::get_confirmation as get_one;
use crate::operations::list_confirmations::{self as list, ConfirmationList};
use crate::operations::{Context, Reply};
use actix_web::{delete, get, web};
use serde::Deserialize;

/// List confirmations
///
/// List one's own confirmations, newest first; where refunds want a second actor, also those that one may confirm. Use
/// it to find what is pending: each holds stock, or reserves an amount, until it is confirmed, cancelled or expired.
/// `next` in each says what can be done with it. For the next page, send `next_cursor` as `cursor`.
#[utoipa::path(
    operation_id = "list_confirmations",
    tag = "confirmations",
    params(ConfirmationParameters),
    responses((status = 200, description = "One page of them, each as it is now", body = ConfirmationList)),
)]
#[get("/confirmations")]
pub async fn list_confirmations(state: web::Data<State>, request: Checked<ListInput>) -> Result<Answer, Problem> {
    let ListInput { status, page } = request.input;
    list::list_confirmations(&state.context, request.call, status, page).await
}

/// Read a confirmation
///
/// Read a confirmation of one's own. Use it to see where an offer stands before or after confirming it: pending,
/// committing, confirmed, declined, cancelled or expired. `next` says what can be done in that status, `order_id` or
/// `refund_id` what it became. A refund that wants a second actor can be read by those who may confirm it.
#[utoipa::path(
    operation_id = "get_confirmation",
    tag = "confirmations",
    params(("confirmation_id" = ConfirmationId, Path, description = "The confirmation's id")),
    responses((status = 200, description = "The confirmation as it is now", body = ConfirmationView)),
)]
#[get("/confirmations/{confirmation_id}")]
pub async fn get_confirmation(state: web::Data<State>, request: Checked<Nothing>) -> Result<Answer, Problem> {
    let id = request.id(ConfirmationId::parse, "confirmation")?;
    get_one::get_confirmation(&state.context, request.call, id).await
}

/// Cancel a confirmation
///
/// Cancel a pending confirmation: what it holds is free again. Use it when an offer isn't wanted any more, or when a
/// refund's confirmation turned out to be a repeat. No money moves. A repeat answers 404 `nothing_to_cancel`: the state
/// is what was asked for, count it as done. With a key, the repeat replays the 204. What is being confirmed, or is
/// decided, can't be cancelled (409).
#[utoipa::path(
    operation_id = "cancel_confirmation",
    tag = "confirmations",
    params(("confirmation_id" = ConfirmationId, Path, description = "The confirmation's id")),
    responses((status = 204, description = "Cancelled")),
)]
#[delete("/confirmations/{confirmation_id}")]
pub async fn cancel_confirmation(state: web::Data<State>, request: Checked<Nothing>) -> Result<Reply, Problem> {
    let id = request.id(ConfirmationId::parse, "confirmation")?;
    cancel::cancel_confirmation(&state.context, request.call, id).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConfirmationParameters {
    /// Only those of this status; the clock decides what is expired.
    #[serde(default, deserialize_with = "unless_empty")]
    status: Option<Status>,
    /// How many confirmations a page may have.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20, example = 20)]
    #[serde(default, deserialize_with = "unless_empty")]
    limit: Option<Numeral>,
    /// The `next_cursor` of the page before.
    #[param(example = "cnf_019adef6a0c07a3b9d1c6f2b5e8a4d10")]
    cursor: Option<String>,
}

pub struct ListInput {
    status: Option<Status>,
    page: PageRequest<ConfirmationId>,
}

impl Input for ListInput {
    const SOURCE: Source = Source::Query;
    type Raw = ConfirmationParameters;

    fn validate(raw: ConfirmationParameters, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let page = page(&mut faults, raw.limit, raw.cursor.as_deref(), ConfirmationId::parse);
        faults.finish(Some(ListInput { status: raw.status, page }))
    }
}
