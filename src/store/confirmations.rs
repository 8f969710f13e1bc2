//! Confirmations, and the compare-and-sets that are their only legal moves.

use super::json::Json;
use super::schema::{confirmations, discount_holds, refund_holds, stock_holds};
use super::{Db, on};
use crate::domain::answer::Answer;
use crate::domain::confirmation::{Confirmation, FromCommitting, FromPending, Offer, Purpose, Status};
use crate::domain::digest::Digest;
use crate::domain::ids::{AccountId, ActorId, ConfirmationId, OrderId, ProductId, RefundId, TaskId};
use crate::domain::page::PageRequest;
use crate::domain::plan::Warning;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error as DbError};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = confirmations, treat_none_as_default_value = false)]
struct Row {
    confirmation_id: ConfirmationId,
    actor_id: ActorId,
    account_id: AccountId,
    purpose: Purpose,
    status: Status,
    offer: String,
    plan_digest: Digest,
    attempt_digest: Digest,
    warnings: Json<Vec<Warning>>,
    task_id: Option<TaskId>,
    created_at: Timestamp,
    expires_at: Timestamp,
    order_id: Option<OrderId>,
    refund_id: Option<RefundId>,
    answer_status: Option<i64>,
    answer_body: Option<String>,
}

impl Row {
    fn confirmation(self) -> QueryResult<Confirmation> {
        let status = self.answer_status.and_then(|status| u16::try_from(status).ok());
        let offer = Offer::read(self.purpose, &self.offer);
        Ok(Confirmation {
            confirmation_id: self.confirmation_id,
            actor: self.actor_id,
            account: self.account_id,
            status: self.status,
            offer: offer.map_err(|error| DbError::DeserializationError(error.into()))?,
            plan_digest: self.plan_digest,
            attempt_digest: self.attempt_digest,
            warnings: self.warnings.0,
            task: self.task_id,
            created_at: self.created_at,
            expires_at: self.expires_at,
            order_id: self.order_id,
            refund_id: self.refund_id,
            decision: status.zip(self.answer_body).map(|(status, body)| Answer { status, body, location: None }),
        })
    }
}

/// Pending with its time over: the clock has expired it, whether or not that is written down.
#[diesel::dsl::auto_type]
pub(super) fn is_due(now: Timestamp) -> _ {
    let pending: Status = Status::Pending;
    confirmations::status.eq(pending).and(confirmations::expires_at.le(now))
}

/// Pending and before its deadline.
#[diesel::dsl::auto_type]
fn is_live(now: Timestamp) -> _ {
    let pending: Status = Status::Pending;
    confirmations::status.eq(pending).and(confirmations::expires_at.gt(now))
}

pub fn find(db: &mut Db, id: &ConfirmationId) -> QueryResult<Option<Confirmation>> {
    let row: Option<Row> =
        on!(db, |conn| confirmations::table.find(id).select(Row::as_select()).first(conn).optional())?;
    row.map(Row::confirmation).transpose()
}

/// Whose confirmations are listed.
#[derive(Clone, Copy, Debug)]
pub enum Whose<'a> {
    Own(&'a ActorId),
    /// One's own, and the refunds that others of the account have proposed.
    OwnAndRefundsOf(&'a ActorId, &'a AccountId),
}

/// Confirmations, newest first, optionally of one status; the clock decides which are expired.
pub fn list(
    db: &mut Db,
    whose: Whose,
    status: Option<Status>,
    page: &PageRequest<ConfirmationId>,
    now: Timestamp,
) -> QueryResult<Vec<Confirmation>> {
    let rows: Vec<Row> = on!(db, |conn| {
        let mut wanted = confirmations::table
            .order(confirmations::confirmation_id.desc())
            .limit(page.fetch() as i64)
            .select(Row::as_select())
            .into_boxed();
        wanted = match whose {
            Whose::Own(actor) => wanted.filter(confirmations::actor_id.eq(actor)),
            Whose::OwnAndRefundsOf(actor, account) => {
                let refund = confirmations::purpose.eq(Purpose::Refund).and(confirmations::account_id.eq(account));
                wanted.filter(confirmations::actor_id.eq(actor).or(refund))
            }
        };
        if let Some(after) = &page.after {
            wanted = wanted.filter(confirmations::confirmation_id.lt(after));
        }
        wanted = match status {
            None => wanted,
            Some(Status::Pending) => wanted.filter(is_live(now)),
            Some(Status::Expired) => wanted.filter(confirmations::status.eq(Status::Expired).or(is_due(now))),
            Some(other) => wanted.filter(confirmations::status.eq(other)),
        };
        wanted.load(conn)
    })?;
    rows.into_iter().map(Row::confirmation).collect()
}

/// Inserts a pending one.
pub fn insert(db: &mut Db, new: &Confirmation) -> QueryResult<usize> {
    let offer = match &new.offer {
        Offer::Checkout(plan) => serde_json::to_string(plan),
        Offer::Refund(offer) => serde_json::to_string(offer),
    };
    let row = Row {
        confirmation_id: new.confirmation_id.clone(),
        actor_id: new.actor.clone(),
        account_id: new.account.clone(),
        purpose: new.offer.purpose(),
        status: Status::Pending,
        offer: offer.map_err(|error| DbError::SerializationError(error.into()))?,
        plan_digest: new.plan_digest.clone(),
        attempt_digest: new.attempt_digest.clone(),
        warnings: Json(new.warnings.clone()),
        task_id: new.task.clone(),
        created_at: new.created_at,
        expires_at: new.expires_at,
        order_id: None,
        refund_id: None,
        answer_status: None,
        answer_body: None,
    };
    on!(db, |conn| diesel::insert_into(confirmations::table).values(row).execute(conn))
}

