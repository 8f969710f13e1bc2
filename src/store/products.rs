//! Products, their words, and the log of their stock. Holds of due confirmations don't count: the clock frees them,
//! whether or not a worker has written it down.

use super::catalogue::money;
use super::confirmations::is_due;
use super::schema::{confirmations, product_words, products, stock_changes, stock_holds};
use super::{Db, on};
use crate::domain::ids::{ActorId, ProductId, StockChangeId};
use crate::domain::money::Currency;
use crate::domain::product::{Category, Product, TaxClass};
use crate::domain::product_update::{Listed, Listing};
use crate::domain::search::{Availability, ProductQuery, indexed, is_prefix};
use crate::domain::sums::sums;
use crate::domain::time::Timestamp;
use diesel::dsl::not;
use diesel::prelude::*;
use std::collections::BTreeMap;

const FIRST_VERSION: i64 = 1;

#[derive(Clone, Debug, Queryable, Selectable, Insertable)]
#[diesel(table_name = products, treat_none_as_default_value = false)]
struct Row {
    product_id: ProductId,
    title: String,
    description: String,
    category: Category,
    price_minor: i64,
    currency: Currency,
    tax_class: TaxClass,
    stock: i64,
    held: i64,
    version: i64,
    updated_at: Timestamp,
}

/// The products that exist among these, by id.
pub fn find(db: &mut Db, ids: &[ProductId], now: Timestamp) -> QueryResult<BTreeMap<ProductId, Product>> {
    let rows = load(db, ids)?;
    Ok(views(db, rows, now)?.into_iter().map(|product| (product.product_id.clone(), product)).collect())
}

/// The same as their merchant sees them.
pub fn find_listed(db: &mut Db, ids: &[ProductId]) -> QueryResult<BTreeMap<ProductId, Listed>> {
    let with_id = |row: Row| {
        let listing = Listing {
            title: row.title,
            description: row.description,
            category: row.category,
            price: money(row.price_minor, row.currency)?,
            tax_class: row.tax_class,
            stock: row.stock,
        };
        Ok((row.product_id, Listed { listing, held: row.held, version: row.version }))
    };
    load(db, ids)?.into_iter().map(with_id).collect()
}

/// Keeps others from these products until the transaction ends, taken in the order of their ids. SQLite's writer is alone
/// anyway.
pub fn lock(db: &mut Db, ids: &[ProductId]) -> QueryResult<()> {
    let Db::Postgres(conn) = db else { return Ok(()) };
    products::table
        .filter(products::product_id.eq_any(ids))
        .order(products::product_id)
        .select(products::product_id)
        .for_update()
        .load::<ProductId>(*conn)
        .map(|_| ())
}

