//! What one key stands for: one authorised effect. The identity is made of what was decided (who, which run, which step,
//! which tool, with which parameters), never of what a model wrote down as a key, nor of the time.

use crate::domain::digest::sha256_hex;
use serde_json::Value;
use std::collections::BTreeMap;

/// One run of an agent: a resumed run is the same one, a new run is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// On whose behalf.
    pub tenant: String,
    pub id: String,
}

/// One call that somebody authorised: what to call, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its place in the plan, the same in every resumption.
    pub id: String,
    /// The operation's id.
    pub tool: String,
    pub parameters: Parameters,
}

/// The digest of a call's parameters: equal exactly where the parameters are, whatever the order of members. Numbers count
/// as they are written: through doubles, 2^53 and 2^53 + 1 would be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters(String);

impl Parameters {
    pub fn of(value: &Value) -> Self {
        Self(format!("sha256:{}", sha256_hex(sorted(value).to_string().as_bytes())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(members) => {
            let members: BTreeMap<&String, Value> = members.iter().map(|(name, value)| (name, sorted(value))).collect();
            members.into_iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_members_is_no_parameter_and_every_digit_is() {
        let one = json!({"a": {"x": 1, "y": [1, 2]}, "b": "c"});
        let two: Value = serde_json::from_str(r#"{"b": "c", "a": {"y": [1, 2], "x": 1}}"#).unwrap();
        assert_eq!(Parameters::of(&one), Parameters::of(&two));
        assert_ne!(Parameters::of(&json!([1, 2])), Parameters::of(&json!([2, 1])));
        let number = |text: &str| Parameters::of(&serde_json::from_str(text).unwrap());
        assert_ne!(number("9007199254740992"), number("9007199254740993"));
    }
}
