//! The headers of requests and answers, described once.

use crate::domain::error::{Code, Recovery, Stored};
use crate::domain::operation::Operation;
use crate::effects::KeyRule;
use serde_json::{Map, Value, json};

/// Visible ASCII, bare or as an RFC 9651 string; a bare one doesn't begin with a quote.
const KEY: &str = r#"^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$"#;

pub fn parameters() -> Value {
    let key = |about: &str, required: bool| {
        json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": required,
            "description": format!(
                "{about} Make it outside the model, once for each step; store it before the first attempt; keep it on \
                 every retry. 1 to 255 visible ASCII characters, as they are or as a quoted string (RFC 9651; \
                 draft-ietf-httpapi-idempotency-key-header)."
            ),
            "schema": {"type": "string", "pattern": KEY},
            "example": "order-7f3a-step-2",
        })
    };
    json!({
        "IdempotencyKey": key("Names this one intended effect: a repeat with it gets the first answer.", true),
        "OptionalIdempotencyKey": key(
            "A repeat is harmless without it. With it, a late repeat gets the first answer as long as that is kept, and \
             another request with the same key is refused.",
            false,
        ),
        "LookedUpKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "required": true,
            "description": "The key to look up, of one's own calls.",
            "schema": {"type": "string", "pattern": KEY},
            "example": "order-7f3a-step-2",
        },
        "AgentTaskId": {
            "name": "Agent-Task-Id",
            "in": "header",
            "required": false,
            "description": "Groups the calls of one task of an agent: `get_task` counts them. 1 to 128 visible ASCII characters.",
            "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
            "example": "task-7f3a",
        },
        "RequestId": {
            "name": "X-Request-Id",
            "in": "header",
            "required": false,
            "description": "Names this one request in answers and logs. Taken over if it is 1 to 128 letters, digits, \
                            `-`, `.`, `_` and `~`; else one is made.",
            "schema": {"type": "string"},
            "example": "req-42",
        },
    })
}

pub fn components() -> Value {
    json!({
        "RequestId": {
            "description": "The request's id: the caller's, or one that was made.",
            "required": true,
            "schema": {"type": "string", "example": "req_019adef6a0c07a3b9d1c6f2b5e8a4d10"},
        },
        "IdempotencyKey": {
            "description": "The key that was sent, without quotes.",
            "schema": {"type": "string", "example": "order-7f3a-step-2"},
        },
        "IdempotencyKeyExpires": {
            "description": "Until when the key's answer is kept, where a claim stands behind the call. RFC 3339, UTC.",
            "schema": {"type": "string", "format": "date-time", "example": "2026-12-08T09:30:00.000Z"},
        },
        "IdempotentReplayed": {
            "description": "`true` where this is the answer of an earlier call: same status, same body, nothing was done now. Absent otherwise.",
            "schema": {"type": "string", "enum": ["true"], "example": "true"},
        },
        "Location": {
            "description": "The path of what was made.",
            "required": true,
            "schema": {"type": "string", "format": "uri-reference", "example": "/confirmations/cnf_019adef6a0c07a3b9d1c6f2b5e8a4d10"},
        },
        "RetryAfter": {
            "description": "Whole seconds (RFC 9110, 10.2.3), where the same call should be sent again: a floor, not a target.",
            "schema": {"type": "integer", "minimum": 1, "example": 1},
        },
        "WwwAuthenticate": {
            "description": "How to authenticate (RFC 6750, 3).",
            "required": true,
            "schema": {"type": "string", "example": "Bearer realm=\"countersign\""},
        },
    })
}

pub fn of_success(operation: Operation, status: &str) -> Value {
    let keyed = operation.profile().key != KeyRule::None;
    let named = keyed || operation == Operation::GetOperationStatus;
    let made = matches!(status, "201" | "202");
    list([
        ("Location", "Location", made),
        ("Idempotent-Replayed", "IdempotentReplayed", keyed),
        ("Idempotency-Key", "IdempotencyKey", named),
        ("Idempotency-Key-Expires", "IdempotencyKeyExpires", named),
        ("X-Request-Id", "RequestId", true),
    ])
}

/// Of an answer that can carry these codes.
pub fn of_problem(operation: Operation, codes: &[Code]) -> Value {
    let keyed = operation.profile().key != KeyRule::None;
    let looks_up = operation == Operation::GetOperationStatus;
    // Before the headers are looked at, no key is known. A key that is looked up says which scope it takes.
    let early = |code: &Code| *code == Code::Unauthenticated || (*code == Code::InsufficientScope && !looks_up);
    let named = (keyed || looks_up) && !codes.iter().all(early);
    let any = |holds: fn(Code) -> bool| codes.iter().any(|code| holds(*code));
    list([
        ("Retry-After", "RetryAfter", any(says_when)),
        ("WWW-Authenticate", "WwwAuthenticate", any(|code| code == Code::Unauthenticated)),
        ("Idempotent-Replayed", "IdempotentReplayed", keyed && any(|code| code.row().stored == Stored::Yes)),
        ("Idempotency-Key", "IdempotencyKey", named),
        ("Idempotency-Key-Expires", "IdempotencyKeyExpires", keyed && any(has_claim)),
        ("X-Request-Id", "RequestId", true),
    ])
}

fn says_when(code: Code) -> bool {
    code.row().recovery == Recovery::RetrySameKey || code == Code::AttemptPending
}

/// Whether a claim can stand behind a problem: it was stored, or the call had begun.
fn has_claim(code: Code) -> bool {
    let begun =
        matches!(code, Code::IdempotencyKeyReused | Code::PaymentNeedsReview | Code::Overloaded | Code::InternalError);
    begun || code.is_undecided() || code.row().stored == Stored::Yes
}

fn list<const N: usize>(headers: [(&str, &str, bool); N]) -> Value {
    let present = headers.into_iter().filter(|(_, _, present)| *present);
    let headers = present
        .map(|(name, component, _)| (name.to_owned(), json!({"$ref": format!("#/components/headers/{component}")})));
    Value::Object(headers.collect::<Map<_, _>>())
}
