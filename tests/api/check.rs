//! `countersign check`: silent about a story that adds up, loud about one that doesn't.

use crate::support::*;
use countersign::database::DatabaseUrl;
use serde_json::json;
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

/// Orders (one of them free), declines, something held, something cancelled, stock set by hand, refunds made and offered, an
/// outcome unknown.
async fn story(app: TestApp) -> TestApp {
    let shopper = app.shopper();
    shopper.ordered("1", &with(mugs(), "/discount_codes", json!(["WELCOME10"]))).await;
    let free = with(mugs(), "/discount_codes", json!(["GOODWILL"]));
    shopper.ordered("2", &with(free, "/shipping_option", json!("pickup"))).await;
    let declined = shopper.proposed("3", &cart("MUG-BLUE", 1, "pm_sandbox_declined")).await;
    assert_eq!(shopper.confirm(&declined).await.status, 402);
    shopper.proposed("4", &with(mugs(), "/discount_codes", json!(["FIRST3"]))).await;
    let cancelled = shopper.proposed("5", &mugs()).await;
    shopper.delete(&format!("/confirmations/{cancelled}")).await;
    let set = json!({"mode": "atomic", "updates": [{"product_id": "MUG-BLUE", "set": {"stock": 50}}]});
    assert_eq!(app.caller(MERCHANT).update("6", &set).await.status, 200);
    shopper.ordered("7", &mugs()).await;
    let refunded = shopper.ordered("9", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    assert_eq!(app.caller(SUPPORT).refund("10", &refund(&refunded, "20.00", "USD")).await.status, 201);
    assert_eq!(app.caller(SUPPORT).refund("11", &refund(&refunded, "200.00", "USD")).await.status, 202);
    let declining = shopper.ordered("12", &cart("MUG-TRAVEL", 1, "pm_sandbox_refund_declined")).await;
    assert_eq!(app.caller(SUPPORT).refund("13", &refund(&declining, "1.00", "USD")).await.status, 402);
    let unknown = shopper.proposed("8", &cart("MUG-TRAVEL", 1, "pm_sandbox_timeout_before_charge")).await;
    assert_eq!(shopper.confirm(&unknown).await.status, 503);
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_that_adds_up_is_exit_code_0_also_while_the_server_runs() {
    let app = story(TestApp::start().await).await;
    let before = app.dump();
    let (code, said) = check(&app.database(), &app.ledger());
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("everything adds up: 5 orders, 8 payments, 7 bookings"), "{said}");
    assert_eq!(app.dump(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_does_not_add_up_is_found() {
    let ours = [
        ("UPDATE products SET stock = stock + 1 WHERE product_id = 'MUG-BLUE'", "MUG-BLUE: 54 units were set"),
        ("UPDATE products SET held = held + 1 WHERE product_id = 'MUG-BLUE'", "MUG-BLUE: 3 units are counted as held"),
        ("UPDATE discounts SET used = used + 1 WHERE code = 'WELCOME10'", "WELCOME10: 2 uses are counted"),
        ("UPDATE discounts SET held = 0 WHERE code = 'FIRST3'", "FIRST3: 0 uses are counted as held"),
        (
            "UPDATE confirmations SET status = 'cancelled' WHERE status = 'pending'",
            "should hold 0 of MUG-BLUE, but holds 2",
        ),
        (
            "DELETE FROM stock_holds WHERE product_id = 'MUG-BLUE'; UPDATE products SET held = 0 WHERE product_id = 'MUG-BLUE'",
            "should hold 2 of MUG-BLUE, but holds 0",
        ),
        ("PRAGMA foreign_keys = OFF; DELETE FROM products WHERE product_id = 'MUG-BLUE'", "there is no such product"),
        (
            "UPDATE orders SET account_id = (SELECT account_id FROM accounts WHERE name = 'elsewhere')",
            "is not what cnf_",
        ),
        (
            "UPDATE confirmations SET order_id = 'ord_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE status = 'confirmed'",
            "is not what cnf_",
        ),
        (
            "UPDATE orders SET refunded_minor = 1 WHERE refunded_minor = 0 AND total_minor > 0",
            "counts 1 refunded and 0 reserved, but its refunds are 0 and 0",
        ),
        ("DELETE FROM refund_holds; UPDATE orders SET reserved_minor = 0", "doesn't reserve what it offers"),
        (
            "UPDATE confirmations SET refund_id = (SELECT min(refund_id) FROM refunds) WHERE purpose = 'refund'",
            "its refund is another or has another state",
        ),
        (
            "UPDATE claims SET answer_status = NULL, answer_body = NULL WHERE idempotency_key = '10'",
            "is decided, but its key has no answer",
        ),
        (
            "UPDATE orders SET reserved_minor = 0",
            "counts 2000 refunded and 0 reserved, but its refunds are 2000 and 20000",
        ),
        ("DELETE FROM refund_holds", "counts 2000 refunded and 20000 reserved, but its refunds are 2000 and 0"),
        (
            "PRAGMA foreign_keys = OFF; DELETE FROM refunds WHERE status = 'succeeded'",
            "is succeeded, what it is for is not",
        ),
        ("PRAGMA foreign_keys = OFF; DELETE FROM payments WHERE refund_id IS NOT NULL", "has no payment"),
        ("UPDATE confirmations SET status = 'expired' WHERE purpose = 'refund'", "although it is not pending"),
        ("UPDATE claims SET answer_body = NULL WHERE idempotency_key = '4'", "for propose_checkout has no answer"),
        (
            "UPDATE orders SET total_minor = total_minor + 1 WHERE payment_id IS NOT NULL",
            "has another total than its plan",
        ),
        ("UPDATE orders SET payment_id = NULL", "is not paid"),
        (
            "PRAGMA foreign_keys = OFF; UPDATE orders SET payment_id = 'pay_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e' WHERE payment_id = (SELECT max(payment_id) FROM orders)",
            "has a payment that isn't there",
        ),
        (
            "UPDATE orders SET payment_id = NULL WHERE rowid = 1; UPDATE orders SET payment_id = (SELECT payment_id FROM payments WHERE status = 'declined') WHERE rowid = 1",
            "is not what pay_",
        ),
        (
            "UPDATE confirmations SET status = 'cancelled', order_id = NULL, answer_status = NULL WHERE status = 'confirmed'",
            "which is cancelled",
        ),
        (
            "UPDATE confirmations SET status = 'expired' WHERE status = 'committing'",
            "is requested, what it is for is not",
        ),
        ("PRAGMA foreign_keys = OFF; DELETE FROM orders", "is confirmed without an order"),
        ("UPDATE payments SET amount_minor = 1 WHERE status = 'succeeded'", "differs from what the provider booked"),
        (
            "PRAGMA foreign_keys = OFF; DELETE FROM payments WHERE status = 'requested'",
            "is being confirmed without a payment",
        ),
        ("PRAGMA foreign_keys = OFF; DELETE FROM payments WHERE status = 'declined'", "which we never asked for"),
        ("UPDATE payments SET status = 'succeeded' WHERE status = 'requested'", "not in the provider's books"),
        (
            "UPDATE payments SET lease_owner = 'gone', lease_until = '2026-11-01 00:00:00' WHERE status = 'requested'",
            "stale lease",
        ),
        ("UPDATE payments SET provider_key_expires_at = '2026-11-01 00:00:00'", "needs a person"),
        (
            "UPDATE claims SET answer_status = NULL, answer_body = NULL WHERE idempotency_key = '6'",
            "for batch_update_products has no answer",
        ),
    ];
    let theirs = [
        ("PRAGMA foreign_keys = OFF; DELETE FROM ledger WHERE outcome = 'succeeded'", "not in the provider's books"),
        ("UPDATE ledger SET amount_minor = amount_minor + 1", "differs from what the provider booked"),
        ("UPDATE ledger SET outcome = 'succeeded'", "differs from what the provider booked"),
        ("UPDATE ledger SET refund_of = NULL", "differs from what the provider booked"),
        (
            "UPDATE ledger SET refund_of = (SELECT min(provider_key) FROM ledger) WHERE refund_of IS NOT NULL",
            "gives back another charge",
        ),
    ];
    let app = story(TestApp::on_sqlite(|_| ()).await).await; // whose file is copied for each case
    let cases = ours.iter().map(|case| (0, case)).chain(theirs.iter().map(|case| (1, case)));
    for (book, (tamper, finding)) in cases {
        let dir = tempfile::TempDir::new().unwrap();
        let copies = ["ours.db", "theirs.db"].map(|name| DatabaseUrl::Sqlite(dir.path().join(name)));
        for (from, to) in [app.database(), app.ledger()].iter().zip(&copies) {
            let to = to.address();
            batch(from, &format!("VACUUM INTO '{}'", to.trim_start_matches("sqlite://")));
        }
        batch(&copies[book], tamper);
        let (code, said) = check(&copies[0], &copies[1]);
        assert_eq!(code, Some(1), "{tamper}: {said}");
        assert!(said.contains(finding), "{tamper}: {said}");
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
