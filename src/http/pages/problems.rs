//! A page for each problem: what happened, what to do, whether to retry and with which key, and an example.

use super::layout;
use crate::domain::error::{Code, Stored};
use crate::domain::operation::Operation;
use crate::http::openapi::Samples;
use maud::{Markup, html};
use serde_json::{Value, json};

/// The operations that can answer with it.
fn operations(code: Code) -> Vec<&'static str> {
    let can = |operation: &&Operation| operation.problems().contains(&code);
    Operation::ALL.iter().filter(can).map(Operation::as_str).collect()
}

const fn about_storing(stored: Stored) -> &'static str {
    match stored {
        Stored::Yes => "It is the key's answer: a repeat with the same key gets it again.",
        Stored::No => "It isn't stored: the next call with the key is judged anew.",
    }
}

/// The same as the page, for machines.
pub fn facts(code: Code, samples: &Samples) -> Value {
    let (row, explained) = (code.row(), code.explained());
    json!({
        "type": format!("/problems/{}", code.as_str()),
        "code": code,
        "title": row.title,
        "status": row.status,
        "recovery": row.recovery,
        "what_happened": explained.what_happened,
        "what_to_do": explained.what_to_do,
        "send_it_again": row.recovery.advice(),
        "stored": row.stored == Stored::Yes,
        "operations": operations(code),
        "example": samples.answer(code),
    })
}

pub fn page(code: Code, samples: &Samples) -> Markup {
    let (row, explained) = (code.row(), code.explained());
    let operations = operations(code);
    let body = html! {
        h1 { code { (code.as_str()) } }
        p class="lead" { (row.title) "." }
        h2 { "What happened" }
        p { (explained.what_happened) }
        h2 { "What to do" }
        p { (explained.what_to_do) }
        dl {
            dt { "Status" } dd { (row.status) }
            dt { "Recovery" } dd { code { (row.recovery.as_str()) } }
            dt { "Send it again?" } dd { (row.recovery.advice()) }
            dt { "Stored?" } dd { (about_storing(row.stored)) }
        }
        h2 { "An example" }
        pre { code { (format!("{:#}", samples.answer(code))) } }
        @if !operations.is_empty() {
            h2 { "Answered by" }
            p { @for (i, operation) in operations.iter().enumerate() {
                @if i > 0 { ", " }
                code { (operation) }
            } }
        }
    };
    layout(&format!("{}: Countersign", code.as_str()), body)
}

pub fn index() -> Markup {
    let body = html! {
        h1 { "Problems" }
        p class="lead" { "Every refusal is RFC 9457 problem details. Its " code { "type" } " is one of these pages." }
        div class="wide" { table {
            thead { tr { th { "Status" } th { "Problem, and what to do next" } } }
            tbody { @for code in Code::ALL {
                tr {
                    td { (code.row().status) }
                    td {
                        a href=(format!("/problems/{}", code.as_str())) { code { (code.as_str()) } }
                        br; (code.row().title) ": " code { (code.row().recovery.as_str()) }
                    }
                }
            } }
        } }
    };
    layout("Problems: Countersign", body)
}
