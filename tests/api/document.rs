//! The OpenAPI document: it names what there is, describes all of it, and says of each operation what its profile does.

use crate::contract::{DOCUMENT, resolve};
use crate::support::*;
use countersign::domain::error::Code;
use countersign::domain::operation::Operation;
use countersign::effects::{Effect, KeyRule, METADATA_SCHEMA, Reach};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each operation of the document, with its method and path.
fn operations() -> Vec<(String, String, &'static Value)> {
    let mut found = Vec::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((method.to_uppercase(), path.clone(), operation));
        }
    }
    found
}

fn parameters(operation: &'static Value) -> Vec<&'static Value> {
    operation["parameters"].as_array().unwrap().iter().map(resolve).collect()
}

#[test]
fn the_committed_document_is_the_one_that_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/openapi.json");
    let committed: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(committed == *DOCUMENT, "run: cargo run -- openapi > openapi/openapi.json");
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_catalogue_and_document_name_the_same_operations() {
    let app = TestApp::start().await;
    let served: Value = reqwest::get(format!("{}/openapi.json", app.url)).await.unwrap().json().await.unwrap();
    assert_eq!(served, *DOCUMENT);
    let mut documented = BTreeSet::new();
    for (method, path, operation) in operations() {
        let id = operation["operationId"].as_str().unwrap();
        let named = Operation::parse(id).unwrap_or_else(|| panic!("{id} has no profile"));
        let profile = named.profile();
        assert_eq!((profile.method, profile.path), (method.as_str(), path.as_str()));
        let metadata = &operation["x-ai-metadata"];
        assert_eq!(metadata["effect"], profile.effect.as_str());
        assert_eq!(metadata["idempotency"]["key"], profile.key.as_str());
        assert_eq!(metadata["scopes"], json!(profile.scopes));
        let alternatives: Vec<Value> = match profile.scopes {
            [] => vec![json!({"bearer": []})],
            scopes => scopes.iter().map(|scope| json!({"bearer": [scope]})).collect(),
        };
        assert_eq!(operation["security"], json!(alternatives), "any one scope is enough");
        let badges: Vec<&str> =
            operation["x-badges"].as_array().unwrap().iter().filter_map(|b| b["name"].as_str()).collect();
        assert_eq!(badges.contains(&"moves money"), profile.reach == Reach::Provider, "{id}");
        assert_eq!(badges.contains(&"needs a key"), profile.key == KeyRule::Required, "{id}");
        assert_eq!(badges.contains(&"has a dry run"), profile.dry_run.is_some(), "{id}");
        assert_eq!(badges.contains(&"read only"), profile.effect == Effect::Pure, "{id}");
        let keyed = parameters(operation).into_iter().find(|parameter| parameter["name"] == "Idempotency-Key");
        let demanded = match named {
            Operation::GetOperationStatus => KeyRule::Required, // the key is its parameter
            _ => profile.key,
        };
        assert_eq!(
            keyed.map(|parameter| parameter["required"] == true),
            match demanded {
                KeyRule::Required => Some(true),
                KeyRule::Natural => Some(false),
                KeyRule::None => None,
            }
        );
        documented.insert(named);
    }
    assert_eq!(documented.len(), Operation::ALL.len());
}

#[test]
fn metadata_follows_its_own_schema() {
    let schema: Value = serde_json::from_str(METADATA_SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (_, path, operation) in operations() {
        let faults: Vec<String> = validator.iter_errors(&operation["x-ai-metadata"]).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{path}: {faults:?}");
    }
    assert!(!validator.is_valid(&json!({"effect": "pure"})));
}

#[test]
fn every_status_lists_its_codes_with_an_example_of_each() {
    for (_, path, operation) in operations() {
        let named = Operation::parse(operation["operationId"].as_str().unwrap()).unwrap();
        let mut listed = BTreeMap::new();
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolve(response);
            assert!(!response["description"].as_str().unwrap().is_empty());
            assert!(response["headers"]["X-Request-Id"].is_object(), "{path} {status}");
            let Some((media_type, content)) = response["content"].as_object().and_then(|c| c.iter().next()) else {
                assert_eq!(status, "204");
                continue;
            };
            let examples = content["examples"].as_object().unwrap_or_else(|| panic!("{path} {status}: no example"));
            assert!(!examples.is_empty(), "{path} {status}");
            if media_type == "application/problem+json" {
                for (code, example) in examples {
                    let (code, example) = (Code::parse(code).unwrap(), resolve(example));
                    assert_eq!(example["value"]["status"].to_string(), *status);
                    listed.insert(code, status.clone());
                }
            }
        }
        assert_eq!(listed.into_keys().collect::<Vec<_>>(), named.problems(), "{path}");
    }
}

#[test]
fn every_body_has_named_examples() {
    for (_, path, operation) in operations() {
        let body = &operation["requestBody"]["content"]["application/json"];
        if !body.is_null() {
            let examples = body["examples"].as_object().unwrap();
            assert!(examples.values().all(|example| !example["summary"].as_str().unwrap().is_empty()));
            assert!(!examples.is_empty(), "{path}");
        }
    }
    let proposals = &DOCUMENT["paths"]["/checkout"]["post"]["requestBody"]["content"]["application/json"]["examples"];
    for name in ["two_mugs", "exactly_what_was_shown", "in_yen"] {
        assert!(proposals[name].is_object(), "{name}");
    }
}

#[test]
fn every_operation_has_a_title_and_says_when_to_use_it() {
    for (_, path, operation) in operations() {
        assert!((5..30).contains(&operation["summary"].as_str().unwrap().len()), "{path}: a title, not a sentence");
        let about = operation["description"].as_str().unwrap_or_default().replace('\n', " ");
        assert!(about.contains("Use it") || about.contains("For merchants"), "{path}: {about}");
        assert!(about.split_whitespace().count() >= 25, "{path}: {about}");
        for parameter in parameters(operation) {
            assert!(parameter["description"].is_string(), "{path} {}", parameter["name"]);
            let schema = resolve(&parameter["schema"]);
            let has_example = !parameter["example"].is_null()
                || !schema["example"].is_null()
                || !schema["examples"].is_null()
                || !schema["enum"].is_null();
            assert!(has_example, "{path} {}: no example", parameter["name"]);
        }
    }
}

#[test]
fn every_member_is_described_and_has_an_example() {
    let mut bare = Vec::new();
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
        if schema["description"].is_null() {
            bare.push(format!("{name} has no description"));
        }
        look(name, schema, &mut bare);
    }
    assert!(bare.is_empty(), "{}", bare.join("\n"));
}

