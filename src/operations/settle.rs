//! What a decided payment becomes: the one place that knows what each kind is for.

use super::settle_checkout::settle_checkout;
use super::settle_refund::{self, settle_refund};
use crate::domain::answer::Answer;
use crate::domain::confirmation::Confirmation;
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, RefundId};
use crate::domain::payment::Decision;
use crate::domain::time::Timestamp;
use crate::store::payments::{PaymentRow, Subject};
use crate::store::refunds::RefundRow;
use crate::store::{Db, confirmations, refunds};

/// Writes the decision and its effect. None when it was decided before: nothing is changed then.
pub fn settle(
    db: &mut Db,
    payment: &PaymentRow,
    decision: &Decision,
    request_id: &str,
    now: Timestamp,
) -> Result<Option<Answer>, Problem> {
    match payment.subject()? {
        Subject::Charge(id) => {
            let confirmation = find_confirmation(db, &id)?;
            settle_checkout(db, &confirmation, Some(&payment.payment_id), decision, request_id, now)
        }
        Subject::Refund(id) => {
            let refund = find_refund(db, &id)?;
            settle_refund(db, &refund, decision, request_id, now)
        }
    }
}

/// The answer that was kept when it was decided.
pub fn kept_answer(db: &mut Db, payment: &PaymentRow) -> Result<Answer, Problem> {
    match payment.subject()? {
        Subject::Charge(id) => find_confirmation(db, &id)?
            .decision
            .ok_or_else(|| Problem::internal(format!("{} is decided without an answer", payment.payment_id))),
        Subject::Refund(id) => {
            let refund = find_refund(db, &id)?;
            settle_refund::kept_answer(db, &refund)
        }
    }
}

fn find_confirmation(db: &mut Db, id: &ConfirmationId) -> Result<Confirmation, Problem> {
    confirmations::find(db, id)?.ok_or_else(|| Problem::internal(format!("{id} is paid for and isn't there")))
}

fn find_refund(db: &mut Db, id: &RefundId) -> Result<RefundRow, Problem> {
    refunds::find(db, id)?.ok_or_else(|| Problem::internal(format!("{id} is asked for and isn't there")))
}
