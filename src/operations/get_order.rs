//! Reads an order of one's account; with the scope `orders:any`, of every account.

use super::{Call, Context};
use crate::domain::actor::Scope;
use crate::domain::error::Problem;
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::store::{Db, orders};

pub async fn get_order(context: &Context, call: Call, id: OrderId) -> Result<Order, Problem> {
    let caller = call.caller;
    let show = move |db: &mut Db, _| {
        orders::find(db, &id)?
            .filter(|(account, _)| *account == caller.account || caller.scopes.allow(Scope::OrdersAny))
            .map(|(_, order)| order)
            .ok_or_else(|| Problem::not_found("order"))
    };
    context.store.read(show).await
}
