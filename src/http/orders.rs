//! Orders.

use super::State;
use super::checked::{Checked, NoBody};
use crate::domain::error::Problem;
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::operations::get_order as get_one;
use actix_web::{Responder, get, web};

/// Read an order of one's account.
#[utoipa::path(
    operation_id = "get_order",
    tag = "orders",
    params(("order_id" = OrderId, Path)),
    responses((status = 200, description = "The order", body = Order)),
)]
#[get("/orders/{order_id}")]
pub async fn get_order(state: web::Data<State>, request: Checked<NoBody>) -> Result<impl Responder, Problem> {
    let id = request.id(OrderId::parse, "order")?;
    get_one::get_order(&state.context, request.call, id).await.map(web::Json)
}
