//! The OpenAPI document: collected from the handlers, and completed with what holds for all of them. Keys, scopes,
//! problems, badges and `x-ai-metadata` come from the effect catalogue and the error table; examples are answers that a
//! server gave.

pub mod exchanges;
mod headers;
mod links;
mod problems;

use crate::domain::error::ProblemBody;
use crate::domain::operation::Operation;
use crate::effects::{Effect, EffectProfile, KeyRule, Reach, Retention};
use exchanges::Exchange;
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;

pub use problems::Samples;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Countersign",
        description = include_str!("about.md"),
        contact(name = "Countersign"),
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "/", description = "The server that this document came from")),
    components(schemas(ProblemBody)),
    tags(
        (name = "products", description = "What is sold, and how much of it is available."),
        (name = "checkout", description = "Dry run, propose, confirm: look first, hold price and stock, then pay once."),
        (name = "confirmations", description = "Firm, single-use offers to run one operation with one plan."),
        (name = "orders", description = "What confirmed plans became."),
        (name = "refunds", description = "Giving money back, at most once and never too much."),
        (name = "tasks", description = "What became of a key, and of all calls of a task."),
    ),
)]
struct Base;

/// What the document starts from.
pub fn base() -> OpenApi {
    Base::openapi()
}

/// Adds to each operation what its profile says of it, and what a server answered.
pub fn complete(collected: &OpenApi, retention: Retention) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(collected)?;
    members(&mut document["components"]["schemas"]).for_each(polish);
    let exchanges = exchanges::all()?;
    let mut components = json!({
        "securitySchemes": {"bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "An actor's key (RFC 6750): who calls is known from it alone. `countersign actor create` makes one.",
        }},
        "parameters": headers::parameters(),
        "headers": headers::components(),
        "examples": problems::examples(&Samples::of(&exchanges)?),
        "responses": {},
    });
    for item in members(&mut document["paths"]) {
        for documented in members(item) {
            let operation = documented["operationId"].as_str().and_then(Operation::parse);
            if let Some(operation) = operation {
                describe(documented, operation, retention, &exchanges, &mut components["responses"]);
            }
        }
    }
    if let (Some(into), Value::Object(components)) = (document["components"].as_object_mut(), components) {
        into.extend(components);
    }
    Ok(document)
}

/// What the derive can't say: that which is said of an optional member is the member's, not its type's; and what tells the
/// variants of a union apart.
fn polish(schema: &mut Value) {
    for branches in ["oneOf", "allOf", "anyOf"] {
        schema.get_mut(branches).and_then(Value::as_array_mut).into_iter().flatten().for_each(polish);
    }
    let composed = schema.get("allOf").is_some() && schema.get("type").is_none();
    if let Some(object) = schema.as_object_mut().filter(|_| composed) {
        object.insert("type".to_owned(), "object".into()); // some generators look for it at the top
    }
    for member in schema.get_mut("properties").into_iter().flat_map(members) {
        let lifted =
            member.get_mut("oneOf").and_then(Value::as_array_mut).and_then(|branches| match branches.as_mut_slice() {
                [kind, null] if null["type"] == "null" => kind.as_object_mut()?.remove("description"),
                _ => None,
            });
        let is_tag = member["enum"].as_array().is_some_and(|words| words.len() == 1);
        if let Some(object) = member.as_object_mut() {
            match lifted {
                Some(description) => drop(object.insert("description".to_owned(), description)),
                None if is_tag => drop(object.entry("description").or_insert("Which of the variants it is.".into())),
                None => {}
            }
        }
    }
}

fn members(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_object_mut().into_iter().flat_map(|object| object.values_mut())
}

