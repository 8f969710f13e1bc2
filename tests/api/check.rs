//! `countersign check`: silent about a story that adds up, loud about one that doesn't.

use crate::support::*;
use countersign::clock::Clock;
use countersign::config::Config;
use countersign::database::DatabaseUrl;
use countersign::operations::check::INVARIANTS;
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Command;

/// The command's exit code, and all that it says.
fn check(database: &DatabaseUrl, ledger: &DatabaseUrl) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["check", "--database-url", &database.address(), "--sandbox-url", &ledger.address()])
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// The command goes by the system's clock, so its story has to.
fn now(config: &mut Config) {
    config.clock = Clock::System;
}

/// Orders (one of them free), declines, something held, something cancelled, products written, refunds of one step and of
/// two, made, declined and offered, outcomes unknown: an answer of every kind that is kept.
async fn story(app: TestApp) -> TestApp {
    let (shopper, support, merchant) = (app.shopper(), app.caller(SUPPORT), app.caller(MERCHANT));
    let order = shopper.ordered("1", &with(mugs(), "/discount_codes", json!(["WELCOME10"]))).await;
    let address_of = format!("/orders/{order}/shipping-address");
    let moved = with(address("US"), "/line1", json!("2 Market Street"));
    let set = shopper.request(Method::PUT, &address_of).header("Idempotency-Key", "address").json(&moved);
    assert_eq!(send(set).await.status, 200);
    let free = with(mugs(), "/discount_codes", json!(["GOODWILL"]));
    shopper.ordered("2", &with(free, "/shipping_option", json!("pickup"))).await;
    let declined = shopper.proposed("3", &cart("MUG-BLUE", 1, "pm_sandbox_declined")).await;
    assert_eq!(shopper.confirm(&declined).await.status, 402);
    shopper.proposed("4", &with(mugs(), "/discount_codes", json!(["FIRST3"]))).await;
    let cancelled = shopper.proposed("5", &mugs()).await;
    let cancel = shopper.request(Method::DELETE, &format!("/confirmations/{cancelled}"));
    assert_eq!(send(cancel.header("Idempotency-Key", "cancel")).await.status, 204);
    let new = json!({"title": "Green mug", "price": {"amount": "9.00", "currency": "USD"}, "stock": 3});
    let updates = [("MUG-BLUE", json!({"stock": 50})), ("MUG-GREEN", new), ("MUG-NONE", json!({"stock": 1}))];
    let updates = updates.map(|(product, set)| json!({"product_id": product, "set": set}));
    assert_eq!(merchant.update("6", &json!({"mode": "per_item", "updates": updates})).await.status, 200);
    let kept = shopper.proposed("7", &mugs()).await;
    assert_eq!(shopper.confirm_keyed(&kept, "confirm").await.status, 200);
    shopper.propose("refused", &cart("LAST-ONE", 2, "pm_sandbox_ok")).await.assert_problem(409, "insufficient_stock");

    let refunded = shopper.ordered("9", &cart("MUG-TRAVEL", 20, "pm_sandbox_ok")).await;
    assert_eq!(support.refund("10", &refund(&refunded, "20.00", "USD")).await.status, 201);
    assert_eq!(support.refund("11", &refund(&refunded, "200.00", "USD")).await.status, 202);
    let offered = support.refund("14", &refund(&refunded, "110.00", "USD")).await;
    assert_eq!(support.confirm_refund(offered.json()["confirmation_id"].as_str().unwrap()).await.status, 200);
    let declining = shopper.ordered("12", &cart("MUG-TRAVEL", 5, "pm_sandbox_refund_declined")).await;
    assert_eq!(support.refund("13", &refund(&declining, "1.00", "USD")).await.status, 402);
    let offered = support.refund("15", &refund(&declining, "110.00", "USD")).await;
    assert_eq!(support.confirm_refund(offered.json()["confirmation_id"].as_str().unwrap()).await.status, 402);
    let silent = shopper.ordered("16", &cart("MUG-TRAVEL", 1, "pm_sandbox_refund_timeout_before")).await;
    assert_eq!(support.refund("17", &refund(&silent, "1.00", "USD")).await.status, 503);
    let unknown = shopper.proposed("8", &cart("MUG-TRAVEL", 1, "pm_sandbox_timeout_before_charge")).await;
    assert_eq!(shopper.confirm(&unknown).await.status, 503);
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_that_adds_up_is_exit_code_0_also_while_the_server_runs() {
    let app = story(TestApp::with(now).await).await;
    let before = app.dump();
    let (code, said) = check(&app.database(), &app.ledger());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("everything adds up: 6 orders, 12 payments, 10 bookings"), "{said}");
    assert!(said.contains(&format!("; {} invariants hold", INVARIANTS.len())), "{said}");
    assert_eq!(app.dump(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_does_not_add_up_is_found_by_the_name_of_what_it_breaks() {
    let app = story(TestApp::on_sqlite(now).await).await; // whose file is copied for each case
    let mut missed = String::new();
    for Case { breaks, says, book, tamper } in cases() {
        let dir = tempfile::TempDir::new().unwrap();
        let copies = ["ours.db", "theirs.db"].map(|name| DatabaseUrl::Sqlite(dir.path().join(name)));
        for (from, to) in [app.database(), app.ledger()].iter().zip(&copies) {
            let to = to.address();
            batch(from, &format!("VACUUM INTO '{}'", to.trim_start_matches("sqlite://")));
        }
        batch(&copies[book], &unguarded(tamper));
        let (code, said) = check(&copies[OURS], &copies[THEIRS]);
        let named = format!("{breaks}: ");
        if code != Some(1) || !said.lines().any(|line| line.starts_with(&named) && line.contains(says)) {
            missed += &format!("{breaks} ({says}), exit code {code:?}: {tamper}\n{said}\n");
        }
    }
    assert!(missed.is_empty(), "{missed}");
}

const OURS: usize = 0;
const THEIRS: usize = 1;

/// A way to spoil the books.
struct Case {
    breaks: &'static str,
    says: &'static str,
    book: usize,
    tamper: &'static str,
}

fn cases() -> impl Iterator<Item = Case> {
    include_str!("check_cases.sql").split("\n\n-- ").skip(1).map(|case| {
        let (about, tamper) = case.split_once('\n').unwrap();
        let (about, book) = about.strip_prefix("theirs: ").map_or((about, OURS), |about| (about, THEIRS));
        let (breaks, says) = about.split_once(": ").unwrap();
        Case { breaks, says, book, tamper: tamper.trim_end() }
    })
}

/// The statements, run where no constraint stands in their way. `FREE table` takes a table's keys off.
fn unguarded(tamper: &str) -> String {
    let freed = tamper.split_terminator(';').map(|statement| match statement.trim().strip_prefix("FREE ") {
        Some(table) => format!(
            "CREATE TABLE freed AS SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE freed RENAME TO {table};"
        ),
        None => format!("{statement};"),
    });
    format!("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; {}", freed.collect::<String>())
}

#[test]
fn every_invariant_is_broken_by_a_case() {
    let names: BTreeSet<&str> = INVARIANTS.iter().map(|invariant| invariant.name).collect();
    assert_eq!(names.len(), INVARIANTS.len(), "a name is there twice");
    assert_eq!(cases().map(|case| case.breaks).collect::<BTreeSet<_>>(), names);
    for invariant in INVARIANTS {
        let word = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(invariant.name.chars().all(word) && invariant.holds.ends_with('.'), "{}", invariant.name);
    }
}

#[test]
fn a_database_that_is_not_there_is_exit_code_2_and_is_not_made() {
    let dir = tempfile::TempDir::new().unwrap();
    let (code, said) =
        check(&DatabaseUrl::Sqlite(dir.path().join("a.db")), &DatabaseUrl::Sqlite(dir.path().join("b.db")));
    assert_eq!(code, Some(2));
    assert!(said.contains("there is no such database"), "{said}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
