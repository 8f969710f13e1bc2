//! Reads a confirmation of one's own, or a refund's that one may approve.

use super::{Call, Context};
use crate::domain::actor::Caller;
use crate::domain::answer::Answer;
use crate::domain::confirmation::{Confirmation, Standing};
use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, ConfirmationId};
use crate::domain::refund::Approver;
use crate::store::{Db, confirmations};

pub async fn get_confirmation(context: &Context, call: Call, id: ConfirmationId) -> Result<Answer, Problem> {
    let approver = context.settings.refunds.approver;
    let show = move |db: &mut Db, now| Answer::json(200, &find_readable(db, &call.caller, &id, approver)?.view(now));
    context.store.read(show).await
}

/// One's own; and a refund that one may approve.
fn find_readable(
    db: &mut Db,
    caller: &Caller,
    id: &ConfirmationId,
    approver: Approver,
) -> Result<Confirmation, Problem> {
    confirmations::find(db, id)?
        .filter(|found| found.standing_of(caller, approver) != Standing::Stranger)
        .ok_or_else(|| Problem::not_found("confirmation"))
}

/// Another actor's confirmation looks like none.
pub(super) fn find_own(db: &mut Db, actor: &ActorId, id: &ConfirmationId) -> Result<Confirmation, Problem> {
    confirmations::find(db, id)?
        .filter(|confirmation| confirmation.actor == *actor)
        .ok_or_else(|| Problem::not_found("confirmation"))
}