/// Which of the catalogue's products to look at.
#[derive(Clone, Copy, Debug)]
pub enum Range<'a> {
    /// In no order.
    Among(&'a [ProductId]),
    /// By id, so many after this one.
    After(Option<&'a ProductId>, i64),
}

/// Those in the range that fit the query's category and availability. Its words are looked up by [`with_word`].
pub fn list(db: &mut Db, range: Range, query: &ProductQuery, now: Timestamp) -> QueryResult<Vec<Product>> {
    let rows: Vec<Row> = on!(db, |conn| {
        let due = stock_holds::table.inner_join(confirmations::table).filter(is_due(now));
        let in_stock =
            products::stock.gt(products::held).or(products::product_id.eq_any(due.select(stock_holds::product_id)));
        let mut wanted = products::table.select(Row::as_select()).into_boxed();
        if let Some(category) = &query.category {
            wanted = wanted.filter(products::category.eq(category));
        }
        wanted = match query.availability {
            Availability::Any => wanted,
            Availability::InStock => wanted.filter(in_stock),
            Availability::OutOfStock => wanted.filter(not(in_stock)),
        };
        wanted = match range {
            Range::Among(ids) => wanted.filter(products::product_id.eq_any(ids)),
            Range::After(None, limit) => wanted.order(products::product_id).limit(limit),
            Range::After(Some(id), limit) => {
                wanted.filter(products::product_id.gt(id)).order(products::product_id).limit(limit)
            }
        };
        wanted.load(conn)
    })?;
    views(db, rows, now)
}

/// The products that have this word or, unless it is a short one, a longer one that begins with it: product, word,
/// weight. Up to `limit` of them.
pub fn with_word(db: &mut Db, word: &str, limit: i64) -> QueryResult<Vec<(ProductId, String, i64)>> {
    on!(db, |conn| {
        let mut found = product_words::table
            .order((product_words::word, product_words::product_id))
            .select((product_words::product_id, product_words::word, product_words::weight))
            .limit(limit)
            .into_boxed();
        found = match is_prefix(word) {
            true => {
                let beyond = format!("{word}{}", char::MAX);
                found.filter(product_words::word.ge(word)).filter(product_words::word.lt(beyond))
            }
            false => found.filter(product_words::word.eq(word)),
        };
        found.load(conn)
    })
}

/// The version that it has now, for the one caller that made it; None when there is such a product already. Without an
/// author it is the sample shop's.
pub fn create(
    db: &mut Db,
    id: &ProductId,
    listing: &Listing,
    author: Option<&ActorId>,
    now: Timestamp,
) -> QueryResult<Option<i64>> {
    let row = Row {
        product_id: id.clone(),
        title: listing.title.clone(),
        description: listing.description.clone(),
        category: listing.category.clone(),
        price_minor: listing.price.minor(),
        currency: listing.price.currency(),
        tax_class: listing.tax_class,
        stock: listing.stock,
        held: 0,
        version: FIRST_VERSION,
        updated_at: now,
    };
    let made = on!(db, |conn| {
        diesel::insert_into(products::table).values(row).on_conflict(products::product_id).do_nothing().execute(conn)
    })?;
    if made == 0 {
        return Ok(None);
    }
    index(db, id, listing)?;
    log_stock(db, id, 0, listing.stock, author, now)?;
    Ok(Some(FIRST_VERSION))
}

/// The version that it has now; None when the product isn't any more as it was found, and nothing is changed.
pub fn update(
    db: &mut Db,
    id: &ProductId,
    found: &Listed,
    listing: &Listing,
    author: &ActorId,
    now: Timestamp,
) -> QueryResult<Option<i64>> {
    let (before, version) = (&found.listing, found.version + 1);
    let updated = on!(db, |conn| {
        let as_found = products::table
            .find(id)
            .filter(products::version.eq(found.version))
            .filter(products::stock.eq(before.stock))
            .filter(products::held.le(listing.stock));
        diesel::update(as_found)
            .set((
                products::title.eq(&listing.title),
                products::description.eq(&listing.description),
                products::category.eq(&listing.category),
                products::price_minor.eq(listing.price.minor()),
                products::currency.eq(listing.price.currency()),
                products::tax_class.eq(listing.tax_class),
                products::stock.eq(listing.stock),
                products::version.eq(version),
                products::updated_at.eq(now),
            ))
            .execute(conn)
    })?;
    if updated == 0 {
        return Ok(None);
    }
    if (&before.title, &before.description) != (&listing.title, &listing.description) {
        index(db, id, listing)?;
    }
    if before.stock != listing.stock {
        log_stock(db, id, before.stock, listing.stock, Some(author), now)?;
    }
    Ok(Some(version))
}

/// Whether a search can find it: products that are older than the search have no words yet.
pub fn is_indexed(db: &mut Db, id: &ProductId) -> QueryResult<bool> {
    let words = product_words::table.filter(product_words::product_id.eq(id));
    on!(db, |conn| diesel::select(diesel::dsl::exists(words)).get_result(conn))
}

/// Gives a product the words of its title and description.
pub fn index_again(db: &mut Db, id: &ProductId) -> QueryResult<()> {
    match find_listed(db, std::slice::from_ref(id))?.get(id) {
        Some(found) => index(db, id, &found.listing),
        None => Ok(()),
    }
}

/// Replaces the words by which a search finds it.
fn index(db: &mut Db, id: &ProductId, listing: &Listing) -> QueryResult<()> {
    let old = product_words::table.filter(product_words::product_id.eq(id));
    on!(db, |conn| diesel::delete(old).execute(conn))?;
    let words: Vec<_> = indexed(&listing.title, &listing.description)
        .into_iter()
        .map(|(word, weight)| {
            (product_words::product_id.eq(id), product_words::word.eq(word), product_words::weight.eq(weight))
        })
        .collect();
    on!(db, |conn| diesel::insert_into(product_words::table).values(words).execute(conn)).map(|_| ())
}

fn log_stock(
    db: &mut Db,
    id: &ProductId,
    before: i64,
    after: i64,
    author: Option<&ActorId>,
    now: Timestamp,
) -> QueryResult<usize> {
    let change = (
        stock_changes::stock_change_id.eq(StockChangeId::generate()),
        stock_changes::product_id.eq(id),
        stock_changes::stock_before.eq(before),
        stock_changes::stock_after.eq(after),
        stock_changes::actor_id.eq(author),
        stock_changes::created_at.eq(now),
    );
    on!(db, |conn| diesel::insert_into(stock_changes::table).values(change).execute(conn))
}

fn load(db: &mut Db, ids: &[ProductId]) -> QueryResult<Vec<Row>> {
    on!(db, |conn| products::table.filter(products::product_id.eq_any(ids)).select(Row::as_select()).load(conn))
}

/// As callers see them.
fn views(db: &mut Db, rows: Vec<Row>, now: Timestamp) -> QueryResult<Vec<Product>> {
    let ids: Vec<&ProductId> = rows.iter().map(|row| &row.product_id).collect();
    let mut due = due_stock(db, &ids, now)?;
    let view = |row: Row| {
        let freed = due.remove(&row.product_id).unwrap_or(0);
        Ok(Product {
            product_id: row.product_id,
            title: row.title,
            description: row.description,
            category: row.category,
            price: money(row.price_minor, row.currency)?,
            available: row.stock - row.held + freed,
            version: row.version,
            tax_class: row.tax_class,
            updated_at: row.updated_at,
        })
    };
    rows.into_iter().map(view).collect()
}

/// Units that due confirmations still hold on paper.
fn due_stock(db: &mut Db, ids: &[&ProductId], now: Timestamp) -> QueryResult<BTreeMap<ProductId, i64>> {
    let holds: Vec<(ProductId, i64)> = on!(db, |conn| {
        stock_holds::table
            .inner_join(confirmations::table)
            .filter(stock_holds::product_id.eq_any(ids))
            .filter(is_due(now))
            .select((stock_holds::product_id, stock_holds::quantity))
            .load(conn)
    })?;
    Ok(sums(holds))
}
