//! Orders.

use super::catalogue::money;
use super::json::Json;
use super::schema::orders;
use super::{Db, on};
use crate::domain::address::Address;
use crate::domain::confirmation::Confirmation;
use crate::domain::digest::Digest;
use crate::domain::ids::{AccountId, ActorId, ConfirmationId, OrderId, PaymentId};
use crate::domain::money::Currency;
use crate::domain::order::{Order, OrderStatus};
use crate::domain::page::PageRequest;
use crate::domain::payment::Payment;
use crate::domain::plan::Plan;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use diesel::result::Error as DbError;

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = orders, treat_none_as_default_value = false)]
struct Row {
    order_id: OrderId,
    confirmation_id: ConfirmationId,
    actor_id: ActorId,
    account_id: AccountId,
    attempt_digest: Digest,
    plan: Json<Plan>,
    total_minor: i64,
    refunded_minor: i64,
    currency: Currency,
    shipping_address: Json<Address>,
    payment_id: Option<PaymentId>,
    created_at: Timestamp,
}

/// Makes the order of a confirmation. A second one for the same confirmation is refused by the database.
pub fn insert(
    db: &mut Db,
    id: &OrderId,
    confirmation: &Confirmation,
    payment: Option<&PaymentId>,
    now: Timestamp,
) -> QueryResult<usize> {
    let plan = &confirmation.plan;
    let row = Row {
        order_id: id.clone(),
        confirmation_id: confirmation.confirmation_id.clone(),
        actor_id: confirmation.actor.clone(),
        account_id: confirmation.account.clone(),
        attempt_digest: confirmation.attempt_digest.clone(),
        plan: Json(plan.clone()),
        total_minor: plan.total.minor(),
        refunded_minor: 0,
        currency: plan.currency,
        shipping_address: Json(plan.shipping_address.clone()),
        payment_id: payment.cloned(),
        created_at: now,
    };
    on!(db, |conn| diesel::insert_into(orders::table).values(row).execute(conn))
}

/// An order with the account that it belongs to.
pub fn find(db: &mut Db, id: &OrderId) -> QueryResult<Option<(AccountId, Order)>> {
    let row: Option<Row> = on!(db, |conn| orders::table.find(id).select(Row::as_select()).first(conn).optional())?;
    row.map(|row| Ok((row.account_id.clone(), order(row)?))).transpose()
}

/// Orders, newest first: of one account, or of all.
pub fn list(db: &mut Db, account: Option<&AccountId>, page: &PageRequest<OrderId>) -> QueryResult<Vec<Order>> {
    let rows: Vec<Row> = on!(db, |conn| {
        let mut wanted = orders::table
            .order(orders::order_id.desc())
            .limit(page.fetch() as i64)
            .select(Row::as_select())
            .into_boxed();
        if let Some(account) = account {
            wanted = wanted.filter(orders::account_id.eq(account));
        }
        if let Some(after) = &page.after {
            wanted = wanted.filter(orders::order_id.lt(after));
        }
        wanted.load(conn)
    })?;
    rows.into_iter().map(order).collect()
}

/// Replaces the whole address.
pub fn set_shipping_address(db: &mut Db, id: &OrderId, address: &Address) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(orders::table.find(id)).set(orders::shipping_address.eq(Json(address.clone()))).execute(conn)
    })
}

/// The actor's newest order of the same purchase since a point in time.
pub fn find_equal(db: &mut Db, actor: &ActorId, attempt: &Digest, since: Timestamp) -> QueryResult<Option<OrderId>> {
    on!(db, |conn| {
        orders::table
            .filter(orders::actor_id.eq(actor))
            .filter(orders::attempt_digest.eq(attempt))
            .filter(orders::created_at.gt(since))
            .order(orders::created_at.desc())
            .select(orders::order_id)
            .first(conn)
            .optional()
    })
}

fn order(row: Row) -> QueryResult<Order> {
    let total = money(row.total_minor, row.currency)?;
    let refunded = money(row.refunded_minor, row.currency)?;
    let remaining_refundable =
        total.minus(refunded).map_err(|_| DbError::DeserializationError("more was refunded than charged".into()))?;
    let status = match refunded {
        none if none.is_zero() => OrderStatus::Confirmed,
        all if all == total => OrderStatus::Refunded,
        _ => OrderStatus::PartiallyRefunded,
    };
    Ok(Order {
        order_id: row.order_id,
        confirmation_id: row.confirmation_id,
        status,
        plan: row.plan.0,
        total,
        refunded,
        remaining_refundable,
        shipping_address: row.shipping_address.0,
        payment: row.payment_id.map(|id| Payment::captured(id, total)),
        refunds: Vec::new(),
        created_at: row.created_at,
    })
}
