//! Reads a refund of one's account's orders; with the scope `orders:any`, of every account's.

use super::get_order::require_visible;
use super::{Call, Context};
use crate::domain::error::Problem;
use crate::domain::ids::RefundId;
use crate::domain::refund::Refund;
use crate::store::{Db, orders, refunds};

pub async fn get_refund(context: &Context, call: Call, id: RefundId) -> Result<Refund, Problem> {
    let show = move |db: &mut Db, now| {
        let refund = refunds::find(db, &id)?.ok_or_else(|| Problem::not_found("refund"))?;
        require_visible(db, &call.caller, &refund.order_id)?;
        let remaining = orders::refundable(db, &refund.order_id, now)?.remaining();
        Ok(refund.view(remaining)?)
    };
    context.store.read(show).await
}
