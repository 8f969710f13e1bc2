//! Reads a confirmation of one's own.

use super::{Call, Context};
use crate::domain::answer::Answer;
use crate::domain::confirmation::Confirmation;
use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, ConfirmationId};
use crate::store::{Db, confirmations};

pub async fn get_confirmation(context: &Context, call: Call, id: ConfirmationId) -> Result<Answer, Problem> {
    let show = move |db: &mut Db, now| Answer::json(200, &find_own(db, &call.caller.actor, &id)?.view(now));
    context.store.read(show).await
}

/// Another actor's confirmation looks like none.
pub(super) fn find_own(db: &mut Db, actor: &ActorId, id: &ConfirmationId) -> Result<Confirmation, Problem> {
    confirmations::find(db, id)?
        .filter(|confirmation| confirmation.actor == *actor)
        .ok_or_else(|| Problem::not_found("confirmation"))
}
