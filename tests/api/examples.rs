//! The document's examples are answers of a real server: the story of `openapi/examples.json`, told again.
//! `UPDATE_EXAMPLES=1` writes down what the server answers now.

use crate::support::*;
use countersign::domain::operation::Operation;
use countersign::http::openapi::exchanges::{self, Answers, Exchange};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

async fn tell(app: &TestApp, exchange: &Exchange) -> Got {
    let profile = exchange.operation.profile();
    let mut path = profile.path.to_owned();
    for (name, value) in &exchange.path {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    let url = format!("{}{path}?{}", app.url, exchange.query);
    let mut request = reqwest::Client::new().request(profile.method.parse().unwrap(), url);
    request = request.bearer_auth(&exchange.credential);
    for (name, value) in &exchange.headers {
        request = request.header(name, value);
    }
    if let Some(body) = &exchange.body {
        request = request.json(body);
    }
    send(request).await
}

/// Ids are made anew each time, and the digests of refunds, which name an order: each gets the ordinal of its first
/// appearance.
fn with_ordinals(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap();
    let mut ordinals = BTreeMap::new();
    let words = text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c)));
    let words = words.map(|word| {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let hex = bare.strip_prefix("sha256:").or_else(|| bare.split_once('_').map(|(_, hex)| hex)).unwrap_or_default();
        if hex.len() < 32 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return word.to_owned();
        }
        let next = ordinals.len();
        let ordinal = ordinals.entry(hex.to_owned()).or_insert(next);
        word.replace(hex, &ordinal.to_string())
    });
    words.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_document_are_what_the_server_answers() {
    let app = TestApp::start().await;
    let (mut answers, mut told) = (Answers::new(), Vec::new());
    for exchange in exchanges::recorded().unwrap() {
        let filled = exchange.clone().filled(&answers);
        let got = tell(&app, &filled).await;
        assert!(got.status < 300, "{}: {} {}", exchange.id(), got.status, got.text());
        let answer = (!got.body.is_empty()).then(|| got.json());
        answers.insert(exchange.id(), answer.clone().unwrap_or_default());
        told.push(Exchange { status: got.status, answer, ..exchange });
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/examples.json");
    let recorded = serde_json::to_value(exchanges::recorded().unwrap()).unwrap();
    let told = serde_json::to_value(told).unwrap();
    let same = with_ordinals(&recorded) == with_ordinals(&told);
    if !same && std::env::var("UPDATE_EXAMPLES").is_ok() {
        std::fs::write(path, serde_json::to_string_pretty(&told).unwrap() + "\n").unwrap();
        panic!("openapi/examples.json is new: look at it, and run this again without UPDATE_EXAMPLES");
    }
    assert!(same, "{}\n{}", with_ordinals(&recorded), with_ordinals(&told));
}

/// The first recorded answer of an operation.
pub fn answer_of(operation: Operation) -> Value {
    let mut exchanges = exchanges::all().unwrap().into_iter();
    exchanges.find(|exchange| exchange.operation == operation).and_then(|exchange| exchange.answer).unwrap()
}

#[test]
fn every_operation_has_an_example() {
    let exchanges = exchanges::all().unwrap();
    for operation in Operation::ALL {
        assert!(exchanges.iter().any(|exchange| exchange.operation == *operation), "{operation:?}");
    }
    let text = serde_json::to_string(&exchanges).unwrap();
    assert!(!text.contains("\"{"), "a name that stands for nothing");
}
