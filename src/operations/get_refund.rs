//! Reads a refund of one's account's orders; with the scope `orders:any`, of every account's.

use super::get_order::find_visible;
use super::{Call, Context};
use crate::domain::error::Problem;
use crate::domain::ids::RefundId;
use crate::domain::refund::Refund;
use crate::store::{Db, refunds};

pub async fn get_refund(context: &Context, call: Call, id: RefundId) -> Result<Refund, Problem> {
    let show = move |db: &mut Db, now| {
        let refund = refunds::find(db, &id)?.ok_or_else(|| Problem::not_found("refund"))?;
        let order = find_visible(db, &call.caller, &refund.order_id, now)?;
        Ok(refund.view(order.remaining_refundable)?)
    };
    context.store.read(show).await
}
