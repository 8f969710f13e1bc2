//! Searching products.

use super::State;
use super::checked::{Checked, Input, Source};
use super::json::{Faults, Integer, Object};
use super::query::{Numeral, page, unless_empty};
use crate::domain::error::{FaultCode, Problem};
use crate::domain::page::PageRequest;
use crate::domain::product::Category;
use crate::domain::search::{Availability, MAX_BATCH_WORDS, MAX_WORDS, Position, ProductQuery, Search, words};
use crate::operations::Context;
use crate::operations::search_products::{self as search, MAX_QUERIES, ProductList, SearchResults};
use actix_web::{Responder, get, post, web};
use serde::Deserialize;
use std::collections::BTreeSet;

/// Search products
///
/// Search products, best answers first. Use it to find out what is sold and whether it can be had. A product answers
/// when every word of `q` is a word of its title or description, or, from three letters on, begins one; letter case and
/// a final s don't matter. Words in the title count more, whole words a little more. Without words, products come in
/// the order of their ids. For the next page, send `next_cursor` as `cursor` with the same search. To know more of what
/// is found there is no need to ask again: each answer is the whole product. For several searches at once use
/// `batch_search_products`.
#[utoipa::path(
    operation_id = "search_products",
    tag = "products",
    params(SearchParameters),
    responses((status = 200, description = "One page of the answers", body = ProductList)),
)]
#[get("/products")]
pub async fn search_products(state: web::Data<State>, request: Checked<Search>) -> Result<impl Responder, Problem> {
    search::search_products(&state.context, request.input).await.map(web::Json)
}

/// Search many times
///
/// Search many times in one call, in one state of the catalogue. Use it instead of several `search_products`, for
/// example for each item of a shopping list: one call, and no change in between. Each query answers its first page, in
/// the order of the request. For further pages of one, use `search_products` with its `next_cursor`.
#[utoipa::path(
    operation_id = "batch_search_products",
    tag = "products",
    request_body = BatchSearchBody,
    responses((status = 200, description = "The first page of each query, in the order of the request", body = SearchResults)),
)]
#[post("/products-batch-search")]
pub async fn batch_search_products(
    state: web::Data<State>,
    request: Checked<Vec<Search>>,
) -> Result<impl Responder, Problem> {
    search::batch_search_products(&state.context, request.input).await.map(web::Json)
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchParameters {
    /// Words to look for, up to 20 different ones.
    #[param(max_length = 500, example = "blue mug")]
    q: Option<String>,
    /// Only products of this category.
    #[param(pattern = "^[a-z0-9-]{1,64}$", example = "mugs")]
    #[serde(default, deserialize_with = "unless_empty")]
    category: Option<String>,
    /// `true`: only what is available; `false`: only what is not.
    #[param(example = true)]
    #[serde(default, deserialize_with = "unless_empty")]
    in_stock: Option<bool>,
    /// How many products a page may have.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20, example = 20)]
    #[serde(default, deserialize_with = "unless_empty")]
    limit: Option<Numeral>,
    /// The `next_cursor` of the page before, with the same `q`, `category` and `in_stock`.
    #[param(example = "9f86d081884c.4.MUG-BLUE")]
    cursor: Option<String>,
}

/// What to look for: up to 60 different words in all.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BatchSearchRequest)]
pub struct BatchSearchBody {
    /// One a search; each has its own page.
    #[schema(value_type = Vec<QueryBody>, min_items = 1, max_items = 20)]
    queries: Vec<Object<QueryBody>>,
}

/// One search of a batch.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProductQuery)]
pub struct QueryBody {
    /// Words to look for, up to 20 different ones.
    #[schema(max_length = 500, example = "blue mug")]
    q: String,
    /// Only products of this category.
    #[schema(value_type = Option<Category>)]
    category: Option<String>,
    /// `true`: only what is available; `false`: only what is not.
    #[schema(example = true)]
    in_stock: Option<bool>,
    /// How many products its page may have.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 100, default = 20, example = 20)]
    limit: Option<Integer>,
}

impl Input for Search {
    const SOURCE: Source = Source::Query;
    type Raw = SearchParameters;

    fn validate(raw: SearchParameters, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let query = query(&mut faults, "", raw.q.unwrap_or_default(), raw.category, raw.in_stock);
        let page = page(&mut faults, raw.limit, raw.cursor.as_deref(), |cursor| Position::parse(cursor, &query));
        faults.finish(Some(Search { query, page }))
    }
}

impl Input for Vec<Search> {
    type Raw = BatchSearchBody;

    fn validate(raw: BatchSearchBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let bodies = faults.list("/queries", raw.queries, 1, MAX_QUERIES).unwrap_or_default();
        let (mut searches, mut all_words) = (Vec::new(), BTreeSet::new());
        for (i, Object(body)) in bodies.into_iter().enumerate() {
            let at = format!("/queries/{i}");
            let query = query(&mut faults, &at, body.q, body.category, body.in_stock);
            let limit = faults.limit(&format!("{at}/limit"), body.limit.map(|Integer(limit)| limit));
            all_words.extend(query.words.iter().cloned());
            searches.push(Search { query, page: PageRequest { limit, after: None } });
        }
        if all_words.len() > MAX_BATCH_WORDS {
            let detail = format!("Expected up to {MAX_BATCH_WORDS} different words in all queries.");
            faults.add("/queries", FaultCode::WrongLength, detail);
        }
        faults.finish(Some(searches))
    }
}

fn query(faults: &mut Faults, at: &str, q: String, category: Option<String>, in_stock: Option<bool>) -> ProductQuery {
    let pointer = format!("{at}/q");
    let words = words(&faults.prose(&pointer, q, super::json::MAX_TEXT).unwrap_or_default());
    if words.len() > MAX_WORDS {
        faults.add(pointer, FaultCode::WrongLength, format!("Expected up to {MAX_WORDS} different words."));
    }
    ProductQuery {
        words,
        category: category.and_then(|category| faults.category(&format!("{at}/category"), &category)),
        availability: match in_stock {
            None => Availability::Any,
            Some(true) => Availability::InStock,
            Some(false) => Availability::OutOfStock,
        },
    }
}
