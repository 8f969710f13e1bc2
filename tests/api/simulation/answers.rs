//! An answer, beside what the model expects.

use super::shop::Expect;
use crate::support::Got;
use countersign::domain::error::{Code, Stored};
use serde_json::Value;

pub(super) fn answered(got: &Option<Got>) -> String {
    match got {
        None => "nothing".to_owned(),
        Some(got) => {
            let short: String = got.text().chars().take(300).collect();
            format!("{}{} {short}", got.status, if got.is_replay() { " again" } else { "" })
        }
    }
}

pub(super) fn kind(got: &Option<Got>) -> String {
    match got {
        None => "lost".to_owned(),
        Some(got) if got.is_replay() => format!("{} again", got.status),
        Some(got) if got.status < 400 => got.status.to_string(),
        Some(got) => got.code(),
    }
}

pub(super) fn is_stored(got: &Got) -> bool {
    Code::parse(&got.code()).is_some_and(|code| code.row().stored == Stored::Yes)
}

pub(super) fn is_open(got: &Got) -> bool {
    got.status == 503 || (got.status == 409 && got.code().ends_with("_in_flight"))
}

pub(super) fn fits(expect: &Expect, got: &Got) -> bool {
    let body = if got.body.is_empty() { Value::Null } else { got.json() };
    let fact = |(pointer, value): &(&str, String)| {
        let found = match body.pointer(pointer) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) => items.len().to_string(),
            Some(other) => other.to_string(),
        };
        found == *value
    };
    got.status == expect.status
        && (got.status < 400 || body["code"].as_str() == expect.code)
        && expect.replay.is_none_or(|replay| replay == got.is_replay())
        && expect.facts.iter().all(fact)
}
