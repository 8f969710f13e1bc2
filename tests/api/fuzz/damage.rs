//! JSON, and what can happen to it on its way.

use super::*;
use serde_json::{Value, json};
use std::collections::HashSet;

/// What takes the place of a value: of another type, out of range, hard to read, or no JSON at all.
const HOSTILE: &[&str] = &[
    "null",
    "true",
    "0",
    "-0",
    "-1",
    "1",
    "2.0",
    "0.1",
    "1e1",
    "1e400",
    "1E-400",
    "9007199254740993",
    "9223372036854775808",
    "\"1\"",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\0\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\u202e\"",
    "\"\\x\"",
    "\"\t\"",
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "{\"a\":1}",
    "+1",
    "01",
    "NaN",
    "Infinity",
    "'a'",
    "/**/1",
    "",
];

/// Names that somebody may rely on, and nobody reads.
pub const UNREAD: &[&str] = &["\"dry_run\"", "\"actor_id\"", "\"price_minor\"", "\"\""];

/// JSON, or what was JSON once.
#[derive(Clone)]
pub enum Json {
    Leaf(String),
    /// Items have no name.
    Branch(Vec<(Option<String>, Json)>),
}

#[derive(Clone, Debug)]
pub enum Edit {
    Drop,
    /// A member of this name, or an item, more.
    Add(String, String),
    Repeat(usize),
    Rename(String),
    Replace(String),
}

#[derive(Clone, Debug)]
pub enum Damage {
    Cut(Index),
    /// These bytes in place of so many.
    Splice(Index, usize, Vec<u8>),
    Instead(Vec<u8>),
}

impl Json {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| (Some(json!(name).to_string()), Self::of(value)));
                Self::Branch(members.collect())
            }
            Value::Array(items) if !items.is_empty() => {
                Self::Branch(items.iter().map(|item| (None, Self::of(item))).collect())
            }
            leaf => Self::Leaf(leaf.to_string()),
        }
    }

    /// How many members and items there are, at any depth.
    pub fn places(&self) -> usize {
        match self {
            Self::Leaf(_) => 0,
            Self::Branch(inner) => inner.iter().map(|(_, value)| 1 + value.places()).sum(),
        }
    }

    /// Whether some object has a name twice, as it is written.
    pub fn repeats_a_name(&self) -> bool {
        let Self::Branch(inner) = self else { return false };
        let mut names = HashSet::new();
        inner
            .iter()
            .any(|(name, value)| name.as_ref().is_some_and(|name| !names.insert(name)) || value.repeats_a_name())
    }

    pub fn edit(&mut self, mut place: usize, edit: &Edit) {
        let Self::Branch(inner) = self else { return };
        for i in 0..inner.len() {
            let within = inner[i].1.places();
            match place {
                0 => return edit.make(inner, i),
                _ if place <= within => return inner[i].1.edit(place - 1, edit),
                _ => place -= 1 + within,
            }
        }
    }
}

impl Edit {
    fn make(&self, inner: &mut Vec<(Option<String>, Json)>, at: usize) {
        match self {
            Self::Drop => drop(inner.remove(at)),
            Self::Add(name, value) => {
                let name = inner[at].0.as_ref().map(|_| name.clone());
                inner.insert(at, (name, Json::Leaf(value.clone())));
            }
            Self::Repeat(times) => drop(inner.splice(at..at, vec![inner[at].clone(); *times])),
            Self::Rename(name) => inner[at].0 = Some(name.clone()),
            Self::Replace(value) => inner[at].1 = Json::Leaf(value.clone()),
        }
    }
}

impl Damage {
    pub fn to(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Splice(at, many, new) => {
                let at = at.index(bytes.len() + 1);
                let end = bytes.len().min(at + many);
                bytes.splice(at..end, new.iter().copied());
            }
            Self::Instead(all) => bytes.clone_from(all),
        }
        bytes
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = match self {
            Self::Leaf(text) => return f.write_str(text),
            Self::Branch(inner) => inner,
        };
        let named = |(name, value): &(Option<String>, Json)| match name {
            Some(name) => format!("{name}:{value}"),
            None => value.to_string(),
        };
        let inside = inner.iter().map(named).collect::<Vec<_>>().join(",");
        let list = inner.first().is_some_and(|(name, _)| name.is_none());
        if list { write!(f, "[{inside}]") } else { write!(f, "{{{inside}}}") }
    }
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(HOSTILE).prop_map(str::to_owned),
        2 => prop::collection::vec(letter(), 0..40).prop_map(|text| json!(text.into_iter().collect::<String>()).to_string()),
        1 => (1_usize..3_000).prop_map(|length| format!("\"{}\"", "é".repeat(length))),
        1 => (1_usize..600).prop_map(|length| "9".repeat(length)),
        1 => (1_usize..3_000).prop_map(|depth| "[".repeat(depth) + &"]".repeat(depth)),
        1 => prop::collection::vec(letter(), 0..20).prop_map(|text| text.into_iter().collect()),
    ]
}

pub fn any_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        2 => Just(Edit::Drop),
        2 => (prop::sample::select(UNREAD), any_value()).prop_map(|(name, value)| Edit::Add(name.to_owned(), value)),
        2 => prop_oneof![Just(1), Just(10), Just(20), Just(100)].prop_map(Edit::Repeat),
        1 => any_value().prop_map(Edit::Rename),
        6 => any_value().prop_map(Edit::Replace),
    ]
}

pub fn any_damage() -> impl Strategy<Value = Damage> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), 0_usize..4, bytes()).prop_map(|(at, many, new)| Damage::Splice(at, many, new)),
        bytes().prop_map(Damage::Instead),
    ]
}
