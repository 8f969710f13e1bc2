//! Shipping options, tax rates and discount codes; and everything that one checkout can touch.

use super::confirmations::is_due;
use super::products;
use super::schema::{confirmations, discount_holds, discounts, shipping_options, tax_rates};
use super::{Db, on};
use crate::domain::catalogue::{Catalogue, ShippingOption, TaxRate};
use crate::domain::checkout::CheckoutRequest;
use crate::domain::discount::{Discount, DiscountKind};
use crate::domain::money::{Currency, Money};
use crate::domain::product::TaxClass;
use crate::domain::time::Timestamp;
use diesel::prelude::*;
use diesel::result::Error as DbError;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = shipping_options, treat_none_as_default_value = false)]
pub struct ShippingRow {
    pub option_id: String,
    pub currency: Currency,
    pub price_minor: i64,
    pub countries: String,
    pub min_business_days: i64,
    pub max_business_days: i64,
}

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = tax_rates, treat_none_as_default_value = false)]
pub struct TaxRow {
    pub tax_rate_id: String,
    pub country: String,
    pub region: Option<String>,
    pub tax_class: TaxClass,
    pub parts_per_million: i64,
}

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = discounts, treat_none_as_default_value = false)]
pub struct DiscountRow {
    pub code: String,
    pub parts_per_million: Option<i64>,
    pub amount_minor: Option<i64>,
    pub minimum_minor: Option<i64>,
    pub currency: Option<Currency>,
    pub expires_at: Option<Timestamp>,
    pub use_limit: Option<i64>,
    pub held: i64,
    pub used: i64,
}

/// Everything that one request can touch, as it is now.
pub fn for_checkout(db: &mut Db, request: &CheckoutRequest, now: Timestamp) -> QueryResult<Catalogue> {
    Ok(Catalogue {
        products: products::find(db, &request.product_ids(), now)?,
        shipping: shipping(db, &request.shipping_option)?,
        tax_rates: rates(db, &request.shipping_address.country)?,
        discounts: codes(db, &request.discount_codes, now)?,
    })
}

pub fn insert_shipping(db: &mut Db, row: &ShippingRow) -> QueryResult<usize> {
    on!(db, |conn| diesel::insert_into(shipping_options::table).values(row).on_conflict_do_nothing().execute(conn))
}

pub fn insert_tax_rate(db: &mut Db, row: &TaxRow) -> QueryResult<usize> {
    on!(db, |conn| diesel::insert_into(tax_rates::table).values(row).on_conflict_do_nothing().execute(conn))
}

pub fn insert_discount(db: &mut Db, row: &DiscountRow) -> QueryResult<usize> {
    on!(db, |conn| diesel::insert_into(discounts::table).values(row).on_conflict_do_nothing().execute(conn))
}

fn shipping(db: &mut Db, option: &str) -> QueryResult<Vec<ShippingOption>> {
    let rows: Vec<ShippingRow> = on!(db, |conn| {
        shipping_options::table
            .filter(shipping_options::option_id.eq(option))
            .select(ShippingRow::as_select())
            .load(conn)
    })?;
    let offer = |row: ShippingRow| {
        Ok(ShippingOption {
            price: money(row.price_minor, row.currency)?,
            option: row.option_id,
            countries: row.countries.split(' ').map(str::to_owned).collect(),
            min_business_days: row.min_business_days,
            max_business_days: row.max_business_days,
        })
    };
    rows.into_iter().map(offer).collect()
}

fn rates(db: &mut Db, country: &str) -> QueryResult<Vec<TaxRate>> {
    let rows: Vec<TaxRow> = on!(db, |conn| {
        tax_rates::table.filter(tax_rates::country.eq(country)).select(TaxRow::as_select()).load(conn)
    })?;
    let rate = |row: TaxRow| TaxRate {
        country: row.country,
        region: row.region,
        class: row.tax_class,
        parts_per_million: row.parts_per_million,
    };
    Ok(rows.into_iter().map(rate).collect())
}

fn codes(db: &mut Db, codes: &[String], now: Timestamp) -> QueryResult<BTreeMap<String, Discount>> {
    let rows: Vec<DiscountRow> = on!(db, |conn| {
        discounts::table.filter(discounts::code.eq_any(codes)).select(DiscountRow::as_select()).load(conn)
    })?;
    let due: Vec<String> = on!(db, |conn| {
        discount_holds::table
            .inner_join(confirmations::table)
            .filter(discount_holds::code.eq_any(codes))
            .filter(is_due(now))
            .select(discount_holds::code)
            .load(conn)
    })?;
    let freed = |code: &str| due.iter().filter(|due| *due == code).count() as i64;
    rows.into_iter()
        .map(|row| {
            let freed = freed(&row.code);
            Ok((row.code.clone(), discount(row, freed)?))
        })
        .collect()
}

fn discount(row: DiscountRow, freed: i64) -> QueryResult<Discount> {
    let in_currency = |minor: i64| match row.currency {
        Some(currency) => money(minor, currency),
        None => Err(DbError::DeserializationError("a discount amount without a currency".into())),
    };
    let kind = match (row.parts_per_million, row.amount_minor) {
        (Some(parts_per_million), _) => DiscountKind::Percentage { parts_per_million },
        (None, Some(amount)) => DiscountKind::FixedAmount(in_currency(amount)?),
        (None, None) => return Err(DbError::DeserializationError("a discount of no kind".into())),
    };
    Ok(Discount {
        kind,
        minimum_subtotal: row.minimum_minor.map(in_currency).transpose()?,
        expires_at: row.expires_at,
        uses_left: row.use_limit.map(|limit| limit - row.used - row.held + freed),
    })
}

/// Amounts in the database were checked when they were written.
pub(super) fn money(minor: i64, currency: Currency) -> QueryResult<Money> {
    Money::from_minor(minor, currency)
        .map_err(|_| DbError::DeserializationError(format!("{minor} minor units are out of range").into()))
}
