//! `llms.txt` (llmstxt.org): the API in a page of Markdown, for a model. From the same catalogue and table as the
//! document.

use crate::domain::error::{Code, Recovery};
use crate::domain::operation::Operation;
use crate::effects::{EffectProfile, KeyRule};
use serde_json::Value;
use std::fmt::Write;

pub fn text(document: &Value) -> String {
    let mut text = String::from(include_str!("llms.md"));
    for tag in document["tags"].as_array().into_iter().flatten() {
        let (name, about) = (tag["name"].as_str().unwrap_or_default(), tag["description"].as_str().unwrap_or_default());
        let _ = write!(text, "\n## {name}\n\n{about}\n\n");
        for operation in Operation::ALL {
            let profile = operation.profile();
            let documented = &document["paths"][profile.path][profile.method.to_lowercase()];
            if documented["tags"][0] == name {
                let about = documented["description"].as_str().unwrap_or_default();
                text += &line(*operation, profile, first_sentence(about));
            }
        }
    }
    text += "\n## Problems\n\nBy `recovery`: whether to send it again.\n\n";
    for recovery in Recovery::ALL {
        let codes = Code::ALL.iter().filter(|code| code.row().recovery == *recovery);
        let codes: Vec<String> = codes.map(|code| format!("`{}` ({})", code.as_str(), code.row().status)).collect();
        let _ = write!(text, "- `{}`. {}\n  {}\n", recovery.as_str(), recovery.advice(), codes.join(", "));
    }
    text
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

fn line(operation: Operation, profile: &EffectProfile, about: &str) -> String {
    let mut facts = vec![profile.effect.as_str().to_owned()];
    match profile.key {
        KeyRule::Required => facts.push("`Idempotency-Key` required".to_owned()),
        KeyRule::Natural => {
            facts.push(format!("no key needed: `{}` is the key", profile.natural_key.unwrap_or_default()))
        }
        KeyRule::None => {}
    }
    for (word, other) in [("dry run", profile.dry_run), ("second step", profile.confirm), ("undo", profile.compensate)]
    {
        facts.extend(other.map(|other| format!("{word}: `{}`", other.as_str())));
    }
    if !profile.scopes.is_empty() {
        let scopes: Vec<&str> = profile.scopes.iter().map(|scope| scope.as_str()).collect();
        facts.push(format!("scope {}", scopes.join(" or ")));
    }
    let (name, method, path) = (operation.as_str(), profile.method, profile.path);
    format!("- `{name}`: `{method} {path}`. {about} ({})\n", facts.join("; "))
}
