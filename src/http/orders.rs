//! Orders: read, listed, and sent elsewhere.

use super::State;
use super::address::{AddressBody, address};
use super::checked::{Checked, Input, Nothing, Source};
use super::json::Faults;
use super::query::{Numeral, page, unless_empty};
use crate::domain::address::Address;
use crate::domain::error::Problem;
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::domain::page::PageRequest;
use crate::operations::get_order as get_one;
use crate::operations::list_orders::{self as list, OrderList};
use crate::operations::set_shipping_address::{self as set, ShippingAddress};
use crate::operations::{Context, Reply};
use actix_web::{Responder, get, put, web};
use serde::Deserialize;

/// Read an order
///
/// Read an order: its plan, payment and refunds. Use it after `confirm_checkout`, or before a refund:
/// `remaining_refundable` is what can still be given back. It answers orders of one's account; with the scope
/// `orders:any`, of every account.
#[utoipa::path(
    operation_id = "get_order",
    tag = "orders",
    params(("order_id" = OrderId, Path, description = "The order's id")),
    responses((status = 200, description = "The order", body = Order)),
)]
#[get("/orders/{order_id}")]
pub async fn get_order(state: web::Data<State>, request: Checked<Nothing>) -> Result<impl Responder, Problem> {
    let id = request.id(OrderId::parse, "order")?;
    get_one::get_order(&state.context, request.call, id).await.map(web::Json)
}

/// List orders
///
/// List the orders of one's account, newest first. Use it to find an order whose id was lost, for example after a
/// crash: an order is there as soon as its confirm has succeeded; while a confirm is undecided, that it isn't there
/// proves nothing. With the scope `orders:any`, those of every account. For the next page, send `next_cursor` as
/// `cursor`.
#[utoipa::path(
    operation_id = "list_orders",
    tag = "orders",
    params(OrderParameters),
    responses((status = 200, description = "One page of them", body = OrderList)),
)]
#[get("/orders")]
pub async fn list_orders(
    state: web::Data<State>,
    request: Checked<PageRequest<OrderId>>,
) -> Result<impl Responder, Problem> {
    list::list_orders(&state.context, request.call, request.input).await.map(web::Json)
}

/// Set a shipping address
///
/// Replace an order's whole shipping address. Use it to send an order elsewhere: allowed until the delivery window
/// starts, within the country and region that the plan was priced for. The order is of one's account; with the scope
/// `orders:any`, of every account. A PUT needs no key: a repeat sets what is set already. But the last to arrive wins:
/// with a key, a late retry of an old PUT replays its answer and doesn't overwrite a newer address, as long as answers
/// are kept (`Idempotency-Key-Expires`).
#[utoipa::path(
    operation_id = "set_shipping_address",
    tag = "orders",
    params(("order_id" = OrderId, Path, description = "The order's id")),
    request_body = AddressBody,
    responses((status = 200, description = "The address as it is now", body = ShippingAddress)),
)]
#[put("/orders/{order_id}/shipping-address")]
pub async fn set_shipping_address(state: web::Data<State>, request: Checked<Address>) -> Result<Reply, Problem> {
    let id = request.id(OrderId::parse, "order")?;
    set::set_shipping_address(&state.context, request.call, id, request.input).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OrderParameters {
    /// How many orders a page may have.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20, example = 20)]
    #[serde(default, deserialize_with = "unless_empty")]
    limit: Option<Numeral>,
    /// The `next_cursor` of the page before.
    #[param(example = "ord_019adef6a0c07a3b9d1c6f2b5e8a4d10")]
    cursor: Option<String>,
}

impl Input for PageRequest<OrderId> {
    const SOURCE: Source = Source::Query;
    type Raw = OrderParameters;

    fn validate(raw: OrderParameters, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let page = page(&mut faults, raw.limit, raw.cursor.as_deref(), OrderId::parse);
        faults.finish(Some(page))
    }
}

impl Input for Address {
    type Raw = AddressBody;

    fn validate(body: AddressBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let address = address(&mut faults, "", body);
        faults.finish(address)
    }
}