fn describe(
    documented: &mut Value,
    operation: Operation,
    retention: Retention,
    exchanges: &[Exchange],
    shared: &mut Value,
) {
    let profile = operation.profile();
    let own: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.operation == operation).collect();
    parameters(&mut documented["parameters"], profile, &own);
    let body = &mut documented["requestBody"]["content"]["application/json"];
    if !body["schema"].is_null() {
        body["examples"] = named(own.iter().filter_map(|e| Some((*e, e.body.as_ref()?))));
    } else if let Some(object) = documented.as_object_mut() {
        object.remove("requestBody"); // that looking made
    }
    if let Some(responses) = documented["responses"].as_object_mut() {
        for (status, response) in responses.iter_mut() {
            succeed(response, operation, status, &own);
        }
        responses.extend(problems::responses(operation, shared));
    }
    documented["security"] = security(profile);
    documented["x-badges"] = badges(profile);
    documented["x-ai-metadata"] = profile.ai_metadata(retention);
}

fn parameters(parameters: &mut Value, profile: &EffectProfile, own: &[&Exchange]) {
    if parameters.is_null() {
        *parameters = json!([]);
    }
    let Some(list) = parameters.as_array_mut() else { return };
    for parameter in list.iter_mut().filter(|parameter| parameter["in"] == "path") {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        if let Some(value) = own.iter().find_map(|exchange| exchange.path.get(&name)) {
            parameter["example"] = json!(value);
        }
    }
    for parameter in list.iter_mut().filter(|parameter| parameter["in"] == "query" && parameter["name"] != "cursor") {
        parameter["allowEmptyValue"] = json!(true); // it counts as absent then
    }
    let of_key: &[&str] = match profile.key {
        KeyRule::Required => &["IdempotencyKey"],
        KeyRule::Natural => &["OptionalIdempotencyKey"],
        KeyRule::None => &[],
    };
    let shared = of_key.iter().chain(&["AgentTaskId", "RequestId"]);
    list.extend(shared.map(|name| json!({"$ref": format!("#/components/parameters/{name}")})));
}

/// Completes an answer that did what was asked.
fn succeed(response: &mut Value, operation: Operation, status: &str, own: &[&Exchange]) {
    response["headers"] = headers::of_success(operation, status);
    let links = links::of(operation, status);
    if links.as_object().is_some_and(|links| !links.is_empty()) {
        response["links"] = links;
    }
    if let Some(content) = response.get_mut("content") {
        let answered = own.iter().filter(|exchange| exchange.status.to_string() == status);
        content["application/json"]["examples"] = named(answered.filter_map(|e| Some((*e, e.answer.as_ref()?))));
    }
}

fn named<'a>(examples: impl Iterator<Item = (&'a Exchange, &'a Value)>) -> Value {
    let examples =
        examples.map(|(exchange, value)| (exchange.name.clone(), json!({"summary": exchange.summary, "value": value})));
    Value::Object(examples.collect::<Map<_, _>>())
}

/// Alternatives: any one scope is enough.
fn security(profile: &EffectProfile) -> Value {
    match profile.scopes {
        [] => json!([{"bearer": []}]),
        scopes => scopes.iter().map(|scope| json!({"bearer": [scope]})).collect(),
    }
}

/// The effect profile at a glance.
fn badges(profile: &EffectProfile) -> Value {
    let effect = match (profile.effect, profile.reach) {
        (Effect::Pure, _) => ("read only", "#2e7d32"),
        (_, Reach::Provider) => ("moves money", "#c62828"),
        (Effect::Idempotent, Reach::Local) => ("idempotent", "#1565c0"),
        (Effect::Reversible, Reach::Local) => ("reversible", "#1565c0"),
        (Effect::Compensable, Reach::Local) => ("holds, can be cancelled", "#1565c0"),
        (Effect::Irreversible, Reach::Local) => ("irreversible", "#c62828"),
    };
    let key = match profile.key {
        KeyRule::Required => Some(("needs a key", "#8d6e00")),
        KeyRule::Natural => Some(("safe to repeat", "#2e7d32")),
        KeyRule::None => None,
    };
    let dry_run = profile.dry_run.map(|_| ("has a dry run", "#6a1b9a"));
    let second = profile.confirm.map(|_| ("has a second step", "#6a1b9a"));
    let badges = [Some(effect), key, dry_run, second].into_iter().flatten();
    badges.map(|(name, color)| json!({"name": name, "color": color})).collect()
}
