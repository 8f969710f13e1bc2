//! What a decided payment makes of a checkout's confirmation: an order, or nothing held any more.

use crate::domain::answer::Answer;
use crate::domain::confirmation::{Confirmation, FromCommitting, Offer};
use crate::domain::error::Problem;
use crate::domain::ids::{OrderId, PaymentId};
use crate::domain::order::{Confirmed, OrderStatus};
use crate::domain::payment::{Decision, Payment};
use crate::domain::plan::Plan;
use crate::domain::time::Timestamp;
use crate::store::holds::{self, Release};
use crate::store::{Db, confirmations, orders};
use std::slice;

/// Writes the decision and its effect. None when the confirmation was decided before: nothing is changed then.
pub fn settle_checkout(
    db: &mut Db,
    confirmation: &Confirmation,
    payment: Option<&PaymentId>,
    decision: &Decision,
    request_id: &str,
    now: Timestamp,
) -> Result<Option<Answer>, Problem> {
    match decision {
        Decision::Succeeded => confirm(db, confirmation, payment, now),
        Decision::Declined(reason) => decline(db, confirmation, reason, request_id),
    }
}

/// The plan that a checkout's confirmation holds.
pub fn plan_of(confirmation: &Confirmation) -> Result<&Plan, Problem> {
    match &confirmation.offer {
        Offer::Checkout(plan) => Ok(plan),
        Offer::Refund(_) => Err(Problem::internal(format!("{} is not a checkout's", confirmation.confirmation_id))),
    }
}

/// The order, and the units out of stock.
fn confirm(
    db: &mut Db,
    confirmation: &Confirmation,
    payment: Option<&PaymentId>,
    now: Timestamp,
) -> Result<Option<Answer>, Problem> {
    let (id, plan) = (&confirmation.confirmation_id, plan_of(confirmation)?);
    let order_id = OrderId::generate();
    let confirmed = Confirmed {
        order_id: &order_id,
        confirmation_id: id,
        status: OrderStatus::Confirmed,
        total: plan.total,
        payment: payment.cloned().map(|id| Payment::captured(id, plan.total)),
        plan,
    };
    let answer = Answer::json(200, &confirmed)?;
    if !confirmations::decide(db, id, FromCommitting::Confirm, &answer, Some(&order_id))? {
        return Ok(None);
    }
    orders::insert(db, &order_id, confirmation, plan, payment, now)?;
    holds::release(db, slice::from_ref(id), Release::Sold)?;
    Ok(Some(answer))
}

/// What was held is free again.
fn decline(
    db: &mut Db,
    confirmation: &Confirmation,
    reason: &str,
    request_id: &str,
) -> Result<Option<Answer>, Problem> {
    let id = &confirmation.confirmation_id;
    let answer = Problem::payment_declined(id.clone(), reason.to_owned()).answer(request_id)?;
    if !confirmations::decide(db, id, FromCommitting::Decline, &answer, None)? {
        return Ok(None);
    }
    holds::release(db, slice::from_ref(id), Release::Freed)?;
    Ok(Some(answer))
}
