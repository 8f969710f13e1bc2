use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn propose_confirm_and_each_repeat_word_for_word() {
    let app = TestApp::start().await;
    let proposed = app.shopper().propose("propose-1", &mugs()).await;
    assert_eq!(proposed.status, 201);
    let id = proposed.json()["confirmation_id"].as_str().unwrap().to_owned();
    app.shopper().propose("propose-1", &mugs()).await.assert_replay_of(&proposed);

    let confirmed = app.shopper().confirm_keyed(&id, "confirm-1").await;
    assert_eq!(confirmed.status, 200);
    assert!(!confirmed.is_replay());
    assert_eq!(confirmed.header("Idempotency-Key-Expires"), Some("2026-12-08T09:30:00.000Z"));
    let order = confirmed.json()["order_id"].as_str().unwrap().to_owned();
    assert_eq!(confirmed.json()["status"], "confirmed");
    assert_eq!(confirmed.json()["payment"]["status"], "captured");

    app.shopper().confirm_keyed(&id, "confirm-1").await.assert_replay_of(&confirmed);
    app.shopper().confirm_keyed(&id, "another").await.assert_replay_of(&confirmed);
    app.shopper().confirm(&id).await.assert_replay_of(&confirmed);
    for late in [TTL, 30 * DAY] {
        app.clock.advance(late);
        app.shopper().confirm(&id).await.assert_replay_of(&confirmed);
        app.shopper().confirm_keyed(&id, "confirm-1").await.assert_replay_of(&confirmed);
    }
    let shown = app.shopper().get(&format!("/confirmations/{id}")).await.json();
    assert_eq!((shown["status"].as_str(), shown["order_id"].as_str()), (Some("confirmed"), Some(order.as_str())));
    assert_eq!(shown["next"], json!({"order": format!("/orders/{order}")}));
    assert_eq!(app.number("SELECT stock - held AS n FROM products WHERE product_id = 'MUG-BLUE'"), 118);
    assert_eq!(app.charges(), 1);
    app.assert_consistent();
}

async fn fifty_confirms(keys: impl Fn(usize) -> String, method: &str) {
    let app = TestApp::with(|config| config.settings.provider_timeout = Duration::from_secs(5)).await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, method)).await;
    let keys: Vec<String> = (0..50).map(keys).collect();
    let got = join_all(keys.iter().map(|key| app.shopper().confirm_keyed(&id, key))).await;
    let first = got.iter().find(|got| got.status == 200 && !got.is_replay()).expect("one of them is the first");
    for got in &got {
        match got.status {
            200 if got.is_replay() => got.assert_replay_of(first),
            200 => assert_eq!(got.body, first.body),
            _ => {
                assert!(
                    matches!(got.code().as_str(), "operation_in_flight" | "idempotency_in_flight"),
                    "{}",
                    got.text()
                );
                got.assert_problem(409, &got.code());
            }
        }
    }
    assert_eq!(got.iter().filter(|got| got.status == 200 && !got.is_replay()).count(), 1);
    app.shopper().confirm(&id).await.assert_replay_of(first);
    assert_eq!(app.number("SELECT count(*) AS n FROM orders"), 1);
    assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), 1, "the provider was asked once");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f03_f11_fifty_parallel_confirms_with_different_keys_make_one_order_and_one_charge() {
    fifty_confirms(|i| format!("k{i}"), "pm_sandbox_ok").await;
    fifty_confirms(|i| format!("k{i}"), "pm_sandbox_slow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f02_fifty_parallel_confirms_with_one_key_make_one_order_and_one_charge() {
    fifty_confirms(|_| "same".into(), "pm_sandbox_ok").await;
    fifty_confirms(|_| "same".into(), "pm_sandbox_slow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f02_while_the_provider_thinks_a_repeat_is_told_to_wait() {
    let app = TestApp::with(|config| {
        config.settings.provider_timeout = Duration::from_secs(10);
        config.sandbox_delay = Duration::from_secs(2);
    })
    .await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    let slow = app.shopper().confirm_keyed(&id, "a");
    let meanwhile = async {
        let claimed = "SELECT count(*) AS n FROM payments WHERE status = 'requested'";
        eventually("the claim is committed before the provider answers", async || app.number(claimed) == 1).await;
        app.shopper().confirm_keyed(&id, "a").await.assert_problem(409, "idempotency_in_flight");
        app.shopper().confirm_keyed(&id, "b").await.assert_problem(409, "operation_in_flight");
        app.shopper().confirm(&id).await.assert_problem(409, "operation_in_flight");
        app.shopper().delete(&format!("/confirmations/{id}")).await.assert_problem(409, "operation_in_flight");
        let other = app.shopper().request(reqwest::Method::POST, &format!("/confirm-checkout/{id}"));
        let other =
            other.header("Idempotency-Key", "a").json(&json!({"expected_total": {"amount": 1, "currency": "USD"}}));
        send(other).await.assert_problem(422, "idempotency_key_reused");
    };
    let (slow, ()) = tokio::join!(slow, meanwhile);
    assert_eq!(slow.status, 200);
    app.shopper().confirm_keyed(&id, "b").await.assert_replay_of(&slow);
    assert_eq!(app.charges(), 1);
    assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), 1, "the provider was asked once");
}

