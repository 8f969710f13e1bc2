//! Payments: what we asked of the provider, under which lease, and what is known of it.

use super::schema::payments;
use super::{Db, on};
use crate::domain::ids::{ConfirmationId, PaymentId, RefundId};
use crate::domain::money::Currency;
use crate::domain::payment::{Decision, PaymentStatus, ProviderKey};
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use diesel::result::Error as DbError;

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = payments, treat_none_as_default_value = false)]
pub struct PaymentRow {
    pub payment_id: PaymentId,
    pub confirmation_id: Option<ConfirmationId>,
    pub refund_id: Option<RefundId>,
    pub provider_key: ProviderKey,
    pub request: String,
    pub amount_minor: i64,
    pub currency: Currency,
    pub status: PaymentStatus,
    pub decline_reason: Option<String>,
    pub provider_key_expires_at: Timestamp,
    pub lease_owner: Option<String>,
    pub lease_until: Option<Timestamp>,
    pub attempts: i64,
    pub recover_at: Timestamp,
    pub created_at: Timestamp,
    pub decided_at: Option<Timestamp>,
}

/// What a payment is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The charge of a checkout's confirmation.
    Charge(ConfirmationId),
    Refund(RefundId),
}

impl PaymentRow {
    pub fn subject(&self) -> QueryResult<Subject> {
        match (&self.confirmation_id, &self.refund_id) {
            (Some(confirmation), None) => Ok(Subject::Charge(confirmation.clone())),
            (None, Some(refund)) => Ok(Subject::Refund(refund.clone())),
            _ => Err(DbError::DeserializationError(format!("{} is for nothing", self.payment_id).into())),
        }
    }
}

pub fn insert(db: &mut Db, payment: &PaymentRow) -> QueryResult<usize> {
    on!(db, |conn| diesel::insert_into(payments::table).values(payment).execute(conn))
}

pub fn find(db: &mut Db, id: &PaymentId) -> QueryResult<PaymentRow> {
    on!(db, |conn| payments::table.find(id).select(PaymentRow::as_select()).first(conn))
}

/// The payment that the confirmation's charge, or the refund, is made with.
pub fn find_by_subject(db: &mut Db, subject: &Subject) -> QueryResult<Option<PaymentRow>> {
    on!(db, |conn| {
        let all = payments::table.select(PaymentRow::as_select());
        match subject {
            Subject::Charge(confirmation) => all.filter(payments::confirmation_id.eq(confirmation)).first(conn),
            Subject::Refund(refund) => all.filter(payments::refund_id.eq(refund)).first(conn),
        }
        .optional()
    })
}

/// True for the one caller that may now ask the provider: the payment is undecided and no lease on it is live.
pub fn take_lease(db: &mut Db, id: &PaymentId, owner: &str, now: Timestamp, until: Timestamp) -> QueryResult<bool> {
    let free = payments::lease_until.is_null().or(payments::lease_until.le(now));
    on!(db, |conn| {
        diesel::update(payments::table.find(id).filter(payments::status.eq(PaymentStatus::Requested)).filter(free))
            .set((
                payments::lease_owner.eq(owner),
                payments::lease_until.eq(until),
                payments::recover_at.eq(until),
                payments::attempts.eq(payments::attempts + 1),
            ))
            .execute(conn)
    })
    .map(|rows| rows == 1)
}

/// Gives up a lease that is still one's own. The payment stays requested, and due for recovery at `recover_at`.
pub fn give_up_lease(db: &mut Db, id: &PaymentId, owner: &str, recover_at: Timestamp) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(
            payments::table
                .find(id)
                .filter(payments::status.eq(PaymentStatus::Requested))
                .filter(payments::lease_owner.eq(owner)),
        )
        .set((
            payments::lease_owner.eq(None::<String>),
            payments::lease_until.eq(None::<Timestamp>),
            payments::recover_at.eq(recover_at),
        ))
        .execute(conn)
    })
}

/// True for the one caller whose result it becomes; whoever loses reads the winner's.
pub fn decide(db: &mut Db, id: &PaymentId, decision: &Decision, now: Timestamp) -> QueryResult<bool> {
    on!(db, |conn| {
        diesel::update(payments::table.find(id).filter(payments::status.eq(PaymentStatus::Requested)))
            .set((
                payments::status.eq(decision.status()),
                payments::decline_reason.eq(decision.decline_reason()),
                payments::lease_owner.eq(None::<String>),
                payments::lease_until.eq(None::<Timestamp>),
                payments::decided_at.eq(now),
            ))
            .execute(conn)
    })
    .map(|rows| rows == 1)
}

/// Undecided payments whose `recover_at` has come, longest waiting first.
pub fn to_recover(db: &mut Db, now: Timestamp, limit: i64) -> QueryResult<Vec<PaymentId>> {
    on!(db, |conn| {
        payments::table
            .filter(payments::status.eq(PaymentStatus::Requested))
            .filter(payments::recover_at.le(now))
            .order(payments::recover_at)
            .select(payments::payment_id)
            .limit(limit)
            .load(conn)
    })
}
