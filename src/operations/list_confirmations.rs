//! Lists one's own confirmations, newest first; with them, the refunds that one may approve.

use super::{Call, Context};
use crate::domain::actor::{Caller, Scope};
use crate::domain::answer::Answer;
use crate::domain::confirmation::{ConfirmationView, Status};
use crate::domain::error::Problem;
use crate::domain::ids::ConfirmationId;
use crate::domain::page::PageRequest;
use crate::domain::refund::Approver;
use crate::store::Db;
use crate::store::confirmations::{self, Whose};
use serde::Serialize;

/// One page of one's own confirmations.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ConfirmationList<'a> {
    /// Newest first.
    pub confirmations: Vec<ConfirmationView<'a>>,
    /// Send it as `cursor` for the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<ConfirmationId>,
}

pub async fn list_confirmations(
    context: &Context,
    call: Call,
    status: Option<Status>,
    page: PageRequest<ConfirmationId>,
) -> Result<Answer, Problem> {
    let approver = context.settings.refunds.approver;
    let list = move |db: &mut Db, now| {
        let Caller { actor, account, scopes } = &call.caller;
        let whose = match approver {
            Approver::Other if scopes.allow(Scope::RefundsConfirm) => Whose::OwnAndRefundsOf(actor, account),
            Approver::Same | Approver::Other => Whose::Own(actor),
        };
        let mut found = confirmations::list(db, whose, status, &page, now)?;
        let next_cursor = page.cut(&mut found, |confirmation| confirmation.confirmation_id.clone());
        let confirmations = found.iter().map(|confirmation| confirmation.view(now)).collect();
        Answer::json(200, &ConfirmationList { confirmations, next_cursor })
    };
    context.store.read(list).await
}
