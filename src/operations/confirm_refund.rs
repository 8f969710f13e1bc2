//! The second step of a high-stakes refund: gives back what was reserved. Who takes it is the policy's word.

use super::confirm::{TwoStep, confirm};
use super::issue_refund::{LOOKALIKE_WAIT, send};
use super::phases::{Asking, Next};
use super::{Call, Context, Reply, Settings};
use crate::domain::actor::Caller;
use crate::domain::checkout::Guards;
use crate::domain::confirmation::{Confirmation, Offer, Purpose};
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, RefundId};
use crate::domain::operation::Operation;
use crate::domain::refund::{Approver, RefundStatus};
use crate::domain::time::Timestamp;
use crate::store::refunds::{self, RefundRow};
use crate::store::{Db, confirmations, holds};

pub async fn confirm_refund(
    context: &Context,
    call: Call,
    id: ConfirmationId,
    guards: Guards,
) -> Result<Reply, Problem> {
    confirm::<ConfirmRefund>(context, call, id, guards).await
}

struct ConfirmRefund;

impl TwoStep for ConfirmRefund {
    const OPERATION: Operation = Operation::ConfirmRefund;
    const PURPOSE: Purpose = Purpose::Refund;

    fn find(db: &mut Db, caller: &Caller, id: &ConfirmationId, settings: Settings) -> Result<Confirmation, Problem> {
        let found = confirmations::find(db, id)?.ok_or_else(|| Problem::not_found("confirmation"))?;
        let (own, same_account) = (found.actor == caller.actor, found.account == caller.account);
        match (found.offer.purpose(), settings.refunds.approver) {
            (Purpose::Refund, Approver::Other) if own => Err(Problem::approver_must_differ()),
            (Purpose::Refund, Approver::Other) if same_account => Ok(found),
            (Purpose::Refund | Purpose::Checkout, Approver::Same | Approver::Other) if own => Ok(found),
            (Purpose::Refund | Purpose::Checkout, Approver::Same | Approver::Other) => {
                Err(Problem::not_found("confirmation"))
            }
        }
    }

    /// The reservation becomes the refund's. An equal one that is undecided forbids it.
    fn start(
        db: &mut Db,
        confirmation: &Confirmation,
        _: &str,
        asking: &Asking,
        now: Timestamp,
    ) -> Result<Next, Problem> {
        let id = &confirmation.confirmation_id;
        let Offer::Refund(offer) = &confirmation.offer else {
            return Err(Problem::internal(format!("{id} is not a refund's")));
        };
        let request = &offer.refund;
        if asking.settings.refunds.looks_for_repeats() {
            let pending = refunds::pending(db, &request.order_id, request.amount)?;
            if let Some(other) = pending {
                return Err(Problem::refund_attempt_pending(other, LOOKALIKE_WAIT));
            }
        }
        let refund = RefundRow {
            refund_id: RefundId::generate(),
            order_id: request.order_id.clone(),
            actor_id: confirmation.actor.clone(),
            confirmation_id: Some(id.clone()),
            idempotency_key: None,
            amount_minor: request.amount.minor(),
            currency: request.amount.currency(),
            reason: request.reason,
            note: request.note.clone(),
            status: RefundStatus::Pending,
            created_at: now,
            decided_at: None,
        };
        holds::keep_reserved(db, id)?;
        let attempt = send(db, &refund, request.amount, asking, now)?;
        confirmations::set_refund(db, id, &refund.refund_id)?;
        Ok(Next::Ask(attempt))
    }
}
