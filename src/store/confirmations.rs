//! Confirmations, and the compare-and-sets that are their only legal moves.

use super::json::Json;
use super::schema::{confirmations, discount_holds, stock_holds};
use super::{Db, on};
use crate::domain::answer::Answer;
use crate::domain::confirmation::{Confirmation, FromCommitting, FromPending, Purpose, Status};
use crate::domain::digest::Digest;
use crate::domain::ids::{AccountId, ActorId, ConfirmationId, OrderId, ProductId, TaskId};
use crate::domain::page::PageRequest;
use crate::domain::plan::{Plan, Warning};
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
    plan: Json<Plan>,
    plan_digest: Digest,
    attempt_digest: Digest,
    warnings: Json<Vec<Warning>>,
    task_id: Option<TaskId>,
    created_at: Timestamp,
    expires_at: Timestamp,
    order_id: Option<OrderId>,
    answer_status: Option<i64>,
    answer_body: Option<String>,
}

impl From<Row> for Confirmation {
    fn from(row: Row) -> Self {
        let status = row.answer_status.and_then(|status| u16::try_from(status).ok());
        Self {
            confirmation_id: row.confirmation_id,
            actor: row.actor_id,
            account: row.account_id,
            purpose: row.purpose,
            status: row.status,
            plan: row.plan.0,
            plan_digest: row.plan_digest,
            attempt_digest: row.attempt_digest,
            warnings: row.warnings.0,
            task: row.task_id,
            created_at: row.created_at,
            expires_at: row.expires_at,
            order_id: row.order_id,
            decision: status.zip(row.answer_body).map(|(status, body)| Answer { status, body, location: None }),
        }
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
    Ok(row.map(Confirmation::from))
}

/// An actor's confirmations, newest first, optionally of one status; the clock decides which are expired.
pub fn list(
    db: &mut Db,
    actor: &ActorId,
    status: Option<Status>,
    page: &PageRequest<ConfirmationId>,
    now: Timestamp,
) -> QueryResult<Vec<Confirmation>> {
    let rows: Vec<Row> = on!(db, |conn| {
        let mut wanted = confirmations::table
            .filter(confirmations::actor_id.eq(actor))
            .order(confirmations::confirmation_id.desc())
            .limit(page.fetch() as i64)
            .select(Row::as_select())
            .into_boxed();
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
    Ok(rows.into_iter().map(Confirmation::from).collect())
}

/// Inserts a pending one.
pub fn insert(db: &mut Db, new: &Confirmation) -> QueryResult<usize> {
    let row = Row {
        confirmation_id: new.confirmation_id.clone(),
        actor_id: new.actor.clone(),
        account_id: new.account.clone(),
        purpose: new.purpose,
        status: Status::Pending,
        plan: Json(new.plan.clone()),
        plan_digest: new.plan_digest.clone(),
        attempt_digest: new.attempt_digest.clone(),
        warnings: Json(new.warnings.clone()),
        task_id: new.task.clone(),
        created_at: new.created_at,
        expires_at: new.expires_at,
        order_id: None,
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
