//! Our books, whole, for checking them: what is owed to whom, and what is counted where.

use super::claims::Claim;
use super::json::Json;
use super::payments::PaymentRow;
use super::refunds::RefundRow;
use super::schema::{
    claims, confirmations, discount_holds, discounts, orders, payments, products, refund_holds, refunds, stock_changes,
    stock_holds,
};
use super::{Db, on};
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::digest::Digest;
use crate::domain::ids::{AccountId, ActorId, ConfirmationId, OrderId, PaymentId, ProductId, RefundId};
use crate::domain::money::Currency;
use crate::domain::plan::Plan;
use crate::domain::sums::sums;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use std::collections::BTreeMap;

/// An order, as far as sums depend on it.
#[derive(Debug)]
pub struct OrderEntry {
    pub order_id: OrderId,
    pub confirmation_id: ConfirmationId,
    pub account_id: AccountId,
    pub plan: Plan,
    pub total_minor: i64,
    pub refunded_minor: i64,
    pub reserved_minor: i64,
    pub currency: Currency,
    pub payment_id: Option<PaymentId>,
}

/// A confirmation as it is written: its offer as text, its answer in halves.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = confirmations)]
pub struct ConfirmationEntry {
    pub confirmation_id: ConfirmationId,
    pub actor_id: ActorId,
    pub account_id: AccountId,
    pub purpose: Purpose,
    pub status: Status,
    pub offer: String,
    pub plan_digest: Digest,
    pub attempt_digest: Digest,
    pub expires_at: Timestamp,
    pub order_id: Option<OrderId>,
    pub refund_id: Option<RefundId>,
    pub answer_status: Option<i64>,
    pub answer_body: Option<String>,
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = products)]
pub struct Shelf {
    pub product_id: ProductId,
    pub stock: i64,
    pub held: i64,
    pub version: i64,
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = discounts)]
pub struct Uses {
    pub code: String,
    pub use_limit: Option<i64>,
    pub held: i64,
    pub used: i64,
}

/// What a confirmation holds: units of a product, uses of a discount code, minor units of an order.
pub type Held<K> = BTreeMap<(ConfirmationId, K), i64>;

#[derive(Debug)]
pub struct Books {
    pub orders: Vec<OrderEntry>,
    pub payments: Vec<PaymentRow>,
    pub confirmations: Vec<ConfirmationEntry>,
    pub products: Vec<Shelf>,
    pub discounts: Vec<Uses>,
    /// The sum of each product's stock changes.
    pub stock_set: BTreeMap<ProductId, i64>,
    pub stock_held: Held<ProductId>,
    pub discounts_held: Held<String>,
    pub refunds: Vec<RefundRow>,
    pub refunds_held: Held<OrderId>,
    pub claims: Vec<Claim>,
}

/// Reads all of it in the snapshot at hand, one query a table.
pub fn read(db: &mut Db) -> QueryResult<Books> {
    Ok(Books {
        orders: all_orders(db)?,
        payments: on!(db, |conn| payments::table.select(PaymentRow::as_select()).load(conn))?,
        confirmations: on!(db, |conn| {
            confirmations::table.order(confirmations::confirmation_id).select(ConfirmationEntry::as_select()).load(conn)
        })?,
        products: on!(db, |conn| products::table.select(Shelf::as_select()).load(conn))?,
        discounts: on!(db, |conn| discounts::table.select(Uses::as_select()).load(conn))?,
        stock_set: stock_set(db)?,
        stock_held: stock_held(db)?,
        discounts_held: discounts_held(db)?,
        refunds: on!(db, |conn| refunds::table.select(RefundRow::as_select()).load(conn))?,
        refunds_held: refunds_held(db)?,
        claims: on!(db, |conn| claims::table.select(Claim::as_select()).load(conn))?,
    })
}

fn stock_set(db: &mut Db) -> QueryResult<BTreeMap<ProductId, i64>> {
    let changes: Vec<(ProductId, i64, i64)> = on!(db, |conn| {
        let row = (stock_changes::product_id, stock_changes::stock_before, stock_changes::stock_after);
        stock_changes::table.select(row).load(conn)
    })?;
    Ok(sums(changes.into_iter().map(|(id, before, after)| (id, after - before))))
}

fn stock_held(db: &mut Db) -> QueryResult<Held<ProductId>> {
    let holds: Vec<((ConfirmationId, ProductId), i64)> = on!(db, |conn| {
        let row = ((stock_holds::confirmation_id, stock_holds::product_id), stock_holds::quantity);
        stock_holds::table.select(row).load(conn)
    })?;
    Ok(sums(holds))
}

fn discounts_held(db: &mut Db) -> QueryResult<Held<String>> {
    let holds: Vec<(ConfirmationId, String)> = on!(db, |conn| {
        discount_holds::table.select((discount_holds::confirmation_id, discount_holds::code)).load(conn)
    })?;
    Ok(sums(holds.into_iter().map(|hold| (hold, 1))))
}

fn refunds_held(db: &mut Db) -> QueryResult<Held<OrderId>> {
    let holds: Vec<((ConfirmationId, OrderId), i64)> = on!(db, |conn| {
        let row = ((refund_holds::confirmation_id, refund_holds::order_id), refund_holds::amount_minor);
        refund_holds::table.select(row).load(conn)
    })?;
    Ok(sums(holds))
}

fn all_orders(db: &mut Db) -> QueryResult<Vec<OrderEntry>> {
    type Row = (OrderId, ConfirmationId, AccountId, Json<Plan>, (i64, i64, i64), Currency, Option<PaymentId>);
    let rows: Vec<Row> = on!(db, |conn| {
        orders::table
            .order(orders::order_id)
            .select((
                orders::order_id,
                orders::confirmation_id,
                orders::account_id,
                orders::plan,
                (orders::total_minor, orders::refunded_minor, orders::reserved_minor),
                orders::currency,
                orders::payment_id,
            ))
            .load(conn)
    })?;
    let entry = |(order_id, confirmation_id, account_id, plan, sums, currency, payment_id): Row| OrderEntry {
        order_id,
        confirmation_id,
        account_id,
        plan: plan.0,
        total_minor: sums.0,
        refunded_minor: sums.1,
        reserved_minor: sums.2,
        currency,
        payment_id,
    };
    Ok(rows.into_iter().map(entry).collect())
}
