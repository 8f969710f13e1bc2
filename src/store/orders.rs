//! Orders, and what of their money is refunded or reserved.

use super::catalogue::money;
use super::confirmations::is_due;
use super::json::Json;
use super::refunds::{self, RefundRow};
use super::schema::{confirmations, orders, payments, refund_holds};
use super::{Db, on};
use crate::domain::address::Address;
use crate::domain::confirmation::Confirmation;
use crate::domain::digest::Digest;
use crate::domain::ids::{AccountId, ActorId, ConfirmationId, OrderId, PaymentId};
use crate::domain::money::{Currency, Money};
use crate::domain::order::{Order, OrderStatus};
use crate::domain::page::PageRequest;
use crate::domain::payment::{Payment, ProviderKey};
use crate::domain::plan::Plan;
use crate::domain::refund::Refundable;
use crate::domain::sums::sums;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use std::collections::BTreeMap;

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
    reserved_minor: i64,
    currency: Currency,
    shipping_address: Json<Address>,
    payment_id: Option<PaymentId>,
    created_at: Timestamp,
}

/// Makes the order of a confirmed plan. A second one for the same confirmation is refused by the database.
pub fn insert(
    db: &mut Db,
    id: &OrderId,
    confirmation: &Confirmation,
    plan: &Plan,
    payment: Option<&PaymentId>,
    now: Timestamp,
) -> QueryResult<usize> {
    let row = Row {
        order_id: id.clone(),
        confirmation_id: confirmation.confirmation_id.clone(),
        actor_id: confirmation.actor.clone(),
        account_id: confirmation.account.clone(),
        attempt_digest: confirmation.attempt_digest.clone(),
        plan: Json(plan.clone()),
        total_minor: plan.total.minor(),
        refunded_minor: 0,
        reserved_minor: 0,
        currency: plan.currency,
        shipping_address: Json(plan.shipping_address.clone()),
        payment_id: payment.cloned(),
        created_at: now,
    };
    on!(db, |conn| diesel::insert_into(orders::table).values(row).execute(conn))
}

/// An order with the account that it belongs to.
pub fn find(db: &mut Db, id: &OrderId, now: Timestamp) -> QueryResult<Option<(AccountId, Order)>> {
    let row: Option<Row> = on!(db, |conn| orders::table.find(id).select(Row::as_select()).first(conn).optional())?;
    let Some(row) = row else { return Ok(None) };
    let account = row.account_id.clone();
    Ok(views(db, vec![row], now)?.pop().map(|order| (account, order)))
}

/// Keeps others from refunding this order until the transaction ends. SQLite's writer is alone anyway.
pub fn lock(db: &mut Db, id: &OrderId) -> QueryResult<()> {
    match db {
        Db::Sqlite(_) => Ok(()),
        Db::Postgres(conn) => {
            orders::table.find(id).select(orders::order_id).for_update().first::<OrderId>(*conn).optional().map(|_| ())
        }
    }
}

/// Whose order it is, if there is one.
pub fn account_of(db: &mut Db, id: &OrderId) -> QueryResult<Option<AccountId>> {
    on!(db, |conn| orders::table.find(id).select(orders::account_id).first(conn).optional())
}

/// What the order's money is used for. Reservations of due confirmations don't count.
pub fn refundable(db: &mut Db, id: &OrderId, now: Timestamp) -> QueryResult<Refundable> {
    let (total, refunded, reserved, currency): (i64, i64, i64, Currency) = on!(db, |conn| {
        orders::table
            .find(id)
            .select((orders::total_minor, orders::refunded_minor, orders::reserved_minor, orders::currency))
            .first(conn)
    })?;
    let due = due_reservations(db, &[id], now)?.remove(id).unwrap_or(0);
    sums_of(total, refunded, reserved - due, currency)
}

/// Reserves an amount. False when less than that is left; nothing is changed then.
pub fn reserve(db: &mut Db, id: &OrderId, amount: Money) -> QueryResult<bool> {
    let used = orders::refunded_minor + orders::reserved_minor;
    on!(db, |conn| {
        diesel::update(orders::table.find(id).filter((used + amount.minor()).le(orders::total_minor)))
            .set(orders::reserved_minor.eq(orders::reserved_minor + amount.minor()))
            .execute(conn)
    })
    .map(|rows| rows == 1)
}

/// What was reserved, in minor units, can be refunded again.
pub fn free_reserved(db: &mut Db, id: &OrderId, amount_minor: i64) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(orders::table.find(id))
            .set(orders::reserved_minor.eq(orders::reserved_minor - amount_minor))
            .execute(conn)
    })
}

/// What was reserved, in minor units, is refunded.
pub fn spend_reserved(db: &mut Db, id: &OrderId, amount_minor: i64) -> QueryResult<usize> {
    on!(db, |conn| {
        diesel::update(orders::table.find(id))
            .set((
                orders::reserved_minor.eq(orders::reserved_minor - amount_minor),
                orders::refunded_minor.eq(orders::refunded_minor + amount_minor),
            ))
            .execute(conn)
    })
}

/// The provider's key of the charge that paid the order; none when its total was zero.
pub fn charge_of(db: &mut Db, id: &OrderId) -> QueryResult<Option<ProviderKey>> {
    on!(db, |conn| {
        orders::table.find(id).inner_join(payments::table).select(payments::provider_key).first(conn).optional()
    })
}

/// Orders, newest first: of one account, or of all.
pub fn list(
    db: &mut Db,
    account: Option<&AccountId>,
    page: &PageRequest<OrderId>,
    now: Timestamp,
) -> QueryResult<Vec<Order>> {
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
    views(db, rows, now)
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

/// As callers see them, with their refunds.
fn views(db: &mut Db, rows: Vec<Row>, now: Timestamp) -> QueryResult<Vec<Order>> {
    let ids: Vec<&OrderId> = rows.iter().map(|row| &row.order_id).collect();
    let (mut refunds, mut due) = (refunds::of_orders(db, &ids)?, due_reservations(db, &ids, now)?);
    let view = |row: Row| {
        let due = due.remove(&row.order_id).unwrap_or(0);
        let sums = sums_of(row.total_minor, row.refunded_minor, row.reserved_minor - due, row.currency)?;
        let refunds = refunds.remove(&row.order_id).unwrap_or_default();
        order(row, sums, refunds)
    };
    rows.into_iter().map(view).collect()
}

fn order(row: Row, sums: Refundable, refunds: Vec<RefundRow>) -> QueryResult<Order> {
    let (total, refunded, remaining_refundable) = (sums.total, sums.refunded, sums.remaining());
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
        refunds: refunds.into_iter().map(|refund| refund.view(remaining_refundable)).collect::<Result<_, _>>()?,
        created_at: row.created_at,
    })
}

fn sums_of(total: i64, refunded: i64, reserved: i64, currency: Currency) -> QueryResult<Refundable> {
    let of = |minor| money(minor, currency);
    Ok(Refundable { total: of(total)?, refunded: of(refunded)?, reserved: of(reserved)? })
}

/// What due confirmations still reserve on paper.
fn due_reservations(db: &mut Db, ids: &[&OrderId], now: Timestamp) -> QueryResult<BTreeMap<OrderId, i64>> {
    let holds: Vec<(OrderId, i64)> = on!(db, |conn| {
        refund_holds::table
            .inner_join(confirmations::table)
            .filter(refund_holds::order_id.eq_any(ids))
            .filter(is_due(now))
            .select((refund_holds::order_id, refund_holds::amount_minor))
            .load(conn)
    })?;
    Ok(sums(holds))
}
