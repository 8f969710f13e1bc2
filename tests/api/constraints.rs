//! What must never be is kept out by the database as well, whatever the code above it does.

use crate::support::*;
use serde_json::json;

/// Each statement is refused by a constraint of this kind, and changes nothing.
fn assert_refused(app: &TestApp, kind: &str, statements: &[&str]) {
    let before = app.dump();
    for sql in statements {
        let why = try_batch(&app.database(), sql).expect_err(sql).to_string().to_lowercase();
        assert!(why.contains(kind), "{sql}: {why}");
    }
    assert_eq!(app.dump(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn f03_f20_f23_of_what_there_may_be_one_the_database_takes_no_second() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &mugs()).await;
    assert_eq!(app.caller(SUPPORT).refund("r", &refund(&order, "1.00", "USD")).await.status, 201);
    app.shopper().proposed("twin-1", &cart("SHIRT-M", 1, "pm_sandbox_ok")).await;
    app.shopper().proposed("twin-2", &cart("SHIRT-M", 1, "pm_sandbox_ok")).await;
    let statements = [
        // An order a confirmation.
        "INSERT INTO orders (order_id, confirmation_id, actor_id, account_id, attempt_digest, plan, total_minor, refunded_minor, \
         currency, shipping_address, created_at) SELECT 'ord_second', confirmation_id, actor_id, account_id, attempt_digest, plan, \
         total_minor, 0, currency, shipping_address, created_at FROM orders",
        // A claim a key of an actor.
        "INSERT INTO claims (actor_id, idempotency_key, operation, fingerprint, fingerprint_version, created_at, expires_at) \
         SELECT actor_id, idempotency_key, 'other', 'other', 1, created_at, expires_at FROM claims",
        // A charge a confirmation, and a key of the provider's a payment.
        "INSERT INTO payments (payment_id, confirmation_id, refund_id, provider_key, request, amount_minor, currency, status, \
         provider_key_expires_at, attempts, recover_at, created_at) SELECT 'pay_second', confirmation_id, refund_id, 'other', \
         request, amount_minor, currency, status, provider_key_expires_at, 1, recover_at, created_at FROM payments",
        "UPDATE payments SET provider_key = 'one'",
        // A refund a key.
        "INSERT INTO refunds (refund_id, order_id, actor_id, idempotency_key, amount_minor, currency, reason, status, created_at, \
         decided_at) SELECT 'rfd_second', order_id, actor_id, idempotency_key, amount_minor, currency, reason, status, \
         created_at, decided_at FROM refunds",
        // An undecided attempt at a purchase.
        "UPDATE confirmations SET status = 'committing' WHERE status = 'pending'",
    ];
    assert_refused(&app, "unique constraint", &statements);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f01_f12_f13_f24_what_is_below_nothing_or_above_its_bound_the_database_refuses() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &mugs()).await;
    assert_eq!(app.caller(SUPPORT).refund("r", &refund(&order, "1.00", "USD")).await.status, 201);
    app.shopper().proposed("held", &with(mugs(), "/discount_codes", json!(["FIRST3"]))).await;
    let large = app.shopper().ordered("large", &cart("MUG-TRAVEL", 5, "pm_sandbox_ok")).await;
    assert_eq!(app.caller(SUPPORT).refund("offer", &refund(&large, "101.00", "USD")).await.status, 202);
    let statements = [
        "UPDATE products SET price_minor = -1",
        "UPDATE products SET stock = -1",
        "UPDATE products SET held = -1",
        "UPDATE products SET held = stock + 1",
        "UPDATE products SET stock = held - 1 WHERE held > 0",
        "UPDATE stock_holds SET quantity = 0",
        "UPDATE stock_holds SET quantity = -4",
        "UPDATE stock_changes SET stock_after = -1",
        "UPDATE discounts SET held = -1",
        "UPDATE discounts SET used = -1",
        "UPDATE discounts SET held = use_limit + 1 WHERE use_limit IS NOT NULL",
        "UPDATE discounts SET amount_minor = -1 WHERE amount_minor IS NOT NULL",
        "UPDATE orders SET total_minor = -1",
        "UPDATE orders SET refunded_minor = -1",
        "UPDATE orders SET reserved_minor = -1",
        "UPDATE orders SET refunded_minor = total_minor + 1",
        "UPDATE orders SET reserved_minor = total_minor - refunded_minor + 1",
        "UPDATE refunds SET amount_minor = -500",
        "UPDATE refunds SET amount_minor = 0",
        "UPDATE refund_holds SET amount_minor = 0",
        "UPDATE payments SET amount_minor = 0",
    ];
    assert_refused(&app, "check constraint", &statements);
    app.assert_consistent();
}
