//! Refunds: look first, issue, confirm, read.

use super::State;
use super::checked::{Checked, Input, Nothing};
use super::checkout::guards;
use super::json::{Faults, MoneyBody, Object};
use crate::domain::checkout::Guards;
use crate::domain::confirmation::ConfirmationView;
use crate::domain::digest::Digest;
use crate::domain::error::{FaultCode, Problem};
use crate::domain::ids::{ConfirmationId, OrderId, RefundId};
use crate::domain::refund::{Refund, RefundReason, RefundRequest};
use crate::operations::confirm_refund as confirm;
use crate::operations::dry_run_refund::{self as dry_run, DryRunRefund};
use crate::operations::get_refund as get_one;
use crate::operations::issue_refund as issue;
use crate::operations::{Context, Reply};
use actix_web::{Responder, get, post, web};
use serde::Deserialize;

/// Dry-run a refund
///
/// Show the effect of a refund, and whether it would take a confirmation. Use it before `issue_refund`: it says what
/// would be left of the order, and whether a second step is wanted (`because`). It writes nothing, reserves nothing and
/// needs no key. It fails where the refund would, with the same problem, except for the key, `too_many_pending` and
/// what the provider says.
#[utoipa::path(
    operation_id = "dry_run_refund",
    tag = "refunds",
    request_body = RefundBody,
    responses((status = 200, description = "The refund as it would be made now", body = DryRunRefund)),
)]
#[post("/refunds-dry-run")]
pub async fn dry_run_refund(
    state: web::Data<State>,
    request: Checked<RefundRequest>,
) -> Result<impl Responder, Problem> {
    dry_run::dry_run_refund(&state.context, request.call, request.input).await.map(web::Json)
}

/// Refund an order
///
/// Refund an order, in part or in whole, once. Use it when somebody decided to give money back: this moves money. 201:
/// it was given back. 202: not made yet, it takes a second step; the answer is a confirmation, and `because` says why.
/// `threshold`: the order's refunds would add up to more than is given back without a second step. `looks_like`: an
/// equal refund is under way or succeeded a short while ago (`similar`). If this is a repeat, look at that one and
/// cancel this confirmation; if it is really wanted, `confirm_refund` makes it. After a lost answer send the same
/// request with the same key, never with a new one. On 503 `outcome_unknown` the money may have moved: send it again,
/// with the same key.
#[utoipa::path(
    operation_id = "issue_refund",
    tag = "refunds",
    request_body = RefundBody,
    responses(
        (
            status = 201,
            description = "The money was given back",
            body = Refund,
        ),
        (
            status = 202,
            description = "Nothing moved yet: confirm it, or cancel it",
            body = ConfirmationView,
        ),
    ),
)]
#[post("/refunds")]
pub async fn issue_refund(state: web::Data<State>, request: Checked<RefundRequest>) -> Result<Reply, Problem> {
    issue::issue_refund(&state.context, request.call, request.input).await
}

/// Confirm a refund
///
/// Confirm a refund that took two steps: give the money back, once. Use it for a confirmation that `issue_refund`
/// answered with 202, once a second look says that the refund is wanted: this moves money. Who may confirm is the
/// server's policy: the proposer, or another actor of the same account (403 `approver_must_differ`). The confirmation
/// is its own key: a repeat, under any key or none and however late, gets the same answer. On 503 `outcome_unknown` the
/// money may have moved: send the same confirm again until it is decided. The optional body guards against confirming
/// another refund than the one that was shown. Otherwise cancel it with `cancel_confirmation`.
#[utoipa::path(
    operation_id = "confirm_refund",
    tag = "refunds",
    params(("confirmation_id" = ConfirmationId, Path, description = "The confirmation's id")),
    request_body = Option<RefundGuardsBody>,
    responses((status = 200, description = "The money was given back", body = Refund)),
)]
#[post("/confirm-refund/{confirmation_id}")]
pub async fn confirm_refund(state: web::Data<State>, request: Checked<RefundGuards>) -> Result<Reply, Problem> {
    let id = request.id(ConfirmationId::parse, "confirmation")?;
    confirm::confirm_refund(&state.context, request.call, id, request.input.0).await
}

/// Read a refund
///
/// Read one refund: how much, why, and what became of it. Use it to see what became of one, for example of those that
/// `similar` names: `pending` (sent to the provider, whose word is awaited), `succeeded` or `declined`. It answers
/// refunds of orders of one's account; with the scope `orders:any`, of every account.
#[utoipa::path(
    operation_id = "get_refund",
    tag = "refunds",
    params(("refund_id" = RefundId, Path, description = "The refund's id")),
    responses((status = 200, description = "The refund as it is now", body = Refund)),
)]
#[get("/refunds/{refund_id}")]
pub async fn get_refund(state: web::Data<State>, request: Checked<Nothing>) -> Result<impl Responder, Problem> {
    let id = request.id(RefundId::parse, "refund")?;
    get_one::get_refund(&state.context, request.call, id).await.map(web::Json)
}

/// What to give back, and why.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RefundInput)]
pub struct RefundBody {
    /// The order that is refunded.
    #[schema(value_type = OrderId)]
    order_id: String,
    /// More than zero, in the order's currency.
    #[schema(value_type = MoneyBody)]
    amount: Object<MoneyBody>,
    /// Why money is given back.
    reason: RefundReason,
    /// The reason in your own words; shown to people.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "The handle was broken")]
    note: Option<String>,
}

/// What the refund is believed to be.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RefundGuards)]
pub struct RefundGuardsBody {
    /// Refuse (409 `confirmation_mismatch`) if the amount is another one.
    #[schema(value_type = Option<MoneyBody>)]
    expected_amount: Option<Object<MoneyBody>>,
    /// Refuse (409 `confirmation_mismatch`) if the refund is another one.
    #[schema(value_type = Option<Digest>)]
    expected_plan_digest: Option<String>,
}

pub struct RefundGuards(Guards);

impl Input for RefundRequest {
    type Raw = RefundBody;

    fn validate(body: RefundBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let order_id = faults.parsed("/order_id", OrderId::parse(&body.order_id), "an order's id (ord_…)");
        let amount = faults.money("/amount", body.amount.0);
        if amount.is_some_and(|amount| amount.is_zero()) {
            faults.add("/amount/amount", FaultCode::OutOfRange, "Expected more than zero.");
        }
        let note = body.note.and_then(|note| faults.text("/note", note));
        let request = order_id.zip(amount);
        let request = request.map(|(order_id, amount)| RefundRequest { order_id, amount, reason: body.reason, note });
        faults.finish(request)
    }
}

impl Input for RefundGuards {
    type Raw = RefundGuardsBody;

    fn absent() -> Option<Self> {
        Some(Self(Guards::default()))
    }

    fn validate(body: RefundGuardsBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let guards = guards(&mut faults, "/expected_amount", body.expected_amount, body.expected_plan_digest);
        faults.finish(Some(Self(guards)))
    }
}
