//! Every answer of the suite is held against the OpenAPI document: its status, media type, headers and body have to be
//! documented for the operation, and no member may be there that the document doesn't know.

use crate::support::Got;
use countersign::domain::error::{Code, Recovery};
use countersign::domain::money::Currency;
use countersign::domain::operation::Operation;
use countersign::effects::Retention;
use countersign::http;
use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

pub static DOCUMENT: LazyLock<Value> = LazyLock::new(|| http::document(Retention::DEFAULT).unwrap());

/// The document with `unevaluatedProperties: false` wherever members are listed, so that an undocumented one is found.
static STRICT: LazyLock<Value> = LazyLock::new(|| {
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    let copies = |part| schemas.iter().map(|(name, schema)| (name.clone(), strict(schema, part))).collect();
    let (whole, part): (Map<_, _>, Map<_, _>) = (copies(Part::Whole), copies(Part::Branch));
    json!({"schemas": whole, "branches": part})
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Whole,
    /// Of an allOf, oneOf or anyOf, which lists further members elsewhere.
    Branch,
}

fn strict(schema: &Value, part: Part) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let mut made = Map::new();
    for (name, value) in members {
        let value = match (name.as_str(), value) {
            ("$ref", Value::String(to)) if part == Part::Branch => {
                json!(to.replace("/components/schemas/", "/components/branches/"))
            }
            ("allOf" | "oneOf" | "anyOf", Value::Array(branches)) => {
                branches.iter().map(|branch| strict(branch, Part::Branch)).collect()
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, value)| (name.clone(), strict(value, Part::Whole)));
                Value::Object(properties.collect())
            }
            ("items", value) => strict(value, Part::Whole),
            (_, value) => value.clone(),
        };
        made.insert(name.clone(), value);
    }
    let lists_members = ["properties", "allOf", "oneOf", "anyOf"].iter().any(|word| made.contains_key(*word));
    if part == Part::Whole && lists_members {
        made.insert("unevaluatedProperties".to_owned(), json!(false));
    }
    Value::Object(made)
}

/// Panics where an answer isn't the documented one.
pub fn assert_documented(method: &Method, path: &str, got: &Got) {
    let what = || format!("{method} {path}: {} {}", got.status, got.text());
    let Some(operation) = operation(method, path) else { return assert_page_or_problem(path, got, &what()) };
    let profile = operation.profile();
    let documented = &DOCUMENT["paths"][profile.path][profile.method.to_lowercase()];
    let response = resolve(&documented["responses"][got.status.to_string()]);
    assert!(!response.is_null(), "{}: the status isn't documented", what());
    assert_headers(response, got, &what());
    match (&response["content"], got.header("Content-Type")) {
        (Value::Null, None) => assert!(got.body.is_empty(), "{}", what()),
        (content, Some(media_type)) => {
            let schema = &content[media_type]["schema"];
            assert!(!schema.is_null(), "{}: {media_type} isn't documented", what());
            assert_valid(&format!("{operation:?} {}", got.status), schema, &got.json(), &what());
            assert_amounts(&got.json(), &what());
            if media_type == "application/problem+json" {
                assert_row(got, &what());
            }
        }
        (_, None) => panic!("{}: no media type", what()),
    }
}

/// A problem says what its row of the error table says.
fn assert_row(got: &Got, what: &str) {
    let (problem, code) = (got.json(), Code::parse(&got.code()).unwrap());
    let row = code.row();
    assert_eq!(problem["type"], format!("/problems/{}", code.as_str()), "{what}");
    assert_eq!((&problem["title"], &problem["status"]), (&json!(row.title), &json!(got.status)), "{what}");
    assert_eq!(problem["recovery"], row.recovery.as_str(), "{what}");
    let waits = problem["retry_after_seconds"].as_u64().map(|seconds| seconds.to_string());
    assert_eq!(got.header("Retry-After"), waits.as_deref(), "{what}");
    assert!(row.recovery != Recovery::RetrySameKey || waits.is_some(), "{what}: no Retry-After");
}

/// An amount has exactly its currency's digits.
fn assert_amounts(value: &Value, what: &str) {
    if let (Some(amount), Some(currency)) = (value["amount"].as_str(), value["currency"].as_str()) {
        let digits = amount.split_once('.').map_or(0, |(_, digits)| digits.len());
        assert_eq!(digits, Currency::parse(currency).unwrap().digits(), "{what}: {amount} {currency}");
    }
    let members = value.as_object().into_iter().flat_map(|object| object.values());
    members.chain(value.as_array().into_iter().flatten()).for_each(|inner| assert_amounts(inner, what));
}

