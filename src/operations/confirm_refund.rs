//! The second step of a high-stakes refund: gives back what was reserved. Who takes it is the policy's word.

use super::confirm::{TwoStep, confirm};
use super::get_order::require_visible;
use super::issue_refund::{LOOKALIKE_WAIT, send};
use super::phases::{Asking, Next};
use super::{Call, Context, Reply, Settings};
use crate::domain::actor::Caller;
use crate::domain::checkout::Guards;
use crate::domain::confirmation::{Confirmation, Offer, Purpose, Standing};
use crate::domain::error::Problem;
use crate::domain::ids::ConfirmationId;
use crate::domain::operation::Operation;
use crate::domain::refund::{Approver, RefundOffer, RefundPolicy, RefundRequest};
use crate::domain::time::Timestamp;
use crate::store::refunds::{self, AnswerOn, RefundRow};
use crate::store::{Db, confirmations, holds, orders};

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
        let approver = settings.refunds.approver;
        match found.standing_of(caller, approver) {
            Standing::Proposer if approver == Approver::Other && found.offer.purpose() == Purpose::Refund => {
                Err(Problem::approver_must_differ())
            }
            Standing::Proposer => {
                if let Offer::Refund(offer) = &found.offer {
                    require_visible(db, caller, &offer.refund.order_id)?; // as when it was proposed, also for a replay
                }
                Ok(found)
            }
            Standing::Approver => Ok(found),
            Standing::Stranger => Err(Problem::not_found("confirmation")),
        }
    }

    /// Of its order: equal refunds come one after the other.
    fn lock(db: &mut Db, confirmation: &Confirmation) -> Result<(), Problem> {
        match &confirmation.offer {
            Offer::Refund(offer) => Ok(orders::lock(db, &offer.refund.order_id)?),
            Offer::Checkout(_) => Ok(()),
        }
    }

    /// The reservation becomes the refund's. An equal one that is undecided, or that was made after this was shown, forbids
    /// it.
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
        refuse_repeats(db, offer, asking.settings.refunds, now)?;
        let by = AnswerOn::Confirmation(id.clone());
        let refund = RefundRow::pending(&offer.refund, confirmation.actor.clone(), by, now);
        if holds::hand_over(db, id)? != 1 {
            return Err(Problem::internal(format!("{id} reserves nothing")));
        }
        let attempt = send(db, &refund, offer.refund.amount, asking, now)?;
        confirmations::set_refund(db, id, &refund.refund_id)?;
        Ok(Next::Ask(attempt))
    }
}

fn refuse_repeats(db: &mut Db, offer: &RefundOffer, policy: RefundPolicy, now: Timestamp) -> Result<(), Problem> {
    if !policy.looks_for_repeats() {
        return Ok(());
    }
    let RefundRequest { order_id, amount, .. } = &offer.refund;
    if let Some(other) = refunds::pending(db, order_id, *amount)? {
        return Err(Problem::refund_attempt_pending(other, LOOKALIKE_WAIT));
    }
    let mut unseen = refunds::similar(db, order_id, *amount, now.before(policy.lookalike_window))?;
    unseen.retain(|refund| !offer.similar.contains(refund));
    if unseen.is_empty() { Ok(()) } else { Err(Problem::equal_refund_made(unseen)) }
}
