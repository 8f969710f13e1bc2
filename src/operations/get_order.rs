//! Reads an order of one's account; with the scope `orders:any`, of every account.

use super::{Call, Context};
use crate::domain::actor::{Caller, Scope};
use crate::domain::error::Problem;
use crate::domain::ids::OrderId;
use crate::domain::order::Order;
use crate::domain::time::Timestamp;
use crate::store::{Db, orders};

pub async fn get_order(context: &Context, call: Call, id: OrderId) -> Result<Order, Problem> {
    context.store.read(move |db, now| find_visible(db, &call.caller, &id, now)).await
}

/// Refuses where [`find_visible`] would, and reads no more than that needs.
pub(super) fn require_visible(db: &mut Db, caller: &Caller, id: &OrderId) -> Result<(), Problem> {
    orders::account_of(db, id)?
        .filter(|account| *account == caller.account || caller.scopes.allow(Scope::OrdersAny))
        .map(|_| ())
        .ok_or_else(|| Problem::not_found("order"))
}

/// Another account's order looks like none.
pub(super) fn find_visible(db: &mut Db, caller: &Caller, id: &OrderId, now: Timestamp) -> Result<Order, Problem> {
    orders::find(db, id, now)?
        .filter(|(account, _)| *account == caller.account || caller.scopes.allow(Scope::OrdersAny))
        .map(|(_, order)| order)
        .ok_or_else(|| Problem::not_found("order"))
}
