//! The start page: what this is, where to go, the demo's keys, and the checklist.

use super::layout;
use crate::domain::actor::Scopes;
use crate::operations::authenticate::DemoActors;
use maud::{Markup, html};

/// What to ask of any service before an agent may call it: the question, and the answer here.
const CHECKLIST: &[(&str, &str)] = &[
    ("Is a key demanded where a repeat would do harm?", "Without one, 400 idempotency_key_required."),
    ("Does the same key get the same answer?", "Byte for byte, with Idempotent-Replayed: true."),
    ("Is another request under the same key refused?", "422 idempotency_key_reused; nothing is done."),
    (
        "Is a request the same when it is only written differently?",
        "10, 10.0 and \"10.00\" are one amount; white space and member order don't matter.",
    ),
    (
        "Can the effect be seen before it happens?",
        "dry_run_checkout and dry_run_refund show it. A purchase always takes a second, bound step; a refund does above a \
         threshold, or when it looks like a repeat.",
    ),
    ("Is an unknown outcome told from a failure?", "503 outcome_unknown: send it again, it is settled once."),
    ("Does the answer survive a crash?", "Claim, effect and answer share a transaction; what was sent is recovered."),
    ("Does each refusal say what to do next?", "recovery, one of six verbs, and Retry-After where waiting helps."),
    ("Is the effect of each operation published?", "x-ai-metadata, from the table that is enforced."),
];

pub fn page(demo: DemoActors) -> Markup {
    let body = html! {
        h1 { "Send it again; it happens once." }
        p class="lead" {
            "Countersign is a commerce backend that software agents can retry without fear: a repeat is harmless, an effect is \
             shown before it happens, and a purchase, a large refund or one that looks like a repeat waits for a second, \
             bound confirmation."
        }
        ul class="doors" {
            li { a href="/docs" { strong { "API" } span { "Every operation, with its effect. Try it here." } } }
            li { a href="/problems" { strong { "Problems" } span { "What each refusal means, and what to do." } } }
            li { a href="/llms.txt" { strong { "llms.txt" } span { "The API in a page, for a model." } } }
            li { a href="/openapi.json" { strong { "OpenAPI 3.1" } span { "The document, for tools." } } }
        }
        @if demo == DemoActors::Admitted { (demo_keys()) }
        h2 { "The checklist" }
        p { "What to ask of any service before an agent may call it, and the answer here." }
        div class="wide stack" { table {
            thead { tr { th { "Question" } th { "Here" } } }
            tbody { @for (question, answer) in CHECKLIST { tr { td { (question) } td { (answer) } } } }
        } }
    };
    layout("Countersign", body)
}

fn demo_keys() -> Markup {
    html! {
        h2 { "Demo credentials" }
        p { "Send one as " code { "Authorization: Bearer …" } ". The money is play money." }
        div class="wide stack" { table {
            thead { tr { th { "Credential" } th { "Account" } th { "Scopes" } } }
            tbody { @for (key, account, scopes) in crate::demo::ACTORS {
                tr { td { code { (key) } } td { (account) } td { code { (Scopes::new(scopes).as_str()) } } }
            } }
        } }
    }
}
