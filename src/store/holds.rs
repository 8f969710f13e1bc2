//! Holds: units, discount uses and refundable amounts that a confirmation keeps from others. A counter of units or uses
//! moves together with its holds' rows, and is their sum; what is reserved of an order is the sum of its holds and of its
//! pending refunds.

use super::products::lock as lock_rows;
use super::schema::{discount_holds, discounts, products, refund_holds, stock_holds};
use super::{Db, on, orders};
use crate::domain::ids::{ConfirmationId, OrderId, ProductId};
use crate::domain::money::Money;
use crate::domain::sums::sums;
use diesel::prelude::*;
use std::collections::BTreeMap;

/// False when fewer than `quantity` units are unsold and unheld; nothing is changed then.
pub fn hold_stock(db: &mut Db, id: &ConfirmationId, product: &ProductId, quantity: i64) -> QueryResult<bool> {
    let held = on!(db, |conn| {
        diesel::update(products::table.find(product).filter((products::stock - products::held).ge(quantity)))
            .set(products::held.eq(products::held + quantity))
            .execute(conn)
    })?;
    if held == 0 {
        return Ok(false);
    }
    on!(db, |conn| {
        diesel::insert_into(stock_holds::table)
            .values((
                stock_holds::confirmation_id.eq(id),
                stock_holds::product_id.eq(product),
                stock_holds::quantity.eq(quantity),
            ))
            .execute(conn)
    })?;
    Ok(true)
}

/// False when the code's limit is reached; nothing is changed then.
pub fn hold_discount(db: &mut Db, id: &ConfirmationId, code: &str) -> QueryResult<bool> {
    let below_limit =
        discounts::use_limit.is_null().or((discounts::held + discounts::used).nullable().lt(discounts::use_limit));
    let held = on!(db, |conn| {
        diesel::update(discounts::table.find(code).filter(below_limit))
            .set(discounts::held.eq(discounts::held + 1))
            .execute(conn)
    })?;
    if held == 0 {
        return Ok(false);
    }
    on!(db, |conn| {
        diesel::insert_into(discount_holds::table)
            .values((discount_holds::confirmation_id.eq(id), discount_holds::code.eq(code)))
            .execute(conn)
    })?;
    Ok(true)
}

/// Reserves the amount for a refund that is offered. False when less than that is left of the order; nothing is changed
/// then.
pub fn hold_refund(db: &mut Db, id: &ConfirmationId, order: &OrderId, amount: Money) -> QueryResult<bool> {
    if !orders::reserve(db, order, amount)? {
        return Ok(false);
    }
    let hold = (
        refund_holds::confirmation_id.eq(id),
        refund_holds::order_id.eq(order),
        refund_holds::amount_minor.eq(amount.minor()),
    );
    on!(db, |conn| diesel::insert_into(refund_holds::table).values(hold).execute(conn)).map(|_| true)
}

/// The confirmation becomes a refund, and what is reserved becomes the refund's.
pub fn hand_over(db: &mut Db, id: &ConfirmationId) -> QueryResult<usize> {
    on!(db, |conn| diesel::delete(refund_holds::table.find(id)).execute(conn))
}

/// What becomes of a hold that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Given back: others can have it.
    Freed,
    /// Gone with the order.
    Sold,
}

/// Locks the orders of which these confirmations reserve something, by id: before the confirmations themselves. SQLite's
/// writer is alone anyway.
pub fn lock_orders(db: &mut Db, ids: &[ConfirmationId]) -> QueryResult<()> {
    let Db::Postgres(conn) = db else { return Ok(()) };
    let held = refund_holds::table.filter(refund_holds::confirmation_id.eq_any(ids)).select(refund_holds::order_id);
    let mut held: Vec<OrderId> = held.load(*conn)?;
    held.sort();
    held.dedup();
    held.iter().try_for_each(|order| orders::lock(db, order))
}

/// Locks the products that these confirmations hold, and those that are needed besides, by id.
pub fn lock_products(db: &mut Db, ids: &[ConfirmationId], needed: &[ProductId]) -> QueryResult<()> {
    let Db::Postgres(conn) = db else { return Ok(()) };
    let held = stock_holds::table.filter(stock_holds::confirmation_id.eq_any(ids)).select(stock_holds::product_id);
    let mut all: Vec<ProductId> = held.load(*conn)?;
    all.extend_from_slice(needed);
    if all.is_empty() { Ok(()) } else { lock_rows(db, &all) }
}

/// Ends every hold of these confirmations. Only the one caller that moved them may do it. Takes the locks in the order
/// in which they are taken everywhere: orders by id, products by id, then discount codes.
pub fn release(db: &mut Db, ids: &[ConfirmationId], release: Release) -> QueryResult<()> {
    for (order, amount_minor) in take_refund_holds(db, ids)? {
        orders::free_reserved(db, &order, amount_minor)?;
    }
    for (product, quantity) in take_stock_holds(db, ids)? {
        let sold = if release == Release::Sold { quantity } else { 0 };
        on!(db, |conn| {
            diesel::update(products::table.find(product))
                .set((products::held.eq(products::held - quantity), products::stock.eq(products::stock - sold)))
                .execute(conn)
        })?;
    }
    for (code, uses) in take_discount_holds(db, ids)? {
        let used = if release == Release::Sold { uses } else { 0 };
        on!(db, |conn| {
            diesel::update(discounts::table.find(code))
                .set((discounts::held.eq(discounts::held - uses), discounts::used.eq(discounts::used + used)))
                .execute(conn)
        })?;
    }
    Ok(())
}

/// A refund that is confirmed keeps its amount, so what is found here is given back.
fn take_refund_holds(db: &mut Db, ids: &[ConfirmationId]) -> QueryResult<BTreeMap<OrderId, i64>> {
    let holds: Vec<(OrderId, i64)> = on!(db, |conn| {
        diesel::delete(refund_holds::table.filter(refund_holds::confirmation_id.eq_any(ids)))
            .returning((refund_holds::order_id, refund_holds::amount_minor))
            .get_results(conn)
    })?;
    Ok(sums(holds))
}

fn take_stock_holds(db: &mut Db, ids: &[ConfirmationId]) -> QueryResult<BTreeMap<ProductId, i64>> {
    let holds: Vec<(ProductId, i64)> = on!(db, |conn| {
        diesel::delete(stock_holds::table.filter(stock_holds::confirmation_id.eq_any(ids)))
            .returning((stock_holds::product_id, stock_holds::quantity))
            .get_results(conn)
    })?;
    Ok(sums(holds))
}

fn take_discount_holds(db: &mut Db, ids: &[ConfirmationId]) -> QueryResult<BTreeMap<String, i64>> {
    let codes: Vec<String> = on!(db, |conn| {
        diesel::delete(discount_holds::table.filter(discount_holds::confirmation_id.eq_any(ids)))
            .returning(discount_holds::code)
            .get_results(conn)
    })?;
    Ok(sums(codes.into_iter().map(|code| (code, 1))))
}
