//! Requests and the answers that a server gave to them: `openapi/examples.json`. They are one story, in order; the tests
//! tell it to a server and compare. In a request, `{operation.name/pointer}` stands for a member of an earlier answer.

use crate::domain::operation::Operation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    pub operation: Operation,
    /// Among the operation's own.
    pub name: String,
    pub summary: String,
    /// A demo actor's credential.
    pub credential: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub path: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// Header lines besides the credential.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    pub status: u16,
    /// None where the answer has no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

/// Answers, by `operation.name`.
pub type Answers = BTreeMap<String, Value>;

/// As they were recorded: requests still name earlier answers.
pub fn recorded() -> serde_json::Result<Vec<Exchange>> {
    serde_json::from_str(include_str!("../../../openapi/examples.json"))
}

/// With what the requests name filled in.
pub fn all() -> serde_json::Result<Vec<Exchange>> {
    let mut answers = Answers::new();
    let filled = recorded()?.into_iter().map(|exchange| {
        let exchange = exchange.filled(&answers);
        answers.insert(exchange.id(), exchange.answer.clone().unwrap_or_default());
        exchange
    });
    Ok(filled.collect())
}

impl Exchange {
    pub fn id(&self) -> String {
        format!("{}.{}", self.operation.as_str(), self.name)
    }

    pub fn filled(mut self, answers: &Answers) -> Self {
        for text in self.path.values_mut() {
            *text = fill_text(text, answers).as_str().unwrap_or_default().to_owned();
        }
        self.body = self.body.map(|body| fill(body, answers));
        self
    }
}

fn fill(value: Value, answers: &Answers) -> Value {
    match value {
        Value::String(text) => fill_text(&text, answers),
        Value::Array(items) => items.into_iter().map(|item| fill(item, answers)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (name, fill(value, answers))).collect::<Map<_, _>>().into()
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

/// What isn't a name of an answer stays as it is.
fn fill_text(text: &str, answers: &Answers) -> Value {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let named = inner.and_then(|inner| {
        let at = inner.find('/')?;
        answers.get(&inner[..at])?.pointer(&inner[at..])
    });
    named.cloned().unwrap_or_else(|| text.into())
}
