//! Set: the natural idempotency of PUT (RFC 9110, 9.2.2). It replaces the whole address, so a repeat sets what is set
//! already. What it can't tell by itself is a late repeat from a new intent: with a key, a late retry of an old PUT
//! replays its answer and doesn't overwrite a newer address.

use super::get_order::{find_visible, require_visible};
use super::once::{Keyed, once};
use super::{Call, Context, Reply};
use crate::domain::actor::Caller;
use crate::domain::address::Address;
use crate::domain::answer::Answer;
use crate::domain::digest::Fingerprint;
use crate::domain::error::Problem;
use crate::domain::ids::OrderId;
use crate::domain::operation::Operation;
use crate::domain::time::Timestamp;
use crate::store::{Db, orders};
use serde::Serialize;

/// Where an order goes now.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ShippingAddress<'a> {
    /// The order.
    pub order_id: &'a OrderId,
    /// The whole address, as it was set.
    pub shipping_address: &'a Address,
}

pub async fn set_shipping_address(
    context: &Context,
    call: Call,
    id: OrderId,
    address: Address,
) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(Operation::SetShippingAddress, &[id.as_str()], &address);
    let keyed = Keyed::of(&call, Operation::SetShippingAddress, fingerprint).map(|keyed| keyed.about(id.path()));
    let (caller, order) = (call.caller.clone(), id.clone());
    let visible = caller.clone();
    context.store.read(move |db, _| require_visible(db, &visible, &order)).await?; // also for a replay
    let effect = move |db: &mut Db, now| set(db, &caller, &id, &address, now);
    once(context, call, keyed, effect).await
}

fn set(db: &mut Db, caller: &Caller, id: &OrderId, address: &Address, now: Timestamp) -> Result<Answer, Problem> {
    let order = find_visible(db, caller, id, now)?;
    if now.date() >= order.plan.delivery.earliest {
        return Err(Problem::delivery_started());
    }
    let priced = &order.plan.shipping_address;
    if (&address.country, &address.region) != (&priced.country, &priced.region) {
        return Err(Problem::address_changes_price(&priced.country, priced.region.as_deref()));
    }
    orders::set_shipping_address(db, id, address)?;
    Answer::json(200, &ShippingAddress { order_id: id, shipping_address: address })
}
