//! Expiry: the clock decides that a confirmation is expired; this writes it down and frees what it held, once.

use super::Context;
use crate::domain::confirmation::Move;
use crate::domain::error::Problem;
use crate::domain::ids::ConfirmationId;
use crate::domain::time::Timestamp;
use crate::store::holds::{self, Release};
use crate::store::{Db, confirmations};

/// Confirmations in one transaction: small, so that callers aren't kept waiting behind it.
const BATCH: i64 = 50;

/// Does nothing to a confirmation that has left `pending` or isn't due.
pub fn expire(db: &mut Db, id: &ConfirmationId, now: Timestamp) -> Result<(), Problem> {
    if confirmations::leave_pending(db, id, Move::Expire, now)? {
        holds::release(db, id, Release::Freed)?;
    }
    Ok(())
}

/// Expires what is due, a batch at a time. Returns how many it found.
pub async fn expire_due(context: &Context) -> Result<usize, Problem> {
    let mut found = 0;
    loop {
        let due = context.store.read(|db, now| Ok(confirmations::due(db, now, BATCH)?)).await?;
        let count = due.len();
        if count > 0 {
            let job = move |db: &mut Db, now| due.iter().try_for_each(|id| expire(db, id, now));
            context.store.write_when_room(job).await?;
        }
        found += count;
        if count < BATCH as usize {
            return Ok(found);
        }
    }
}