fn look(at: &str, schema: &'static Value, bare: &mut Vec<String>) {
    for (member, value) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}.{member}");
        if value["description"].is_null() {
            bare.push(format!("{at} has no description"));
        }
        // What refers to another schema has that one's examples.
        let refers = value.to_string().contains("\"$ref\"");
        let shown = ["example", "examples", "enum", "const"].iter().any(|word| !value[*word].is_null());
        if !refers && !shown {
            bare.push(format!("{at} has no example"));
        }
        look(&at, value, bare);
    }
    for branch in ["allOf", "oneOf", "anyOf"].iter().filter_map(|word| schema[*word].as_array()).flatten() {
        look(at, branch, bare);
    }
}

#[test]
fn propose_leads_to_confirm_and_cancel_and_confirm_to_the_order_and_its_refund() {
    let links = |path: &str, status: &str| {
        let links = DOCUMENT["paths"][path]["post"]["responses"][status]["links"].as_object().unwrap();
        links.keys().cloned().collect::<BTreeSet<_>>()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let after_proposal = ["confirm_checkout", "cancel_confirmation", "get_confirmation"];
    assert_eq!(links("/checkout", "201"), set(&after_proposal));
    assert_eq!(links("/confirm-checkout/{confirmation_id}", "200"), set(&["get_order", "issue_refund"]));
    let after_offer = ["confirm_refund", "cancel_confirmation", "get_confirmation"];
    assert_eq!(links("/refunds", "202"), set(&after_offer));
    for (_, _, operation) in operations() {
        for response in operation["responses"].as_object().unwrap().values() {
            for link in response["links"].as_object().into_iter().flatten().map(|(_, link)| link) {
                let to = Operation::parse(link["operationId"].as_str().unwrap()).unwrap();
                for parameter in link["parameters"].as_object().into_iter().flatten().map(|(name, _)| name) {
                    assert!(to.profile().path.contains(&format!("{{{parameter}}}")), "{to:?} has no {parameter}");
                }
            }
        }
    }
}

#[test]
fn enums_are_documented_as_they_are_sent() {
    let schemas = &DOCUMENT["components"]["schemas"];
    let words = |name: &str| schemas[name]["enum"].as_array().unwrap().clone();
    assert_eq!(words("Currency"), ["USD", "EUR", "JPY", "KWD"]);
    assert!(words("Recovery").contains(&"retry_same_key".into()));
    assert!(words("Status").contains(&"pending".into()));
    assert!(words("Code").contains(&"outcome_unknown".into()));
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let text = DOCUMENT.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(DOCUMENT.pointer(pointer).is_some(), "{pointer}");
    }
}
