//! The OpenAPI document that the server publishes, as far as questions are about it: operations, their effect profiles
//! (`x-ai-metadata`), and what it says of headers.

use super::Stop;
use super::client::Client;
use reqwest::Method;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub struct Document {
    pub operations: Vec<Operation>,
}

pub struct Operation {
    pub id: String,
    pub method: Method,
    pub path: String,
    /// Or why it isn't one.
    pub metadata: Result<Metadata, String>,
    pub key_header: KeyHeader,
    /// The statuses that are documented with a `Retry-After`.
    pub waits: Vec<String>,
}

/// What the parameters say of `Idempotency-Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeader {
    Required,
    Optional,
    Absent,
}

/// `x-ai-metadata`, as its JSON Schema has it: these members, all of them, and no others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    pub effect: Effect,
    pub side_effects: Vec<String>,
    pub idempotency: Idempotency,
    #[serde(deserialize_with = "nullable")]
    pub dry_run: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub confirm: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub compensate: Option<String>,
    pub retry: Retry,
    pub scopes: Vec<String>,
    #[expect(dead_code, reason = "it has to be there; what it says is the server's affair")]
    untrusted_inputs: Vec<String>,
    pub mcp: Mcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Pure,
    Idempotent,
    Reversible,
    Compensable,
    Irreversible,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyRule {
    Required,
    Natural,
    None,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Idempotency {
    pub key: KeyRule,
    #[serde(deserialize_with = "nullable")]
    pub natural_key: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub retention_seconds: Option<u64>,
    #[expect(dead_code, reason = "it has to be there; same_refund_written_differently is about them")]
    normalizations: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    pub on: Vec<String>,
    pub backoff: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    pub annotations: Annotations,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Annotations {
    pub read_only_hint: bool,
    #[expect(dead_code, reason = "it has to be there; how bold it is is the server's affair")]
    destructive_hint: bool,
    pub idempotent_hint: bool,
    #[expect(dead_code, reason = "it has to be there; how far it reaches is the server's affair")]
    open_world_hint: bool,
}

/// Null or a value, but there: serde lets an `Option` be left out otherwise.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

impl Document {
    pub async fn read(client: &Client) -> Result<Self, Stop> {
        let answer = client.page("/openapi.json").await?;
        let document = Self::of(&answer.json);
        document
            .filter(|document| !document.operations.is_empty())
            .ok_or_else(|| Stop::Failed(format!("{}, which isn't an OpenAPI document with operations", answer.says())))
    }

    fn of(document: &Value) -> Option<Self> {
        const METHODS: &[Method] = &[Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::PATCH];
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object()? {
            for method in METHODS {
                if let Some(operation) = item.get(method.as_str().to_lowercase()) {
                    let parameters = [operation, item].map(|owner| &owner["parameters"]);
                    operations.push(Operation::of(document, method, path, operation, parameters));
                }
            }
        }
        Some(Self { operations })
    }

    pub fn find(&self, id: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.id == id)
    }

    pub fn with_effect(&self, effect: Effect) -> impl Iterator<Item = (&Operation, &Metadata)> {
        self.profiles().filter(move |(_, metadata)| metadata.effect == effect)
    }

    /// Those whose effect profile can be read.
    pub fn profiles(&self) -> impl Iterator<Item = (&Operation, &Metadata)> {
        self.operations.iter().filter_map(|operation| operation.metadata.as_ref().ok().map(|found| (operation, found)))
    }
}

impl Operation {
    fn of(document: &Value, method: &Method, path: &str, operation: &Value, parameters: [&Value; 2]) -> Self {
        let metadata = operation.get("x-ai-metadata").ok_or_else(|| "there is none".to_owned());
        let responses = operation["responses"].as_object().into_iter().flatten();
        let waits = responses.filter(|(_, response)| {
            let headers = resolved(document, response)["headers"].as_object();
            headers.is_some_and(|headers| headers.keys().any(|name| name.eq_ignore_ascii_case("Retry-After")))
        });
        Self {
            id: operation["operationId"].as_str().unwrap_or_default().to_owned(),
            method: method.clone(),
            path: path.to_owned(),
            metadata: metadata.and_then(|found| Metadata::deserialize(found).map_err(|error| error.to_string())),
            key_header: KeyHeader::of(document, parameters),
            waits: waits.map(|(status, _)| status.clone()).collect(),
        }
    }
}

impl KeyHeader {
    /// The operation's own parameters go before its path's.
    fn of(document: &Value, parameters: [&Value; 2]) -> Self {
        let parameters = parameters.into_iter().filter_map(Value::as_array).flatten();
        let is_key = |parameter: &&Value| {
            let name = parameter["name"].as_str().unwrap_or_default();
            parameter["in"] == "header" && name.eq_ignore_ascii_case("Idempotency-Key")
        };
        match parameters.map(|parameter| resolved(document, parameter)).find(is_key) {
            Some(parameter) if parameter["required"] == true => KeyHeader::Required,
            Some(_) => KeyHeader::Optional,
            None => KeyHeader::Absent,
        }
    }
}

/// What a `$ref` within the document stands for.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|reference| document.pointer(reference.trim_start_matches('#')));
    target.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const PUBLISHED: &str = include_str!("../../openapi/openapi.json");

    /// The value with one member less, for each member at any depth.
    fn each_without_a_member(value: &Value) -> Vec<Value> {
        let Some(members) = value.as_object() else { return Vec::new() };
        let mut made = Vec::new();
        for (name, member) in members {
            let mut without = value.clone();
            without.as_object_mut().unwrap().remove(name);
            made.push(without);
            for inner in each_without_a_member(member) {
                let mut changed = value.clone();
                changed[name] = inner;
                made.push(changed);
            }
        }
        made
    }

    #[test]
    fn an_effect_profile_has_every_member_of_its_schema_and_no_other() {
        let published: Value = serde_json::from_str(PUBLISHED).unwrap();
        let document = Document::of(&published).unwrap();
        assert!(document.operations.iter().all(|operation| operation.metadata.is_ok()));
        let profile = &published["paths"]["/confirm-checkout/{confirmation_id}"]["post"]["x-ai-metadata"];
        let lesser = each_without_a_member(profile);
        assert_eq!(lesser.len(), 21);
        for profile in lesser {
            assert!(Metadata::deserialize(&profile).is_err(), "{profile:#}");
        }
        let mut more = profile.clone();
        more["idempotency"]["scope"] = json!("actor");
        assert!(Metadata::deserialize(&more).is_err());
    }

    #[test]
    fn a_key_header_may_stand_on_its_path() {
        let key = json!([{"$ref": "#/components/parameters/Key"}]);
        let of = |required: bool, operation: Value| {
            let document = json!({
                "components": {"parameters": {"Key": {"name": "idempotency-key", "in": "header", "required": required}}},
                "paths": {"/x": {"parameters": key, "post": operation}},
            });
            Document::of(&document).unwrap().operations[0].key_header
        };
        assert_eq!(of(true, json!({})), KeyHeader::Required);
        assert_eq!(of(false, json!({"parameters": []})), KeyHeader::Optional);
    }
}