/// Leaves `pending`. True for the one caller that made it: state and deadline are tested again in the statement.
pub fn leave_pending(db: &mut Db, id: &ConfirmationId, way: FromPending, now: Timestamp) -> QueryResult<bool> {
    let this = confirmations::table.find(id);
    let to = confirmations::status.eq(way.to());
    let rows = match way {
        FromPending::Expire => on!(db, |conn| diesel::update(this.filter(is_due(now))).set(to).execute(conn)),
        FromPending::Commit | FromPending::Cancel => {
            on!(db, |conn| diesel::update(this.filter(is_live(now))).set(to).execute(conn))
        }
    }?;
    Ok(rows == 1)
}

/// How `pending → committing` ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    Begun,
    /// Someone else moved it first, or its deadline has passed.
    NotPending,
    /// The actor has another undecided attempt at the same purchase.
    AttemptPending,
}

/// `pending → committing`, where the unique index on undecided attempts holds.
pub fn begin_commit(db: &mut Db, id: &ConfirmationId, now: Timestamp) -> QueryResult<Commit> {
    match db.savepoint(|db| leave_pending(db, id, FromPending::Commit, now)) {
        Ok(true) => Ok(Commit::Begun),
        Ok(false) => Ok(Commit::NotPending),
        Err(DbError::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Ok(Commit::AttemptPending),
        Err(error) => Err(error),
    }
}

/// Names the refund that a committing one has become.
pub fn set_refund(db: &mut Db, id: &ConfirmationId, refund: &RefundId) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(confirmations::table.find(id)).set(confirmations::refund_id.eq(refund)).execute(conn)
    })
}

/// Leaves `committing` for good, with the answer that every later confirm of it gets.
pub fn decide(
    db: &mut Db,
    id: &ConfirmationId,
    way: FromCommitting,
    answer: &Answer,
    order: Option<&OrderId>,
) -> QueryResult<bool> {
    on!(db, |conn| {
        diesel::update(confirmations::table.find(id).filter(confirmations::status.eq(Status::Committing)))
            .set((
                confirmations::status.eq(way.to()),
                confirmations::order_id.eq(order),
                confirmations::answer_status.eq(i64::from(answer.status)),
                confirmations::answer_body.eq(&answer.body),
            ))
            .execute(conn)
    })
    .map(|rows| rows == 1)
}

/// The actor's undecided attempt at the same purchase, if there is one.
pub fn find_committing(db: &mut Db, actor: &ActorId, attempt: &Digest) -> QueryResult<Option<ConfirmationId>> {
    on!(db, |conn| {
        confirmations::table
            .filter(confirmations::actor_id.eq(actor))
            .filter(confirmations::attempt_digest.eq(attempt))
            .filter(confirmations::status.eq(Status::Committing))
            .select(confirmations::confirmation_id)
            .first(conn)
            .optional()
    })
}

/// The actor's live pending confirmations with their deadlines, soonest first.
pub fn pending_of(
    db: &mut Db,
    actor: &ActorId,
    now: Timestamp,
    limit: i64,
) -> QueryResult<Vec<(ConfirmationId, Timestamp)>> {
    on!(db, |conn| {
        confirmations::table
            .filter(confirmations::actor_id.eq(actor))
            .filter(is_live(now))
            .order(confirmations::expires_at)
            .select((confirmations::confirmation_id, confirmations::expires_at))
            .limit(limit)
            .load(conn)
    })
}

/// Pending confirmations whose deadline has passed, oldest deadline first.
pub fn due(db: &mut Db, now: Timestamp, limit: i64) -> QueryResult<Vec<ConfirmationId>> {
    on!(db, |conn| {
        confirmations::table
            .filter(is_due(now))
            .order(confirmations::expires_at)
            .select(confirmations::confirmation_id)
            .limit(limit)
            .load(conn)
    })
}

/// The due ones that reserve something of an order, in id order.
pub fn due_reserving(db: &mut Db, order: &OrderId, now: Timestamp) -> QueryResult<Vec<ConfirmationId>> {
    on!(db, |conn| {
        refund_holds::table
            .inner_join(confirmations::table)
            .filter(refund_holds::order_id.eq(order))
            .filter(is_due(now))
            .order(confirmations::confirmation_id)
            .select(confirmations::confirmation_id)
            .load(conn)
    })
}

/// The due ones that hold any of these products or discount codes, in id order.
pub fn due_holding(
    db: &mut Db,
    products: &[ProductId],
    codes: &[String],
    now: Timestamp,
) -> QueryResult<Vec<ConfirmationId>> {
    let mut due: Vec<ConfirmationId> = on!(db, |conn| {
        stock_holds::table
            .inner_join(confirmations::table)
            .filter(stock_holds::product_id.eq_any(products))
            .filter(is_due(now))
            .select(confirmations::confirmation_id)
            .load(conn)
    })?;
    let by_code: Vec<ConfirmationId> = on!(db, |conn| {
        discount_holds::table
            .inner_join(confirmations::table)
            .filter(discount_holds::code.eq_any(codes))
            .filter(is_due(now))
            .select(confirmations::confirmation_id)
            .load(conn)
    })?;
    due.extend(by_code);
    due.sort();
    due.dedup();
    Ok(due)
}
