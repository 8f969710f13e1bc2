//! Lists the orders of one's account, newest first; with the scope `orders:any`, those of every account.

use super::{Call, Context};
use crate::domain::actor::Scope;
use crate::domain::error::Problem;
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::domain::page::PageRequest;
use crate::store::{Db, orders};
use serde::Serialize;

/// One page of orders.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct OrderList {
    /// Newest first.
    pub orders: Vec<Order>,
    /// Send it as `cursor` for the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<OrderId>,
}

pub async fn list_orders(context: &Context, call: Call, page: PageRequest<OrderId>) -> Result<OrderList, Problem> {
    let list = move |db: &mut Db, now| {
        let own = (!call.caller.scopes.allow(Scope::OrdersAny)).then_some(&call.caller.account);
        let mut orders = orders::list(db, own, &page, now)?;
        let next_cursor = page.cut(&mut orders, |order| order.order_id.clone());
        Ok(OrderList { orders, next_cursor })
    };
    context.store.read(list).await
}
