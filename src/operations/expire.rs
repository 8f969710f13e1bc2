//! Expiry: the clock decides that a confirmation is expired; this writes it down and frees what it held, once.

use super::Context;
use crate::domain::confirmation::FromPending;
use crate::domain::error::Problem;
use crate::domain::ids::{ConfirmationId, ProductId};
use crate::domain::time::Timestamp;
use crate::store::holds::{self, Release};
use crate::store::{Db, confirmations};
use std::collections::BTreeSet;

/// Confirmations in one transaction: small, so that callers aren't kept waiting behind it.
const BATCH: i64 = 50;

/// Moves those that are still pending and due, then frees what they held. Returns how many it moved. `needed` are products
/// that the caller goes on to write: all locks are taken in one order.
pub fn expire(db: &mut Db, due: &[ConfirmationId], needed: &[ProductId], now: Timestamp) -> Result<usize, Problem> {
    holds::lock_orders(db, due)?;
    let mut moved = Vec::new();
    for id in due.iter().collect::<BTreeSet<_>>() {
        if confirmations::leave_pending(db, id, FromPending::Expire, now)? {
            moved.push(id.clone());
        }
    }
    holds::lock_products(db, &moved, needed)?;
    holds::release(db, &moved, Release::Freed)?;
    Ok(moved.len())
}

/// Expires what is due, a batch at a time, as long as there are full batches and they move. Returns how many it moved.
pub async fn expire_due(context: &Context) -> Result<usize, Problem> {
    let mut expired = 0;
    loop {
        let due = context.store.read(|db, now| Ok(confirmations::due(db, now, BATCH)?)).await?;
        if due.is_empty() {
            return Ok(expired);
        }
        let full = due.len() == BATCH as usize;
        let moved = context.store.write_when_room(move |db, now| expire(db, &due, &[], now)).await?;
        expired += moved;
        if !full || moved == 0 {
            return Ok(expired);
        }
    }
}
