//! Query strings, read as strictly as bodies: no unknown or repeated parameter, no NUL.

use super::json::Faults;
use crate::domain::error::{FaultCode, Problem};
use crate::domain::page::PageRequest;
use actix_web::error::QueryPayloadError;
use actix_web::web::Query;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

/// A parameter that is left empty counts as absent, as forms send it; but an empty cursor would start a list anew.
pub fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    if query.contains("%00") {
        return Err(Problem::malformed("The query has a NUL character (%00)."));
    }
    let given: Vec<&str> = query.split('&').filter(|pair| !pair.ends_with('=') || *pair == "cursor=").collect();
    let malformed = |error: QueryPayloadError| {
        let reason = match &error {
            QueryPayloadError::Deserialize(reason) => reason.to_string(),
            _ => error.to_string(),
        };
        Problem::malformed(format!("The query is not the documented one: {reason}."))
    };
    Query::<T>::from_query(&given.join("&")).map(Query::into_inner).map_err(malformed)
}

/// An integer of any size, written in a query; beyond 64 bits it saturates, and is out of every range then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numeral(pub i64);

impl<'de> Deserialize<'de> for Numeral {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::json::integer(&text).map(Self).ok_or_else(|| D::Error::custom("expected an integer"))
    }
}

/// The page that `limit` and `cursor` ask for.
pub fn page<P>(
    faults: &mut Faults,
    limit: Option<Numeral>,
    cursor: Option<&str>,
    parse: impl Fn(&str) -> Option<P>,
) -> PageRequest<P> {
    let limit = faults.limit("/limit", limit.map(|Numeral(limit)| limit));
    let after = cursor.and_then(|cursor| {
        let after = parse(cursor);
        if after.is_none() {
            let detail = "Expected a `next_cursor` of this very list or search; leave it out for the first page.";
            faults.add("/cursor", FaultCode::WrongFormat, detail);
        }
        after
    });
    PageRequest { limit, after }
}
