//! Refunds: what was sent to the provider to be given back, and what is known of it.

use super::catalogue::money;
use super::schema::refunds;
use super::{Db, on};
use crate::domain::ids::{ActorId, ConfirmationId, OrderId, RefundId};
use crate::domain::key::IdempotencyKey;
use crate::domain::money::{Currency, Money};
use crate::domain::payment::Decision;
use crate::domain::refund::{Refund, RefundReason, RefundRequest, RefundStatus};
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use diesel::result::Error as DbError;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = refunds, treat_none_as_default_value = false)]
pub struct RefundRow {
    pub refund_id: RefundId,
    pub order_id: OrderId,
    pub actor_id: ActorId,
    pub confirmation_id: Option<ConfirmationId>,
    pub idempotency_key: Option<IdempotencyKey>,
    pub amount_minor: i64,
    pub currency: Currency,
    pub reason: RefundReason,
    pub note: Option<String>,
    pub status: RefundStatus,
    pub created_at: Timestamp,
    pub decided_at: Option<Timestamp>,
}

/// Where the answer of a refund's call is kept.
#[derive(Clone, Debug)]
pub enum AnswerOn {
    /// One step: on the claim of this key of the actor's.
    Claim(IdempotencyKey),
    /// Two steps.
    Confirmation(ConfirmationId),
}

impl RefundRow {
    /// A refund that is about to be sent.
    pub fn pending(request: &RefundRequest, actor: ActorId, answer_on: AnswerOn, now: Timestamp) -> Self {
        let (confirmation_id, idempotency_key) = match answer_on {
            AnswerOn::Claim(key) => (None, Some(key)),
            AnswerOn::Confirmation(confirmation) => (Some(confirmation), None),
        };
        Self {
            refund_id: RefundId::generate(),
            order_id: request.order_id.clone(),
            actor_id: actor,
            confirmation_id,
            idempotency_key,
            amount_minor: request.amount.minor(),
            currency: request.amount.currency(),
            reason: request.reason,
            note: request.note.clone(),
            status: RefundStatus::Pending,
            created_at: now,
            decided_at: None,
        }
    }

    pub fn answer_on(&self) -> QueryResult<AnswerOn> {
        match (&self.confirmation_id, &self.idempotency_key) {
            (Some(confirmation), None) => Ok(AnswerOn::Confirmation(confirmation.clone())),
            (None, Some(key)) => Ok(AnswerOn::Claim(key.clone())),
            _ => Err(DbError::DeserializationError(format!("the answer of {} has no place", self.refund_id).into())),
        }
    }

    /// As callers see it, with what is left of its order.
    pub fn view(self, remaining_refundable: Money) -> QueryResult<Refund> {
        Ok(Refund {
            refund_id: self.refund_id,
            order_id: self.order_id,
            confirmation_id: self.confirmation_id,
            amount: money(self.amount_minor, self.currency)?,
            reason: self.reason,
            note: self.note,
            status: self.status,
            remaining_refundable,
            created_at: self.created_at,
        })
    }
}

pub fn insert(db: &mut Db, refund: &RefundRow) -> QueryResult<usize> {
    on!(db, |conn| diesel::insert_into(refunds::table).values(refund).execute(conn))
}

pub fn find(db: &mut Db, id: &RefundId) -> QueryResult<Option<RefundRow>> {
    on!(db, |conn| refunds::table.find(id).select(RefundRow::as_select()).first(conn).optional())
}

/// The refunds of each of these orders, oldest first.
pub fn of_orders(db: &mut Db, ids: &[&OrderId]) -> QueryResult<BTreeMap<OrderId, Vec<RefundRow>>> {
    let rows: Vec<RefundRow> = on!(db, |conn| {
        refunds::table
            .filter(refunds::order_id.eq_any(ids))
            .order(refunds::refund_id)
            .select(RefundRow::as_select())
            .load(conn)
    })?;
    let mut by_order: BTreeMap<OrderId, Vec<RefundRow>> = BTreeMap::new();
    for row in rows {
        by_order.entry(row.order_id.clone()).or_default().push(row);
    }
    Ok(by_order)
}

/// As many equal refunds say what more would say.
const SIMILAR: i64 = 20;

/// Refunds of this amount of the order that are undecided, or succeeded after a point in time: the newest, newest first.
pub fn similar(db: &mut Db, order: &OrderId, amount: Money, since: Timestamp) -> QueryResult<Vec<RefundId>> {
    let recent = refunds::status.eq(RefundStatus::Succeeded).and(refunds::decided_at.gt(since));
    on!(db, |conn| {
        refunds::table
            .filter(refunds::order_id.eq(order))
            .filter(refunds::amount_minor.eq(amount.minor()))
            .filter(refunds::status.eq(RefundStatus::Pending).or(recent.assume_not_null()))
            .order(refunds::refund_id.desc())
            .select(refunds::refund_id)
            .limit(SIMILAR)
            .load(conn)
    })
}

/// An undecided refund of this amount of the order.
pub fn pending(db: &mut Db, order: &OrderId, amount: Money) -> QueryResult<Option<RefundId>> {
    on!(db, |conn| {
        refunds::table
            .filter(refunds::order_id.eq(order))
            .filter(refunds::amount_minor.eq(amount.minor()))
            .filter(refunds::status.eq(RefundStatus::Pending))
            .order(refunds::refund_id)
            .select(refunds::refund_id)
            .first(conn)
            .optional()
    })
}

/// True for the one caller whose decision it becomes.
pub fn decide(db: &mut Db, id: &RefundId, decision: &Decision, now: Timestamp) -> QueryResult<bool> {
    let status = match decision {
        Decision::Succeeded => RefundStatus::Succeeded,
        Decision::Declined(_) => RefundStatus::Declined,
    };
    on!(db, |conn| {
        diesel::update(refunds::table.find(id).filter(refunds::status.eq(RefundStatus::Pending)))
            .set((refunds::status.eq(status), refunds::decided_at.eq(now)))
            .execute(conn)
    })
    .map(|rows| rows == 1)
}