/// What no operation answers: a page, or the problem of a path or method that isn't there.
fn assert_page_or_problem(path: &str, got: &Got, what: &str) {
    if matches!(got.status, 404 | 405) {
        assert_valid("Problem", &json!({"$ref": "#/components/schemas/Problem"}), &got.json(), what);
    }
    let open = ["/", "/healthz", "/readyz", "/openapi.json", "/llms.txt"].contains(&path);
    let open = open || ["/docs", "/problems", "/schemas/"].iter().any(|start| path.starts_with(start));
    let fine = if open { matches!(got.status, 200 | 304 | 404 | 405 | 503) } else { matches!(got.status, 404 | 405) };
    assert!(fine, "{what}: no operation, and no page");
    assert_eq!(got.status == 405, got.header("Allow").is_some(), "{what}");
}

fn operation(method: &Method, path: &str) -> Option<Operation> {
    let found = |operation: &&Operation| {
        let profile = operation.profile();
        profile.method == method.as_str() && profile.takes(path)
    };
    Operation::ALL.iter().find(found).copied()
}

/// What a reference of the document leads to.
pub fn resolve(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(reference) => DOCUMENT.pointer(reference.trim_start_matches('#')).unwrap(),
        None => value,
    }
}

fn assert_headers(response: &'static Value, got: &Got, what: &str) {
    const OF_HTTP: [&str; 5] = ["content-type", "content-length", "date", "connection", "transfer-encoding"];
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let missing = resolve(header)["required"] == true && got.header(name).is_none();
        assert!(!missing, "{what}: no {name}");
    }
    let documented: HashMap<String, &Value> = response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, header)| (name.to_lowercase(), &resolve(header)["schema"]))
        .collect();
    for (name, value) in got.headers.iter().filter(|(name, _)| !OF_HTTP.contains(&name.as_str())) {
        let schema = documented.get(name.as_str());
        let schema = schema.unwrap_or_else(|| panic!("{what}: the header {name} isn't documented"));
        let text = value.to_str().unwrap();
        let value = if schema["type"] == "integer" { json!(text.parse::<u64>().unwrap()) } else { json!(text) };
        assert_valid(&format!("header {name}"), schema, &value, what);
    }
}

/// `name` stands for the schema: one is compiled once.
pub fn assert_valid(name: &str, schema: &Value, value: &Value, what: &str) {
    let validator = VALIDATORS.lock().unwrap().get(name).cloned();
    let validator = validator.unwrap_or_else(|| {
        let mut root = strict(schema, Part::Whole);
        root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        root["components"] = STRICT.clone();
        let compiled = jsonschema::options().should_validate_formats(true).build(&root);
        let compiled = Arc::new(compiled.unwrap_or_else(|error| panic!("{name}: {error}")));
        VALIDATORS.lock().unwrap().insert(name.to_owned(), compiled.clone());
        compiled
    });
    let faults: Vec<String> =
        validator.iter_errors(value).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{what}\nisn't as documented:\n{}", faults.join("\n"));
}

/// The checks can fail.
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn got(status: u16, media_type: &str, body: Value) -> Got {
        let headers = [("content-type", media_type), ("x-request-id", "r")];
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        Got { status, headers, body: body.to_string().into() }
    }

    fn product() -> Value {
        crate::examples::answer_of(Operation::GetProduct)
    }

    fn passes(got: Got) -> bool {
        catch_unwind(|| assert_documented(&Method::GET, "/products/MUG-BLUE", &got)).is_ok()
    }

    #[test]
    fn what_is_not_documented_is_found() {
        assert!(passes(got(200, "application/json", product())));
        assert!(!passes(got(201, "application/json", product())), "a status");
        assert!(!passes(got(200, "text/json", product())), "a media type");
        let with = |name: &str, value: Value| crate::support::with(product(), name, value);
        assert!(!passes(got(200, "application/json", with("/colour", json!("blue")))), "a member");
        assert!(!passes(got(200, "application/json", with("/price/minor", json!(1450)))), "a member's member");
        assert!(!passes(got(200, "application/json", with("/title", Value::Null))), "a missing member");
        let problem = |code: &str| {
            let mut problem = DOCUMENT["components"]["examples"]["not_found"]["value"].clone();
            problem["code"] = json!(code);
            got(404, "application/problem+json", problem)
        };
        assert!(passes(problem("not_found")));
        assert!(!passes(problem("nothing_to_cancel")), "a code that this operation can't answer");
        assert!(!passes(got(200, "application/json", with("/price/amount", json!("14.500")))), "digits");
        let wrong_row = |name: &str, value: &str| {
            let mut problem = DOCUMENT["components"]["examples"]["not_found"]["value"].clone();
            problem[name] = json!(value);
            got(404, "application/problem+json", problem)
        };
        assert!(!passes(wrong_row("recovery", "new_key")) && !passes(wrong_row("type", "/problems/x")));
        let mut more = got(200, "application/json", product());
        more.headers.insert("set-cookie", "a=b".parse().unwrap());
        assert!(!passes(more), "a header");
    }
}
