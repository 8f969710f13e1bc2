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
    let samples = Samples::of(&exchanges)?;
    let mut components = json!({
        "securitySchemes": {"bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "An actor's credential (RFC 6750): who calls is known from it alone. `countersign actor create` makes one.",
        }},
        "parameters": headers::parameters(),
        "headers": headers::components(),
        "examples": problems::examples(&samples),
        "responses": {},
    });
    for item in members(&mut document["paths"]) {
        for documented in members(item) {
            let operation = documented["operationId"].as_str().and_then(Operation::parse);
            if let Some(operation) = operation {
                describe(documented, operation, retention, &exchanges);
                let problems = problems::responses(operation, &samples, &mut components["responses"]);
                if let Some(responses) = documented["responses"].as_object_mut() {
                    responses.extend(problems);
                }
            }
        }
    }
    for (name, component) in components.as_object_mut().into_iter().flatten() {
        document["components"][name] = component.take();
    }
    Ok(document)
}

/// What the derive can't say.
fn polish(schema: &mut Value) {
    for branches in ["oneOf", "allOf", "anyOf"] {
        schema.get_mut(branches).and_then(Value::as_array_mut).into_iter().flatten().for_each(polish);
    }
    for member in schema.get_mut("properties").into_iter().flat_map(members) {
        lift_description(member);
        if member["enum"].as_array().is_some_and(|words| words.len() == 1) && member.get("description").is_none() {
            member["description"] = "What became of it; the other members depend on it.".into();
        }
    }
    // Some generators look for the type at the top.
    if schema.get("allOf").is_some() && schema.get("type").is_none() {
        schema["type"] = "object".into();
    }
}

/// What is said of an optional member is the member's, not its type's.
fn lift_description(member: &mut Value) -> Option<()> {
    let [kind, null] = member.get_mut("oneOf")?.as_array_mut()?.as_mut_slice() else { return None };
    let description = kind.as_object_mut().filter(|_| null["type"] == "null")?.remove("description")?;
    member["description"] = description;
    Some(())
}

fn members(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_object_mut().into_iter().flat_map(|object| object.values_mut())
}

fn describe(documented: &mut Value, operation: Operation, retention: Retention, exchanges: &[Exchange]) {
    let profile = operation.profile();
    let own: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.operation == operation).collect();
    parameters(&mut documented["parameters"], operation, &own);
    if let Some(body) = documented.pointer_mut("/requestBody/content/application~1json") {
        body["examples"] = named(own.iter().filter_map(|e| Some((*e, e.body.as_ref()?))));
    }
    if let Some(responses) = documented["responses"].as_object_mut() {
        for (status, response) in responses.iter_mut() {
            succeed(response, operation, status, &own);
        }
    }
    documented["security"] = security(profile);
    documented["x-badges"] = badges(profile);
    documented["x-ai-metadata"] = profile.ai_metadata(retention);
}

fn parameters(parameters: &mut Value, operation: Operation, own: &[&Exchange]) {
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
    let of_key: &[&str] = match operation.profile().key {
        KeyRule::Required => &["IdempotencyKey"],
        KeyRule::Natural => &["OptionalIdempotencyKey"],
        KeyRule::None if operation == Operation::GetOperationStatus => &["LookedUpKey"],
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
        (Effect::Pure, _) => "read only",
        (_, Reach::Provider) => "moves money",
        (Effect::Idempotent, Reach::Local) => "idempotent",
        (Effect::Reversible, Reach::Local) => "reversible",
        (Effect::Compensable, Reach::Local) => "holds, can be cancelled",
        (Effect::Irreversible, Reach::Local) => "irreversible",
    };
    let key = match profile.key {
        KeyRule::Required => Some("needs a key"),
        KeyRule::Natural => Some("needs no key"),
        KeyRule::None => None,
    };
    let dry_run = profile.dry_run.map(|_| "has a dry run");
    let second = profile.confirm.map(|_| "has a second step");
    [Some(effect), key, dry_run, second].into_iter().flatten().map(|name| json!({"name": name})).collect()
}