#[tokio::test(flavor = "multi_thread")]
async fn f10_a_confirm_of_another_plan_changes_nothing() {
    let app = TestApp::start().await;
    let proposed = app.shopper().propose("k", &mugs()).await.json();
    let id = proposed["confirmation_id"].as_str().unwrap();
    let path = format!("/confirm-checkout/{id}");
    let mut guards = vec![
        json!({"expected_total": {"amount": "1000.00", "currency": "USD"}}),
        json!({"expected_total": {"amount": proposed["total"]["amount"], "currency": "EUR"}}),
        json!({"expected_plan_digest": format!("sha256:{}", "0".repeat(64))}),
    ];
    for other in [
        cart("MUG-TRAVEL", 2, "pm_sandbox_ok"),
        cart("MUG-BLUE", 3, "pm_sandbox_ok"),
        with(mugs(), "/shipping_address/line1", json!("2 Market Street")),
        with(mugs(), "/payment_method", json!("pm_sandbox_slow")),
    ] {
        let shown = app.shopper().post("/checkout-dry-run", &other).await.json();
        guards.push(json!({"expected_plan_digest": shown["plan_digest"]}));
    }
    for guard in guards {
        let got = app.shopper().post_keyed(&path, "confirm", &guard).await;
        let problem = got.assert_problem(409, "confirmation_mismatch");
        assert_eq!(problem["plan"], proposed["plan"]);
    }
    for extra in ["items", "shipping_address", "payment_method", "quantity", "amount"] {
        app.shopper().post(&path, &json!({extra: 1})).await.assert_problem(400, "malformed_request");
    }
    assert_eq!(number(&app.ledger(), "SELECT count(*) AS n FROM attempts"), 0);
    assert_eq!(app.shopper().get(&format!("/confirmations/{id}")).await.json()["status"], "pending");

    app.execute("UPDATE products SET price_minor = 1, title = 'Another', stock = 119 WHERE product_id = 'MUG-BLUE'");
    let right = json!({"expected_total": proposed["total"], "expected_plan_digest": proposed["plan_digest"]});
    let got = app.shopper().post_keyed(&path, "confirm", &right).await;
    assert_eq!(got.json()["plan"], proposed["plan"], "{}", got.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn f37_it_can_be_confirmed_strictly_before_its_deadline() {
    for (millis, status) in [(-1, 200), (0, 410), (1, 410), (999, 410)] {
        let app = TestApp::with(|config| config.settings.confirmation_ttl = Duration::from_millis(1_500)).await;
        let proposed = app.shopper().propose("k", &mugs()).await.json();
        assert_eq!(proposed["expires_at"], "2026-12-01T09:30:01.500Z");
        let id = proposed["confirmation_id"].as_str().unwrap().to_owned();
        app.clock.advance(Duration::from_millis((1_500 + millis) as u64));
        let got = app.shopper().confirm(&id).await;
        assert_eq!(got.status, status, "{millis} ms: {}", got.text());
        if status == 410 {
            got.assert_problem(410, "confirmation_expired");
            assert_eq!(number(&app.ledger(), "SELECT count(*) AS n FROM attempts"), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f25_f47_a_key_that_names_another_request_is_refused_whatever_the_state() {
    let app = TestApp::start().await;
    let a = app.shopper().proposed("a", &mugs()).await;
    let b = app.shopper().proposed("b", &cart("SHIRT-M", 1, "pm_sandbox_ok")).await;
    let first = app.shopper().confirm_keyed(&a, "confirm").await;
    app.shopper().confirm_keyed(&b, "confirm").await.assert_problem(422, "idempotency_key_reused");
    app.shopper().confirm_keyed(&b, "a").await.assert_problem(422, "idempotency_key_reused");
    app.shopper().confirm_keyed(&a, "b").await.assert_problem(422, "idempotency_key_reused");
    assert_eq!(app.shopper().get(&format!("/confirmations/{b}")).await.json()["status"], "pending");
    app.shopper().confirm_keyed(&a, "confirm").await.assert_replay_of(&first);
}

#[tokio::test(flavor = "multi_thread")]
async fn f25_of_two_confirmations_at_once_under_one_key_one_is_confirmed_and_the_other_is_a_reuse() {
    let app = TestApp::start().await;
    for round in 0..10 {
        let first = app.shopper().proposed(&format!("a{round}"), &cart("MUG-BLUE", 1, "pm_sandbox_ok")).await;
        let second = app.shopper().proposed(&format!("b{round}"), &cart("MUG-TRAVEL", 1, "pm_sandbox_ok")).await;
        let key = format!("c{round}");
        let confirm = |id| app.shopper().confirm_keyed(id, &key);
        let (one, other) = tokio::join!(confirm(&first), confirm(&second));
        let (confirmed, reuse) = if one.status == 200 { (one, other) } else { (other, one) };
        assert_eq!(confirmed.status, 200, "{}", confirmed.text());
        reuse.assert_problem(422, "idempotency_key_reused");
    }
    assert_eq!(app.charges(), 10);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f31_a_decline_frees_the_hold_and_is_the_answer_for_ever() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &cart("LAST-ONE", 1, "pm_sandbox_declined")).await;
    let first = app.shopper().confirm_keyed(&id, "confirm").await;
    let problem = first.assert_problem(402, "payment_declined");
    assert_eq!(problem["recovery"], "propose_again");
    assert_eq!(problem["confirmation_id"], id.as_str());
    app.clock.advance(DAY);
    app.shopper().confirm_keyed(&id, "confirm").await.assert_replay_of(&first);
    app.shopper().confirm(&id).await.assert_replay_of(&first);
    assert_eq!(app.shopper().get(&format!("/confirmations/{id}")).await.json()["status"], "declined");
    assert_eq!(app.shopper().get("/products/LAST-ONE").await.json()["available"], 1);
    assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f31_a_confirm_that_was_refused_for_its_body_can_be_corrected_under_its_key() {
    let app = TestApp::start().await;
    let proposed = app.shopper().propose("k", &mugs()).await.json();
    let path = format!("/confirm-checkout/{}", proposed["confirmation_id"].as_str().unwrap());
    let confirm = async |body: Value| app.shopper().post_keyed(&path, "c", &body).await;
    confirm(json!({"expected_total": 1})).await.assert_problem(400, "malformed_request");
    let bad = json!({"expected_total": {"amount": "1.001", "currency": "USD"}});
    confirm(bad).await.assert_problem(422, "validation_failed");
    let wrong = json!({"expected_total": {"amount": "1.00", "currency": "USD"}});
    confirm(wrong).await.assert_problem(409, "confirmation_mismatch");
    let good = json!({"expected_total": proposed["total"]});
    let got = confirm(good.clone()).await;
    assert_eq!((got.status, got.is_replay()), (200, false), "{}", got.text());
    confirm(good).await.assert_replay_of(&got);
    confirm(json!({})).await.assert_problem(422, "idempotency_key_reused");
    assert_eq!(app.charges(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f04_f23_no_second_attempt_while_the_first_is_unknown() {
    for method in ["pm_sandbox_error_after_charge", "pm_sandbox_timeout_after_charge"] {
        no_second_attempt(&cart("MUG-BLUE", 2, method)).await;
    }
}

async fn no_second_attempt(cart: &Value) {
    let app = TestApp::start().await;
    let first = app.shopper().proposed("k1", cart).await;
    let second = app.shopper().proposed("k2", cart).await;
    app.shopper().confirm_keyed(&first, "c1").await.assert_problem(503, "outcome_unknown");

    let problem = app.shopper().confirm_keyed(&second, "c2").await.assert_problem(409, "attempt_pending");
    assert_eq!(problem["confirmation_id"], first.as_str());
    let problem = app.shopper().propose("k3", cart).await.assert_problem(409, "attempt_pending");
    assert_eq!(problem["confirmation_id"], first.as_str());
    let split = json!([{"product_id": "MUG-BLUE", "quantity": 1}, {"product_id": "MUG-BLUE", "quantity": 1}]);
    app.shopper().propose("k4", &with(cart.clone(), "/items", split)).await.assert_problem(409, "attempt_pending");
    assert_eq!(app.shopper().get(&format!("/confirmations/{second}")).await.json()["status"], "pending");

    assert_eq!(app.shopper().confirm_keyed(&first, "c1").await.status, 200);
    assert_eq!(app.charges(), 1);
    assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), 1, "it was looked for, not sent again");
    assert_eq!(app.shopper().propose("k3", cart).await.status, 201, "the first is decided");
    assert_eq!(app.shopper().confirm_keyed(&second, "c2").await.status, 503, "its own first attempt");
    assert_eq!(app.shopper().confirm_keyed(&second, "c2").await.status, 200);
    assert_eq!(app.charges(), 2);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_total_of_zero_asks_no_provider() {
    let app = TestApp::start().await;
    let free = with(with(mugs(), "/discount_codes", json!(["GOODWILL"])), "/shipping_option", json!("pickup"));
    let id = app.shopper().proposed("k", &free).await;
    let got = app.shopper().confirm_keyed(&id, "c").await;
    assert_eq!((got.status, &got.json()["payment"]), (200, &Value::Null));
    assert_eq!(got.json()["total"]["amount"], "0.00");
    app.shopper().confirm_keyed(&id, "c").await.assert_replay_of(&got);
    assert_eq!(number(&app.ledger(), "SELECT count(*) AS n FROM attempts"), 0);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f30_with_the_store_closed_nothing_is_done_and_nothing_is_stored() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    app.context.store.close().await;
    app.shopper().confirm_keyed(&id, "c").await.assert_problem(503, "overloaded");
    assert_eq!(number(&app.ledger(), "SELECT count(*) AS n FROM attempts"), 0);
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 1);
}
