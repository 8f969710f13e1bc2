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
        Stored::Yes => {
            "It becomes the key's answer, where the call has one: a repeat with the same key gets it again. A dry run keeps nothing."
        }
        Stored::No => "It isn't kept as a key's answer.",
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
        p { (prose(explained.what_happened)) }
        h2 { "What to do" }
        p { (prose(explained.what_to_do)) }
        dl {
            dt { "Status" } dd { (row.status) }
            dt { "Recovery" } dd { code { (row.recovery.as_str()) } }
            dt { "Send it again?" } dd { (prose(row.recovery.advice())) }
            dt { "Stored?" } dd { (about_storing(row.stored)) }
        }
        h2 { "An example" }
        pre { code { (format!("{:#}", samples.answer(code))) } }
        h2 { "Answered by" }
        @if operations.is_empty() {
            p { "No operation by itself: it stands in the results of " code { "batch_update_products" } ", or the path is none." }
        } @else {
            p { @for (i, operation) in operations.iter().enumerate() {
                @if i > 0 { ", " }
                code { (operation) }
            } }
        }
    };
    layout(&format!("{}: Countersign", code.as_str()), body)
}

/// Text in which back-ticks stand around code.
fn prose(text: &str) -> Markup {
    html! { @for (i, part) in text.split('`').enumerate() {
        @if i % 2 == 1 { code { (part) } } @else { (part) }
    } }
}

/// The list, for machines.
pub fn list() -> Value {
    let problems = Code::ALL.iter().map(|code| {
        let row = code.row();
        let path = format!("/problems/{}", code.as_str());
        json!({"type": path, "code": code, "title": row.title, "status": row.status, "recovery": row.recovery})
    });
    json!({"problems": problems.collect::<Vec<_>>()})
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
