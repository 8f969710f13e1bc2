//! What holds for the code as a whole: imports point one way, and routes, effect catalogue and document name the same
//! operations.

use crate::support::*;
use countersign::domain::operation::Operation;
use countersign::effects::{KeyRule, Retention};
use countersign::http;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may import from the others. `main` and `app` put everything together.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("clock", &["domain"]),
    ("failpoints", &["domain"]),
    ("effects", &["domain"]),
    ("database", &["domain"]),
    ("store", &["domain", "clock", "database"]),
    ("payments", &["domain", "clock", "database", "failpoints"]),
    ("operations", &["domain", "store", "payments", "effects", "failpoints"]),
    ("workers", &["domain", "store", "operations"]),
    ("http", &["domain", "operations", "effects"]),
    ("config", &["domain", "clock", "database", "effects", "operations", "store"]),
    ("demo", &["domain", "store"]),
    ("app", &["clock", "config", "demo", "http", "operations", "payments", "store", "workers"]),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The first segment after each `crate::`, also inside `use crate::{a, b::c}`.
fn imports(source: &str) -> BTreeSet<String> {
    let word = |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = BTreeSet::new();
    for rest in source.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(group) => {
                let group = group.split("};").next().unwrap();
                let mut depth = 0;
                for part in group.split_inclusive([',', '{', '}']) {
                    if depth == 0 && !word(part).is_empty() {
                        found.insert(word(part));
                    }
                    depth += part.matches('{').count() as i32 - part.matches('}').count() as i32;
                }
            }
            None => drop(found.insert(word(rest))),
        }
    }
    found
}

#[test]
fn imports_point_one_way() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = BTreeSet::new();
    for path in sources(&src) {
        let inside = path.strip_prefix(&src).unwrap();
        let module = inside.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned();
        if module == "main" || module == "lib" {
            continue;
        }
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
            panic!("{module} has no place in the architecture")
        };
        for import in imports(&fs::read_to_string(&path).unwrap()) {
            let fine = import == module || allowed.contains(&import.as_str());
            assert!(fine, "{} imports {import}: that arrow points the wrong way", inside.display());
        }
        seen.insert(module);
    }
    assert_eq!(seen.len(), ARROWS.len(), "{seen:?}");
}

#[test]
fn the_import_reader_sees_every_form() {
    let source = "use crate::a::b;\nuse crate::{c::{x, y}, d, e::f};\nfn f() { crate::g::h() }";
    assert_eq!(imports(source), ["a", "c", "d", "e", "g"].map(str::to_owned).into());
}

#[test]
fn the_database_is_known_to_the_store_and_the_sandbox_alone() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&src) {
        let inside = path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        let source = fs::read_to_string(&path).unwrap();
        let knows = source.contains("SqliteConnection") || source.contains("PgConnection");
        let may = ["database/", "store/mod.rs", "store/writer.rs", "payments/sandbox.rs"]
            .iter()
            .any(|at| inside.starts_with(at));
        assert!(!knows || may, "{inside}");
    }
}

#[test]
fn every_file_that_the_documents_link_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for document in ["README.md", "ARCHITECTURE.md"] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        let links = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        let links: Vec<&str> = links.filter(|link| !link.starts_with("http")).collect();
        assert!(!links.is_empty(), "{document} links to nothing");
        for link in links {
            assert!(root.join(link).exists(), "{document} links to {link}");
        }
    }
}

fn document() -> Value {
    let document = http::document(Retention::DEFAULT);
    serde_json::to_value(&document).unwrap()
}

#[test]
fn the_committed_document_is_the_one_that_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/openapi.json");
    let committed: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(committed == document(), "run: cargo run -- openapi > openapi/openapi.json");
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_catalogue_and_document_name_the_same_operations() {
    let app = TestApp::start().await;
    let served: Value = reqwest::get(format!("{}/openapi.json", app.url)).await.unwrap().json().await.unwrap();
    assert_eq!(served, document());
    let mut documented = BTreeSet::new();
    for (path, item) in served["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let profile = Operation::parse(id).unwrap_or_else(|| panic!("{id} has no profile")).profile();
            assert_eq!((profile.method.to_lowercase().as_str(), profile.path), (method.as_str(), path.as_str()));
            let metadata = &operation["x-ai-metadata"];
            assert_eq!(metadata["effect"], profile.effect.as_str());
            assert_eq!(metadata["idempotency"]["key"], profile.key.as_str());
            assert_eq!(metadata["scopes"], serde_json::to_value(profile.scopes).unwrap());
            let keyed = operation["parameters"].as_array().unwrap().iter().find(|p| p["name"] == "Idempotency-Key");
            let demanded = match Operation::parse(id) {
                Some(Operation::GetOperationStatus) => KeyRule::Required, // the key is its parameter
                _ => profile.key,
            };
            assert_eq!(
                keyed.map(|p| p["required"] == true),
                match demanded {
                    KeyRule::Required => Some(true),
                    KeyRule::Natural => Some(false),
                    KeyRule::None => None,
                }
            );
            documented.insert(id.to_owned());
        }
    }
    assert_eq!(documented, Operation::ALL.iter().map(|operation| operation.as_str().to_owned()).collect());
}

#[test]
fn enums_are_documented_as_they_are_sent() {
    let schemas = &document()["components"]["schemas"];
    let words = |name: &str| schemas[name]["enum"].as_array().unwrap().clone();
    assert_eq!(words("Currency"), ["USD", "EUR", "JPY", "KWD"]);
    assert!(words("Recovery").contains(&"retry_same_key".into()));
    assert!(words("Status").contains(&"pending".into()));
    assert!(words("Code").contains(&"outcome_unknown".into()));
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document = document();
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_pages_need_no_other_host() {
    let app = TestApp::start().await;
    let page = reqwest::get(format!("{}/docs", app.url)).await.unwrap().text().await.unwrap();
    assert!(page.contains("/docs/scalar.js") && page.contains("/openapi.json"));
    assert!(!page.contains("https://"), "{page}");
    let script = reqwest::get(format!("{}/docs/scalar.js", app.url)).await.unwrap();
    assert_eq!(script.status(), 200);
    assert!(script.bytes().await.unwrap().len() > 100_000);
}
