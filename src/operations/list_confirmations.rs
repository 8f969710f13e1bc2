//! Lists one's own confirmations, newest first.

use super::{Call, Context};
use crate::domain::answer::Answer;
use crate::domain::confirmation::{ConfirmationView, Status};
use crate::domain::error::Problem;
use crate::domain::ids::ConfirmationId;
use crate::domain::page::PageRequest;
use crate::store::{Db, confirmations};
use serde::Serialize;

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ConfirmationList<'a> {
    pub confirmations: Vec<ConfirmationView<'a>>,
    /// For the next page; null on the last one.
    pub next_cursor: Option<ConfirmationId>,
}

pub async fn list_confirmations(
    context: &Context,
    call: Call,
    status: Option<Status>,
    page: PageRequest<ConfirmationId>,
) -> Result<Answer, Problem> {
    let list = move |db: &mut Db, now| {
        let mut found = confirmations::list(db, &call.caller.actor, status, &page, now)?;
        let next_cursor = page.cut(&mut found, |confirmation| confirmation.confirmation_id.clone());
        let confirmations = found.iter().map(|confirmation| confirmation.view(now)).collect();
        Answer::json(200, &ConfirmationList { confirmations, next_cursor })
    };
    context.store.read(list).await
}
