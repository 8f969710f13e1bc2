//! What reads bodies and queries, alone: nothing is read that isn't JSON, UTF-8 or of the documented shape, and an amount is
//! one amount however it is written.

use super::*;
use crate::contract::DOCUMENT;
use countersign::domain::money::{Currency, Money};
use countersign::domain::page::MAX_LIMIT;
use countersign::http::address::{AddressBody, address};
use countersign::http::json::{self, Faults, MoneyBody};
use countersign::http::query::{self, Numeral, page};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NUMBERS: &[&str] =
    &["0", "10", "10.00", "47.3", "-5", "1e1", "1E+2", "0.001", "9007199254740993", "01", "+1", ".5"];

/// The amount that a body's two members are; None where they are none.
fn read_money(amount: &str, currency: Currency) -> Option<Money> {
    let body = format!("{{\"amount\":{amount},\"currency\":\"{}\"}}", currency.as_str());
    let body = json::parse::<MoneyBody>(body.as_bytes()).ok()?;
    let mut faults = Faults::default();
    let money = faults.money("/price", body);
    faults.finish(money).ok()
}

#[test]
fn f35_an_amount_is_the_same_as_a_string_and_as_a_number() {
    let currency = prop::sample::select(Currency::ALL);
    check(10_000, (text_near(NUMBERS), currency), |(text, currency)| {
        let parsed = Money::parse(&text, currency).ok().filter(|_| text.len() <= json::MAX_TEXT);
        assert_eq!(read_money(&json!(text).to_string(), currency), parsed, "as a string: {text:?}");
        let number = text.trim_matches([' ', '\t', '\r', '\n']); // white space around a value is JSON's
        if !number.starts_with('"') {
            let parsed = Money::parse(number, currency).ok().filter(|_| number.len() <= json::MAX_TEXT);
            assert_eq!(read_money(number, currency), parsed, "as a number: {number:?}");
        }
    });
}

#[test]
fn what_is_read_of_a_body_is_json_without_nul() {
    let near =
        ["{\"product_ids\":[\"MUG-BLUE\"]}", "{\"a\":\"\\u0000\"}", "{\"a\":\"\\\\u0000\"}", "{\"a\":{\"b\":null}}"];
    let bytes = prop_oneof![
        3 => text_near(&near).prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..300),
    ];
    check(20_000, bytes, |bytes| {
        let read = json::parse::<BTreeMap<String, Value>>(&bytes).ok().map(|read| json!(read));
        let standard = serde_json::from_slice::<Value>(&bytes).ok();
        assert_eq!(read, standard.filter(|value| value.is_object() && !has_nul(value)));
    });
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(members) => members.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[test]
fn an_address_is_read_where_the_document_allows_it() {
    let mut schema = json!({"$ref": "#/components/schemas/AddressInput"});
    schema["components"] = DOCUMENT["components"].clone();
    let documented = jsonschema::validator_for(&schema).unwrap();
    let member = prop::sample::select(&["name", "line1", "line2", "city", "region", "postal_code", "country", "x"][..]);
    let long = (498_usize..503).prop_map(|length| "é".repeat(length));
    let text = prop_oneof![4 => text_near(&["US", "us", "USA", " ", "\u{a0}", "94105"]), 1 => long];
    check(5_000, prop::collection::vec((member, text), 0..3), |changes| {
        let mut sent = crate::support::address("US");
        for (name, text) in changes {
            sent[name] = json!(text);
        }
        let read = json::parse::<AddressBody>(sent.to_string().as_bytes()).ok().and_then(|body| {
            let mut faults = Faults::default();
            let read = address(&mut faults, "", body);
            faults.finish(read).ok()
        });
        let allowed = documented.is_valid(&sent) && !has_nul(&sent);
        assert_eq!(read.map(|read| json!(read)), allowed.then_some(sent.clone()), "{sent}");
    });
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    q: Option<String>,
    limit: Option<String>,
}

/// What percent-encoding stands for: `application/x-www-form-urlencoded`.
fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|hex| first == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        let hex = hex.map(|hex| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap());
        rest = if hex.is_some() { &after[2..] } else { after };
        bytes.push(hex.unwrap_or(if first == b'+' { b' ' } else { first }));
    }
    bytes
}

#[test]
fn what_is_read_of_a_query_is_what_was_sent_and_utf_8_without_nul() {
    let near = ["q=mug", "q=%C3%A9&limit=20", "q=%FF", "q=%00", "limit=1&limit=2", "q", "dry_run=true", "q=a+b%zz"];
    check(20_000, text_near(&near), |query| {
        let Ok(Parameters { q, limit }) = query::parse::<Parameters>(&query) else { return };
        let mut read = BTreeMap::from([("q", q), ("limit", limit)]);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').expect("a parameter has a value");
            let name = String::from_utf8(decoded(name)).unwrap();
            let value = String::from_utf8(decoded(value)).unwrap_or_else(|_| panic!("{query:?} isn't UTF-8"));
            assert!(!value.contains('\0'), "{query:?}");
            assert_eq!(read.remove(name.as_str()).flatten(), Some(value), "{query:?}");
        }
        assert!(read.into_values().flatten().next().is_none(), "{query:?}");
    });
}

#[test]
fn a_page_has_a_limit_in_its_range_or_is_refused() {
    check(10_000, text_near(&["1", "20", "100", "101", "-1", "9223372036854775808", "1.0"]), |text| {
        let Ok(limit) = text.parse::<Numeral>() else { return };
        let mut faults = Faults::default();
        let page = page(&mut faults, Some(limit), None, |_| None::<()>);
        let in_range = text.trim_start_matches('0').parse::<usize>().is_ok_and(|n| (1..=MAX_LIMIT).contains(&n));
        assert_eq!(faults.finish(Some(page)).is_ok(), in_range, "{text:?}");
    });
}
