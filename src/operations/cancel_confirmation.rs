//! Cancel: the natural idempotency of DELETE (RFC 9110, 9.2.2). A repeat finds the state that it asked for: 404.

use super::confirm::subject;
use super::get_confirmation::find_own;
use super::once::{IN_FLIGHT_WAIT, Keyed, once};
use super::{Call, Context, Reply};
use crate::domain::answer::Answer;
use crate::domain::confirmation::{Confirmation, FromPending, Status};
use crate::domain::digest::Fingerprint;
use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, ConfirmationId};
use crate::domain::operation::Operation;
use crate::domain::time::Timestamp;
use crate::store::holds::{self, Release};
use crate::store::{Db, confirmations, payments};

pub async fn cancel_confirmation(context: &Context, call: Call, id: ConfirmationId) -> Result<Reply, Problem> {
    let fingerprint = Fingerprint::of(Operation::CancelConfirmation, &[id.as_str()], &());
    let keyed = Keyed::of(&call, Operation::CancelConfirmation, fingerprint).map(|keyed| keyed.about(id.path()));
    let actor = call.caller.actor.clone();
    let effect = move |db: &mut Db, now| cancel(db, &actor, &id, now);
    once(context, call, keyed, effect).await
}

fn cancel(db: &mut Db, actor: &ActorId, id: &ConfirmationId, now: Timestamp) -> Result<Answer, Problem> {
    let confirmation = find_own(db, actor, id)?;
    match confirmation.status_at(now) {
        Status::Cancelled | Status::Expired => return Err(Problem::nothing_to_cancel()),
        Status::Committing => return Err(too_late(db, &confirmation, now)?),
        Status::Confirmed | Status::Declined => {
            return Err(Problem::confirmation_decided(confirmation.order_id, confirmation.refund_id));
        }
        Status::Pending => {}
    }
    let this = std::slice::from_ref(id);
    holds::lock_orders(db, this)?;
    if !confirmations::leave_pending(db, id, FromPending::Cancel, now)? {
        return Err(Problem::moved(format!("{id} moved under a cancel")));
    }
    holds::release(db, this, Release::Freed)?;
    Ok(Answer::no_content())
}

/// A wait, unless nothing is sent any more: then only a person can end it.
fn too_late(db: &mut Db, confirmation: &Confirmation, now: Timestamp) -> Result<Problem, Problem> {
    let payment = payments::find_by_subject(db, &subject(confirmation)?)?;
    let too_old = payment.is_some_and(|payment| now >= payment.provider_key_expires_at);
    Ok(match too_old {
        true => Problem::payment_needs_review(),
        false => Problem::too_late_to_cancel(&confirmation.confirmation_id, IN_FLIGHT_WAIT),
    })
}
