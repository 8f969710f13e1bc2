//! What the provider's word makes of a refund: the money is given back, or free to be given back again.

use crate::domain::answer::Answer;
use crate::domain::confirmation::FromCommitting;
use crate::domain::error::Problem;
use crate::domain::payment::Decision;
use crate::domain::time::Timestamp;
use crate::store::refunds::{self, AnswerOn, RefundRow};
use crate::store::{Db, claims, confirmations, orders};

/// Writes the decision and its effect. None when the refund was decided before: nothing is changed then.
pub fn settle_refund(
    db: &mut Db,
    refund: &RefundRow,
    decision: &Decision,
    request_id: &str,
    now: Timestamp,
) -> Result<Option<Answer>, Problem> {
    orders::lock(db, &refund.order_id)?;
    if !refunds::decide(db, &refund.refund_id, decision, now)? {
        return Ok(None);
    }
    match decision {
        Decision::Succeeded => orders::spend_reserved(db, &refund.order_id, refund.amount_minor)?,
        Decision::Declined(_) => orders::free_reserved(db, &refund.order_id, refund.amount_minor)?,
    };
    let remaining = orders::refundable(db, &refund.order_id, now)?.remaining();
    let answer = match decision {
        Decision::Succeeded => {
            let decided = refunds::find(db, &refund.refund_id)?.ok_or_else(|| Problem::internal("a refund is gone"))?;
            let view = decided.view(remaining)?;
            match refund.confirmation_id {
                Some(_) => Answer::json(200, &view)?,
                None => Answer::json(201, &view)?.at(refund.refund_id.path()),
            }
        }
        Decision::Declined(reason) => {
            let (refund, order) = (refund.refund_id.clone(), refund.order_id.clone());
            Problem::refund_declined(refund, order, remaining, reason.clone()).answer(request_id)?
        }
    };
    keep(db, refund, decision, &answer)?;
    Ok(Some(answer))
}

/// The answer stands on the confirmation where there were two steps, else on the key's claim.
fn keep(db: &mut Db, refund: &RefundRow, decision: &Decision, answer: &Answer) -> Result<(), Problem> {
    let way = match decision {
        Decision::Succeeded => FromCommitting::Confirm,
        Decision::Declined(_) => FromCommitting::Decline,
    };
    let kept = match refund.answer_on()? {
        AnswerOn::Confirmation(confirmation) => confirmations::decide(db, &confirmation, way, answer, None)?,
        AnswerOn::Claim(key) => claims::answer(db, &refund.actor_id, &key, answer)? == 1,
    };
    if kept { Ok(()) } else { Err(Problem::internal(format!("the answer of {} has no place", refund.refund_id))) }
}

/// The answer that was kept.
pub fn kept_answer(db: &mut Db, refund: &RefundRow) -> Result<Answer, Problem> {
    let lost = || Problem::internal(format!("{} is decided without an answer", refund.refund_id));
    match refund.answer_on()? {
        AnswerOn::Confirmation(id) => confirmations::find(db, &id)?.and_then(|found| found.decision).ok_or_else(lost),
        AnswerOn::Claim(key) => {
            let claim = claims::find(db, &refund.actor_id, &key)?.ok_or_else(lost)?;
            claim.answer().ok_or_else(|| Problem::key_expired(claim.resource))
        }
    }
}
