//! Our books, whole, for checking them: what is owed to whom, and what is counted where.

use super::json::Json;
use super::payments::PaymentRow;
use super::refunds::RefundRow;
use super::schema::{
    claims, confirmations, discount_holds, discounts, orders, payments, products, refund_holds, refunds, stock_changes,
    stock_holds,
};
use super::{Db, on};
use crate::domain::confirmation::{Purpose, Status};
use crate::domain::ids::{AccountId, ActorId, ConfirmationId, OrderId, PaymentId, ProductId, RefundId};
use crate::domain::money::Currency;
use crate::domain::operation::Operation;
use crate::domain::plan::Plan;
use crate::domain::refund::RefundOffer;
use crate::domain::sums::sums;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

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

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = confirmations)]
pub struct ConfirmationEntry {
    pub confirmation_id: ConfirmationId,
    pub account_id: AccountId,
    pub purpose: Purpose,
    pub status: Status,
    pub order_id: Option<OrderId>,
    pub refund_id: Option<RefundId>,
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

/// Units of a product, or uses of a discount code, that a confirmation holds.
pub type Held<K> = BTreeMap<(ConfirmationId, K), i64>;

#[derive(Debug)]
pub struct Books {
    pub orders: Vec<OrderEntry>,
    pub payments: Vec<PaymentRow>,
    pub confirmations: Vec<ConfirmationEntry>,
    /// The plans of checkouts that are pending or committing, on paper.
    pub live_plans: Vec<(ConfirmationId, Plan)>,
    pub products: Vec<Shelf>,
    pub discounts: Vec<Uses>,
    /// The sum of each product's stock changes.
    pub stock_set: BTreeMap<ProductId, i64>,
    pub stock_held: Held<ProductId>,
    pub refunds: Vec<RefundRow>,
    /// What pending refund confirmations reserve of each order.
    pub refunds_held: Vec<(ConfirmationId, OrderId, i64)>,
    /// What each refund's confirmation offers.
    pub refund_offers: Vec<(ConfirmationId, RefundOffer)>,
    /// One-step refunds whose key's claim has an answer.
    pub answered_refunds: Vec<RefundId>,
    pub discounts_held: Held<String>,
    /// Claims of local operations without an answer, and those whose answer went before its time.
    pub broken_claims: Vec<(ActorId, Operation)>,
}

/// Between our reading of the clock and the snapshot, on another machine, answers may be forgotten rightly.
const SWEPT_MEANWHILE: Duration = Duration::from_secs(60);

/// Reads all of it in the snapshot at hand. `provider` are the operations whose answer may stand elsewhere.
pub fn read(db: &mut Db, provider: &[Operation], now: Timestamp) -> QueryResult<Books> {
    let changes: Vec<(ProductId, i64, i64)> = on!(db, |conn| {
        let row = (stock_changes::product_id, stock_changes::stock_before, stock_changes::stock_after);
        stock_changes::table.select(row).load(conn)
    })?;
    let stock_held: Vec<((ConfirmationId, ProductId), i64)> = on!(db, |conn| {
        let row = ((stock_holds::confirmation_id, stock_holds::product_id), stock_holds::quantity);
        stock_holds::table.select(row).load(conn)
    })?;
    let discounts_held: Vec<(ConfirmationId, String)> = on!(db, |conn| {
        discount_holds::table.select((discount_holds::confirmation_id, discount_holds::code)).load(conn)
    })?;
    let unanswered = claims::answer_status.is_null().and(claims::operation.ne_all(provider));
    let surely_kept = claims::expires_at.gt(now.after(SWEPT_MEANWHILE));
    let lost = claims::answer_status.is_not_null().and(claims::answer_body.is_null()).and(surely_kept);
    Ok(Books {
        orders: all_orders(db)?,
        payments: on!(db, |conn| payments::table.select(PaymentRow::as_select()).load(conn))?,
        confirmations: on!(db, |conn| {
            confirmations::table.order(confirmations::confirmation_id).select(ConfirmationEntry::as_select()).load(conn)
        })?,
        live_plans: live_plans(db)?,
        products: on!(db, |conn| products::table.select(Shelf::as_select()).load(conn))?,
        discounts: on!(db, |conn| discounts::table.select(Uses::as_select()).load(conn))?,
        stock_set: sums(changes.into_iter().map(|(id, before, after)| (id, after - before))),
        stock_held: sums(stock_held),
        refund_offers: refund_offers(db)?,
        answered_refunds: on!(db, |conn| {
            let answered = claims::table
                .filter(claims::actor_id.eq(refunds::actor_id))
                .filter(claims::idempotency_key.nullable().eq(refunds::idempotency_key))
                .filter(claims::answer_status.is_not_null());
            refunds::table.filter(diesel::dsl::exists(answered)).select(refunds::refund_id).load(conn)
        })?,
        refunds: on!(db, |conn| refunds::table.select(RefundRow::as_select()).load(conn))?,
        refunds_held: on!(db, |conn| {
            let row = (refund_holds::confirmation_id, refund_holds::order_id, refund_holds::amount_minor);
            refund_holds::table.select(row).load(conn)
        })?,
        discounts_held: sums(discounts_held.into_iter().map(|hold| (hold, 1))),
        broken_claims: on!(db, |conn| {
            claims::table.filter(unanswered.or(lost)).select((claims::actor_id, claims::operation)).load(conn)
        })?,
    })
}

fn refund_offers(db: &mut Db) -> QueryResult<Vec<(ConfirmationId, RefundOffer)>> {
    let offers: Vec<(ConfirmationId, Json<RefundOffer>)> = on!(db, |conn| {
        confirmations::table
            .filter(confirmations::purpose.eq(Purpose::Refund))
            .select((confirmations::confirmation_id, confirmations::offer))
            .load(conn)
    })?;
    Ok(offers.into_iter().map(|(id, offer)| (id, offer.0)).collect())
}

fn live_plans(db: &mut Db) -> QueryResult<Vec<(ConfirmationId, Plan)>> {
    let plans: Vec<(ConfirmationId, Json<Plan>)> = on!(db, |conn| {
        confirmations::table
            .filter(confirmations::purpose.eq(Purpose::Checkout))
            .filter(confirmations::status.eq_any([Status::Pending, Status::Committing]))
            .select((confirmations::confirmation_id, confirmations::offer))
            .load(conn)
    })?;
    Ok(plans.into_iter().map(|(id, plan)| (id, plan.0)).collect())
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
