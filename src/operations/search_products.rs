//! Searches products: by words, best answers first; without words, in the order of their ids.

use super::Context;
use crate::domain::error::Problem;
use crate::domain::ids::ProductId;
use crate::domain::product::Product;
use crate::domain::search::{Position, Search, score};
use crate::domain::time::Timestamp;
use crate::store::Db;
use crate::store::products::{self, Range};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Queries in one call.
pub const MAX_QUERIES: usize = 20;
/// Rows that one word may find. A word of so many products says little.
const MAX_ROWS: i64 = 10_000;
/// Candidates whose products are read at once.
const CHUNK: usize = 200;

/// Searches at once: fewer than there are readers, so that no search keeps a purchase waiting.
const PLACES: usize = 2;

/// The places for searches. One is kept until its search is done, whether or not anybody waits for it any more.
#[derive(Clone)]
pub struct Searches(Arc<Semaphore>);

impl Default for Searches {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PLACES)))
    }
}

impl Searches {
    async fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.0.clone().acquire_owned().await.map_err(Problem::overloaded)
    }
}

/// One page of the answers to a search.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ProductList {
    /// Best answers first; without words, by id.
    pub products: Vec<Product>,
    /// Opaque. Send it as `cursor`, with the same search, for the next page; null on the last one.
    #[schema(required, example = "9f86d081884c.4.MUG-BLUE")]
    pub next_cursor: Option<String>,
}

/// The answers to many searches, all of one moment.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct SearchResults {
    /// One a query, in the order of the request: its first page.
    pub results: Vec<ProductList>,
}

pub async fn search_products(context: &Context, wanted: Search) -> Result<ProductList, Problem> {
    let place = context.searches.take().await?;
    let search_one = move |db: &mut Db, now| {
        let _held_until_done = place;
        search(db, &wanted, now)
    };
    context.store.read(search_one).await
}

/// All queries see the same catalogue.
pub async fn batch_search_products(context: &Context, wanted: Vec<Search>) -> Result<SearchResults, Problem> {
    let place = context.searches.take().await?;
    let search_all = move |db: &mut Db, now| {
        let _held_until_done = place;
        let results = wanted.iter().map(|wanted| search(db, wanted, now));
        Ok(SearchResults { results: results.collect::<Result<_, _>>()? })
    };
    context.store.read(search_all).await
}

fn search(db: &mut Db, wanted: &Search, now: Timestamp) -> Result<ProductList, Problem> {
    let mut found = match wanted.query.words.is_empty() {
        true => by_id(db, wanted, now)?,
        false => by_relevance(db, wanted, now)?,
    };
    let position =
        |(score, product): &(i64, Product)| Position { score: *score, product_id: product.product_id.clone() };
    let next = wanted.page.cut(&mut found, position);
    Ok(ProductList {
        products: found.into_iter().map(|(_, product)| product).collect(),
        next_cursor: next.map(|position| position.cursor(&wanted.query)),
    })
}

fn by_id(db: &mut Db, wanted: &Search, now: Timestamp) -> Result<Vec<(i64, Product)>, Problem> {
    let after = wanted.page.after.as_ref().map(|position| &position.product_id);
    let range = Range::After(after, wanted.page.fetch() as i64);
    let found = products::list(db, range, &wanted.query, now)?;
    Ok(found.into_iter().map(|product| (0, product)).collect())
}

fn by_relevance(db: &mut Db, wanted: &Search, now: Timestamp) -> Result<Vec<(i64, Product)>, Problem> {
    let mut candidates = scores(db, &wanted.query.words)?;
    candidates.sort();
    if let Some(Position { score, product_id }) = &wanted.page.after {
        candidates.retain(|candidate| *candidate > (Reverse(*score), product_id.clone()));
    }
    let mut found = Vec::new();
    for chunk in candidates.chunks(CHUNK) {
        let ids: Vec<ProductId> = chunk.iter().map(|(_, id)| id.clone()).collect();
        let fitting = products::list(db, Range::Among(&ids), &wanted.query, now)?;
        let mut fitting: HashMap<_, _> = fitting.into_iter().map(|p| (p.product_id.clone(), p)).collect();
        found.extend(chunk.iter().filter_map(|(Reverse(score), id)| Some((*score, fitting.remove(id)?))));
        if found.len() >= wanted.page.fetch() {
            break;
        }
    }
    Ok(found)
}

/// The products that have every word, with the sum of their best answers to each.
fn scores(db: &mut Db, words: &BTreeSet<String>) -> Result<Vec<(Reverse<i64>, ProductId)>, Problem> {
    let mut sums: Option<HashMap<ProductId, i64>> = None;
    for asked in words {
        let mut best: HashMap<ProductId, i64> = HashMap::new();
        for (id, word, weight) in products::with_word(db, asked, MAX_ROWS)? {
            let best = best.entry(id).or_default();
            *best = score(asked, &word, weight).max(*best);
        }
        sums = Some(match sums {
            None => best,
            Some(sums) => sums.into_iter().filter_map(|(id, sum)| Some((id.clone(), sum + best.get(&id)?))).collect(),
        });
    }
    Ok(sums.unwrap_or_default().into_iter().map(|(id, sum)| (Reverse(sum), id)).collect())
}
