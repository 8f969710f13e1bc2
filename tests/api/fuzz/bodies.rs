//! Bodies: the document's examples of every operation, with members dropped, doubled, renamed and replaced, and with bytes
//! cut off, put in and changed.

use super::damage::{Edit, Json, UNREAD, any_damage, any_edit};
use super::*;
use crate::contract::{DOCUMENT, assert_valid, resolve};
use serde_json::{Value, json};

/// Each operation with the bodies that the document shows; `{}` where it takes none.
fn examples(order: &str) -> Vec<(Operation, Value)> {
    let mut examples = Vec::new();
    for operation in Operation::ALL {
        let content = &documented(*operation)["requestBody"]["content"]["application/json"];
        let shown = content["examples"].as_object().into_iter().flat_map(|examples| examples.values());
        let mut bodies: Vec<Value> = shown.map(|example| resolve(example)["value"].clone()).collect();
        if bodies.is_empty() {
            bodies.push(json!({}));
        }
        for mut body in bodies {
            if body.get("order_id").is_some() {
                body["order_id"] = json!(order);
            }
            examples.push((*operation, body));
        }
    }
    examples
}

fn documented(operation: Operation) -> &'static Value {
    let profile = operation.profile();
    &DOCUMENT["paths"][profile.path][profile.method.to_lowercase()]
}

/// What was done was asked for as the document wants it.
fn assert_was_allowed(operation: Operation, body: &[u8], what: &str) {
    let schema = &documented(operation)["requestBody"]["content"]["application/json"]["schema"];
    if schema.is_null() || body.is_empty() {
        return;
    }
    let read: Value = serde_json::from_slice(body).unwrap_or_else(|error| panic!("{what} isn't JSON: {error}"));
    assert_valid(&format!("{operation:?} request"), schema, &read, what);
}

#[test]
fn a_body_is_done_as_documented_or_refused_as_documented() {
    let target = Target::open();
    let examples = examples(&target.order);
    let edits = prop::collection::vec((any::<Index>(), any_edit()), 0..3);
    let input = (prop::sample::select(examples), edits, prop::option::weighted(0.2, any_damage()));
    check(1_500, input, |((operation, body), edits, damage)| {
        let mut json = Json::of(&body);
        for (place, edit) in &edits {
            let places = json.places();
            if places > 0 {
                json.edit(place.index(places), edit);
            }
        }
        let written = json.to_string().into_bytes();
        let (refused, sent) = match damage {
            None => (json.repeats_a_name(), written),
            Some(damage) => (false, damage.to(written)),
        };
        let got = target.ask(operation, sent.clone());
        let what = String::from_utf8_lossy(&sent);
        if got.status < 300 {
            assert_was_allowed(operation, &sent, &what);
        }
        assert!(got.status >= 400 || !refused, "{what}");
    });
    target.close();
}

#[test]
fn no_object_has_a_member_that_nobody_reads_or_one_name_twice() {
    let target = Target::open();
    for (operation, body) in examples(&target.order) {
        let json = Json::of(&body);
        for place in 0..json.places() {
            for edit in [Edit::Add(UNREAD[0].to_owned(), "true".to_owned()), Edit::Repeat(1)] {
                let mut json = json.clone();
                json.edit(place, &edit);
                let sent = json.to_string();
                let in_a_list = !json.repeats_a_name() && !sent.contains(UNREAD[0]);
                let got = target.ask(operation, sent.clone().into_bytes());
                assert!(in_a_list || (got.status, got.code().as_str()) == (400, "malformed_request"), "{sent}");
            }
        }
    }
    target.close();
}
