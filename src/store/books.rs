//! Our books, whole, for checking them: what is owed to whom, and what is counted where.

use super::holds::sums;
use super::json::Json;
use super::payments::PaymentRow;
use super::schema::{
    claims, confirmations, discount_holds, discounts, orders, payments, products, stock_changes, stock_holds,
};
use super::{Db, on};
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::{ActorId, ConfirmationId, OrderId, PaymentId, ProductId};
use crate::domain::money::Currency;
use crate::domain::operation::Operation;
use crate::domain::plan::Plan;
use diesel::prelude::*;
use std::collections::{BTreeMap, HashSet};

/// An order, as far as sums depend on it.
#[derive(Debug)]
pub struct OrderEntry {
    pub order_id: OrderId,
    pub confirmation_id: ConfirmationId,
    pub plan: Plan,
    pub total_minor: i64,
    pub currency: Currency,
    pub payment_id: Option<PaymentId>,
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = products)]
pub struct Shelf {
    pub product_id: ProductId,
    pub stock: i64,
    pub held: i64,
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = discounts)]
pub struct Uses {
    pub code: String,
    pub held: i64,
    pub used: i64,
}

#[derive(Debug)]
pub struct Books {
    pub orders: Vec<OrderEntry>,
    pub payments: Vec<PaymentRow>,
    pub confirmations: Vec<(ConfirmationId, Purpose, Status)>,
    pub products: Vec<Shelf>,
    /// The sum of each product's stock changes.
    pub stock_set: BTreeMap<ProductId, i64>,
    /// The sum of each product's holds.
    pub stock_held: BTreeMap<ProductId, i64>,
    pub discounts: Vec<Uses>,
    pub discounts_held: BTreeMap<String, i64>,
    /// Confirmations that hold something and shouldn't.
    pub dead_holders: Vec<ConfirmationId>,
    /// Claims of local operations without an answer.
    pub unanswered_claims: Vec<(ActorId, Operation)>,
}

/// Reads all of it in the snapshot at hand. `provider` are the operations whose answer stands elsewhere.
pub fn read(db: &mut Db, provider: &[Operation]) -> QueryResult<Books> {
    let changes: Vec<(ProductId, i64, i64)> = on!(db, |conn| {
        let row = (stock_changes::product_id, stock_changes::stock_before, stock_changes::stock_after);
        stock_changes::table.select(row).load(conn)
    })?;
    let stock_holds: Vec<(ConfirmationId, ProductId, i64)> = on!(db, |conn| {
        let row = (stock_holds::confirmation_id, stock_holds::product_id, stock_holds::quantity);
        stock_holds::table.select(row).load(conn)
    })?;
    let discount_holds: Vec<(ConfirmationId, String)> = on!(db, |conn| {
        discount_holds::table.select((discount_holds::confirmation_id, discount_holds::code)).load(conn)
    })?;
    let holders: HashSet<&ConfirmationId> =
        stock_holds.iter().map(|(id, ..)| id).chain(discount_holds.iter().map(|(id, _)| id)).collect();
    let confirmations: Vec<(ConfirmationId, Purpose, Status)> = on!(db, |conn| {
        let row = (confirmations::confirmation_id, confirmations::purpose, confirmations::status);
        confirmations::table.select(row).order(confirmations::confirmation_id).load(conn)
    })?;
    let is_dead = |status: Status| !matches!(status, Status::Pending | Status::Committing);
    let dead = confirmations.iter().filter(|(id, _, status)| is_dead(*status) && holders.contains(id));
    Ok(Books {
        dead_holders: dead.map(|(id, ..)| id.clone()).collect(),
        orders: all_orders(db)?,
        payments: on!(db, |conn| payments::table.select(PaymentRow::as_select()).load(conn))?,
        products: on!(db, |conn| products::table.select(Shelf::as_select()).load(conn))?,
        stock_set: sums(changes.into_iter().map(|(id, before, after)| (id, after - before))),
        stock_held: sums(stock_holds.into_iter().map(|(_, id, quantity)| (id, quantity))),
        discounts: on!(db, |conn| discounts::table.select(Uses::as_select()).load(conn))?,
        discounts_held: sums(discount_holds.into_iter().map(|(_, code)| (code, 1))),
        unanswered_claims: on!(db, |conn| {
            claims::table
                .filter(claims::answer_status.is_null())
                .filter(claims::operation.ne_all(provider))
                .select((claims::actor_id, claims::operation))
                .load(conn)
        })?,
        confirmations,
    })
}

fn all_orders(db: &mut Db) -> QueryResult<Vec<OrderEntry>> {
    type Row = (OrderId, ConfirmationId, Json<Plan>, i64, Currency, Option<PaymentId>);
    let rows: Vec<Row> = on!(db, |conn| {
        orders::table
            .order(orders::order_id)
            .select((
                orders::order_id,
                orders::confirmation_id,
                orders::plan,
                orders::total_minor,
                orders::currency,
                orders::payment_id,
            ))
            .load(conn)
    })?;
    let entry = |(order_id, confirmation_id, plan, total_minor, currency, payment_id): Row| OrderEntry {
        order_id,
        confirmation_id,
        plan: plan.0,
        total_minor,
        currency,
        payment_id,
    };
    Ok(rows.into_iter().map(entry).collect())
}
