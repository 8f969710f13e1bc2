//! What holds for the code as a whole: imports point one way, and what documents link to is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may import from the others. `main` and `app` put everything together.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("clock", &["domain"]),
    ("failpoints", &["domain", "clock"]),
    ("effects", &["domain"]),
    ("database", &["domain"]),
    ("store", &["domain", "clock", "database"]),
    ("payments", &["domain", "clock", "database", "failpoints"]),
    ("operations", &["domain", "store", "payments", "effects", "failpoints"]),
    ("workers", &["domain", "store", "operations"]),
    ("http", &["domain", "operations", "effects", "demo"]),
    ("verify", &["domain"]),
    ("config", &["agent", "domain", "clock", "database", "effects", "failpoints", "operations", "store", "verify"]),
    ("demo", &["domain", "store"]),
    ("agent", &["domain", "clock", "database"]),
    ("app", &["clock", "config", "demo", "http", "operations", "payments", "store", "workers"]),
];

/// Every file in a folder.
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
fn the_shops_database_is_known_to_the_store_and_the_sandbox_alone() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in sources(&src) {
        let inside = path.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
        let source = fs::read_to_string(&path).unwrap();
        let knows = source.contains("SqliteConnection") || source.contains("PgConnection");
        // The agent has a file of its own.
        let may = ["database/", "store/mod.rs", "store/writer.rs", "payments/sandbox.rs", "agent/"]
            .iter()
            .any(|at| inside.starts_with(at));
        assert!(!knows || may, "{inside}");
    }
}

const GUIDE: [&str; 9] = [
    "idempotency-key",
    "natural-idempotency",
    "dry-run",
    "propose-confirm",
    "unknown-outcomes",
    "refund",
    "batch",
    "retries",
    "agent-runtime",
];

#[test]
fn every_pattern_has_a_page_whose_tests_are_there() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide");
    let pages = fs::read_dir(&guide).unwrap().count() - 1; // and the index
    assert_eq!(pages, GUIDE.len(), "a page of the guide isn't looked at");
    for page in GUIDE {
        let text = fs::read_to_string(guide.join(page).with_extension("md")).unwrap();
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let wanted =
            ["The problem", "The sequence", "The rule", "Read the code", "Read the tests", "Without it", "Try it"];
        assert_eq!(headings, wanted, "{page}");
        assert!(text.contains("```mermaid\n"), "{page} has no diagram");
        let tests = text.split("## Read the tests").nth(1).unwrap().split("\n## ").next().unwrap();
        let mut named = 0;
        for item in tests.split("\n- ").skip(1) {
            let file = item.split("](").nth(1).unwrap().split(')').next().unwrap();
            let source = fs::read_to_string(guide.join(file)).unwrap();
            for name in item.split('`').skip(1).step_by(2) {
                assert!(source.contains(&format!("fn {name}(")), "{page}: {file} has no {name}");
                named += 1;
            }
        }
        assert!(named >= 2, "{page} names {named} tests");
    }
}

#[test]
fn every_file_that_the_documents_link_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = vec![root.join("README.md"), root.join("ARCHITECTURE.md"), root.join("examples/README.md")];
    documents.extend(sources(&root.join("docs")));
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        let links = text.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap());
        for link in links.filter(|link| !link.starts_with("http") && !link.is_empty()) {
            let target = document.parent().unwrap().join(link);
            assert!(target.exists(), "{} links to {link}", document.display());
        }
    }
}

/// The ids that a test's name begins with.
fn faults(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').take_while(|part| part.len() == 3 && part.starts_with('f') && part[1..].parse::<u8>().is_ok())
}

/// Every function of the file whose name begins with an id.
fn tests_of_faults(file: &Path) -> Vec<String> {
    let source = fs::read_to_string(file).unwrap();
    let names = source.lines().filter_map(|line| line.split("fn ").nth(1)?.split_once('(').map(|(name, _)| name));
    names.filter(|name| faults(name).next().is_some()).map(str::to_owned).collect()
}

#[test]
fn every_fault_from_the_field_has_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let proof = fs::read_to_string(root.join("docs/proof.md")).unwrap();
    let section = proof.split("\n## Faults from the field\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut ids = Vec::new();
    let mut named = BTreeSet::new();
    for row in section.lines().filter(|line| line.starts_with("| F")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (id, tests) = (cells[1].to_lowercase(), cells[3]);
        let before = named.len();
        for of_file in tests.split("; ") {
            let file = of_file.split("](").nth(1).unwrap().split(')').next().unwrap();
            let file = fs::canonicalize(root.join("docs").join(file)).unwrap();
            let source = fs::read_to_string(&file).unwrap();
            for name in of_file.split('`').skip(1).step_by(2) {
                assert!(source.contains(&format!("fn {name}(")), "{id}: {} has no {name}", file.display());
                assert!(faults(name).any(|fault| fault == id), "{id}: {name} stands for others");
                named.insert((id.clone(), file.clone(), name.to_owned()));
            }
        }
        assert!(named.len() > before, "{id} has no test");
        ids.push(id);
    }
    assert_eq!(ids, (1..=50).map(|n| format!("f{n:02}")).collect::<Vec<_>>());

    for file in [root.join("tests/api"), root.join("src")].iter().flat_map(|folder| sources(folder)) {
        let file = fs::canonicalize(file).unwrap();
        for name in tests_of_faults(&file) {
            for id in faults(&name) {
                let listed = named.contains(&(id.to_owned(), file.clone(), name.clone()));
                assert!(listed, "{id}: docs/proof.md doesn't list {name} of {}", file.display());
            }
        }
    }
}
