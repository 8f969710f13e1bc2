//! Query strings, read as strictly as bodies: no unknown or repeated parameter, UTF-8 without NUL.

use super::json::Faults;
use crate::domain::error::{FaultCode, Problem};
use crate::domain::page::PageRequest;
use actix_web::error::QueryPayloadError;
use actix_web::web::Query;
use percent_encoding::percent_decode_str;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use std::str::FromStr;

pub fn parse<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    // What isn't UTF-8 would be read as U+FFFD.
    let decoded = percent_decode_str(query).decode_utf8();
    let decoded = decoded.map_err(|_| Problem::malformed("The query isn't UTF-8."))?;
    if decoded.contains('\0') {
        return Err(Problem::malformed("The query has a NUL character (%00)."));
    }
    // `?in_stock` could be meant as true, and would be read as absent.
    if query.split('&').any(|pair| !pair.is_empty() && !pair.contains('=')) {
        return Err(Problem::malformed("The query has a parameter without a value."));
    }
    let malformed = |error: QueryPayloadError| {
        let reason = match &error {
            QueryPayloadError::Deserialize(reason) => reason.to_string(),
            _ => error.to_string(),
        };
        Problem::malformed(format!("The query is not the documented one: {reason}."))
    };
    Query::<T>::from_query(query).map(Query::into_inner).map_err(malformed)
}

/// An integer of any size, written in a query; beyond 64 bits it saturates, and is out of every range then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numeral(pub i64);

impl FromStr for Numeral {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        super::json::integer(text).map(Self).ok_or(())
    }
}

/// A parameter that is left empty counts as absent, as forms send it. (A cursor isn't read with this: an empty one would
/// start a list anew.)
pub fn unless_empty<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let unknown = |_| D::Error::custom(format!("unexpected value `{text}`"));
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(unknown) }
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
