//! The second step of a checkout: charges the plan's total and makes the order.

use super::confirm::{TwoStep, confirm};
use super::get_confirmation::find_own;
use super::phases::{self, Asking, Next, Settled};
use super::settle_checkout::{plan_of, settle_checkout};
use super::{Call, Context, Reply, Settings};
use crate::domain::actor::Caller;
use crate::domain::answer::Delivery;
use crate::domain::checkout::Guards;
use crate::domain::confirmation::{Confirmation, Purpose};
use crate::domain::error::Problem;
use crate::domain::ids::ConfirmationId;
use crate::domain::operation::Operation;
use crate::domain::payment::{Charge, Decision};
use crate::domain::time::Timestamp;
use crate::store::Db;
use crate::store::payments::Subject;

pub async fn confirm_checkout(
    context: &Context,
    call: Call,
    id: ConfirmationId,
    guards: Guards,
) -> Result<Reply, Problem> {
    confirm::<ConfirmCheckout>(context, call, id, guards).await
}

struct ConfirmCheckout;

impl TwoStep for ConfirmCheckout {
    const OPERATION: Operation = Operation::ConfirmCheckout;
    const PURPOSE: Purpose = Purpose::Checkout;

    fn find(db: &mut Db, caller: &Caller, id: &ConfirmationId, _: Settings) -> Result<Confirmation, Problem> {
        find_own(db, &caller.actor, id)
    }

    /// A total of zero asks nobody.
    fn start(
        db: &mut Db,
        confirmation: &Confirmation,
        request_id: &str,
        asking: &Asking,
        now: Timestamp,
    ) -> Result<Next, Problem> {
        let (id, plan) = (&confirmation.confirmation_id, plan_of(confirmation)?);
        if plan.total.is_zero() {
            let answer = settle_checkout(db, confirmation, None, &Decision::Succeeded, request_id, now)?
                .ok_or_else(|| Problem::internal(format!("{id} was not committing")))?;
            return Ok(Next::Reply(Settled { answer, delivery: Delivery::Executed }));
        }
        let charge = Charge { amount: plan.total, method: plan.payment_method.clone() };
        let bytes = asking.provider.charge_request(&charge);
        phases::request(db, Subject::Charge(id.clone()), plan.total, bytes, asking, now).map(Next::Ask)
    }
}
