use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_holds_stock_and_answers_201_with_a_confirmation() {
    let app = TestApp::start().await;
    let got = app.shopper().propose("k", &mugs()).await;
    assert_eq!(got.status, 201);
    let body = got.json();
    let id = body["confirmation_id"].as_str().unwrap();
    assert_eq!(got.header("Location"), Some(format!("/confirmations/{id}").as_str()));
    assert_eq!(got.header("Idempotency-Key"), Some("k"));
    assert_eq!(got.header("Idempotency-Key-Expires"), Some("2026-12-08T09:30:00.000Z"));
    assert_eq!(body["operation"], "checkout");
    assert_eq!(body["status"], "pending");
    assert_eq!(body["expires_at"], "2026-12-01T09:45:00.000Z");
    assert_eq!(body["order_id"], Value::Null);
    assert_eq!(body["total"], body["plan"]["total"]);
    assert_eq!(body["next"]["confirm"], format!("/confirm-checkout/{id}"));
    assert_eq!(app.shopper().get("/products/MUG-BLUE").await.json()["available"], 118);
    assert_eq!(app.charges(), 0);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f44_a_repeat_gets_the_same_bytes_status_and_location_and_says_so() {
    let app = TestApp::start().await;
    let first = app.shopper().propose("k", &mugs()).await;
    app.clock.advance(Duration::from_secs(1));
    let again = app.shopper().propose("k", &mugs()).await;
    again.assert_replay_of(&first);
    assert!(!first.is_replay());
    assert_ne!(again.header("X-Request-Id"), first.header("X-Request-Id"));
    assert_eq!(again.header("Idempotency-Key-Expires"), first.header("Idempotency-Key-Expires"));
    assert_eq!(again.header("Set-Cookie"), None);
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f33_f35_the_same_request_written_otherwise_is_the_same_request() {
    let app = TestApp::start().await;
    let total = app.shopper().post("/checkout-dry-run", &mugs()).await.json()["plan"]["total"]["amount"].clone();
    let cart = with(mugs(), "/expected_total", json!({"amount": total, "currency": "USD"}));
    let first = app.shopper().propose("k", &cart).await;
    assert_eq!(first.status, 201, "{}", first.text());

    let number: Value = serde_json::from_str(total.as_str().unwrap()).unwrap();
    let members = cart.as_object().unwrap().iter().rev().map(|(name, value)| format!("\"{name}\":{value}"));
    let reordered = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    for same in [
        reordered,
        serde_json::to_string_pretty(&cart).unwrap(),
        with(cart.clone(), "/expected_total/amount", number).to_string(),
        with(cart.clone(), "/expected_total/amount", json!(format!("{}00", total.as_str().unwrap()))).to_string(),
        with(cart.clone(), "/expected_total/currency", json!("usd")).to_string(),
        with(cart.clone(), "/shipping_option", json!("standard")).to_string(),
        with(cart.clone(), "/discount_codes", json!([])).to_string(),
        cart.to_string().replace("\"items\"", "\"discount_codes\":null,\"shipping_option\":null,\"items\""),
    ] {
        app.shopper().post_raw("/checkout", "k", same).await.assert_replay_of(&first);
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
    let unknown = with(cart, "/colour", json!("blue"));
    app.shopper().propose("k", &unknown).await.assert_problem(400, "malformed_request");
    assert_eq!(app.number("SELECT fingerprint_version AS n FROM claims"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f25_f36_the_same_key_for_another_request_is_a_reuse_for_ever() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    for other in [
        with(mugs(), "/payment_method", json!("pm_sandbox_slow")),
        with(mugs(), "/shipping_address/name", json!("Ada Lovelacé")),
        with(mugs(), "/shipping_option", json!("express")),
        with(
            mugs(),
            "/items",
            json!([{"product_id": "MUG-BLUE", "quantity": 1}, {"product_id": "MUG-BLUE", "quantity": 1}]),
        ),
        with(mugs(), "/expected_total", json!({"amount": 1, "currency": "USD"})),
    ] {
        app.shopper().propose("k", &other).await.assert_problem(422, "idempotency_key_reused");
    }
    app.shopper().confirm_keyed(&id, "k").await.assert_problem(422, "idempotency_key_reused");
    app.clock.advance(8 * DAY);
    let other = with(mugs(), "/shipping_option", json!("express"));
    app.shopper().propose("k", &other).await.assert_problem(422, "idempotency_key_reused");
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f07_the_same_key_of_another_actor_is_another_key() {
    let app = TestApp::start().await;
    let mine = app.shopper().propose("k", &mugs()).await;
    for other in [STRANGER, SECOND] {
        let theirs = app.caller(other).propose("k", &mugs()).await;
        assert_eq!(theirs.status, 201);
        assert!(!theirs.is_replay());
        assert_ne!(theirs.json()["confirmation_id"], mine.json()["confirmation_id"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f19_a_replay_shows_the_first_deadline_and_never_extends_it() {
    let app = TestApp::start().await;
    let first = app.shopper().propose("k", &mugs()).await;
    app.clock.advance(TTL);
    app.shopper().propose("k", &mugs()).await.assert_replay_of(&first);
    let id = first.json()["confirmation_id"].as_str().unwrap().to_owned();
    app.shopper().confirm(&id).await.assert_problem(410, "confirmation_expired");
    assert_eq!(app.charges(), 0);

    let id = app.shopper().proposed("in-time", &mugs()).await;
    let confirmed = app.shopper().confirm_keyed(&id, "c").await;
    app.clock.advance(TTL);
    app.shopper().confirm_keyed(&id, "c").await.assert_replay_of(&confirmed);
    assert_eq!((confirmed.status, app.charges()), (200, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_money_is_never_new_work_again() {
    let app = TestApp::start().await;
    let first = app.shopper().propose("k", &mugs()).await;
    app.clock.advance(7 * DAY - Duration::from_millis(1));
    app.shopper().propose("k", &mugs()).await.assert_replay_of(&first);
    app.clock.advance(Duration::from_millis(1));
    let gone = app.shopper().propose("k", &mugs()).await.assert_problem(410, "idempotency_key_expired");
    assert_eq!(gone["resource"].as_str(), first.header("Location"));
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f29_fifty_parallel_proposals_with_one_key_make_one_confirmation() {
    let app = TestApp::start().await;
    let cart = mugs();
    let got = join_all((0..50).map(|_| app.shopper().propose("k", &cart))).await;
    let first = got.iter().find(|got| !got.is_replay()).expect("one of them is the first");
    for got in got.iter().filter(|got| got.is_replay()) {
        got.assert_replay_of(first);
    }
    assert_eq!(got.iter().filter(|got| !got.is_replay()).count(), 1);
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f24_fifty_buyers_of_ten_units_get_ten_confirmations() {
    let app = TestApp::start().await;
    app.set_stock("MUG-BLUE", 10);
    let cart = cart("MUG-BLUE", 1, "pm_sandbox_ok");
    let keys: Vec<String> = (0..50).map(|i| format!("k{i}")).collect();
    let buyers = [SHOPPER, SECOND, STRANGER];
    let got = join_all(keys.iter().enumerate().map(|(i, key)| {
        let (buyer, cart) = (app.caller(buyers[i % 3]), &cart);
        async move { buyer.propose(key, cart).await }
    }))
    .await;
    assert_eq!(got.iter().filter(|got| got.status == 201).count(), 10);
    for refused in got.iter().filter(|got| got.status != 201) {
        let problem = refused.assert_problem(409, "insufficient_stock");
        assert_eq!(problem["available"], json!([{"product_id": "MUG-BLUE", "requested": 1, "available": 0}]));
    }
    assert_eq!(app.number("SELECT held AS n FROM products WHERE product_id = 'MUG-BLUE'"), 10);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f12_a_code_of_limited_use_is_used_no_more_often() {
    let app = TestApp::start().await;
    let cart = with(mugs(), "/discount_codes", json!(["FIRST3"]));
    let keys: Vec<String> = (0..20).map(|i| format!("k{i}")).collect();
    let got = join_all(keys.iter().map(|key| app.shopper().propose(key, &cart))).await;
    let won: Vec<&Got> = got.iter().filter(|got| got.status == 201).collect();
    assert_eq!(won.len(), 3);
    for refused in got.iter().filter(|got| got.status != 201) {
        assert_eq!(refused.assert_problem(409, "discount_unavailable")["reason"], "used_up");
    }
    // One cancel gives one use back, once.
    let id = won[0].json()["confirmation_id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        app.shopper().delete(&format!("/confirmations/{id}")).await;
    }
    assert_eq!(app.shopper().propose("again", &cart).await.status, 201);
    assert_eq!(app.shopper().propose("more", &cart).await.code(), "discount_unavailable");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f31_a_decided_refusal_is_the_keys_answer_and_a_correction_of_bad_values_is_not() {
    let app = TestApp::start().await;
    let two = cart("LAST-ONE", 2, "pm_sandbox_ok");
    let first = app.shopper().propose("k", &two).await;
    first.assert_problem(409, "insufficient_stock");
    app.set_stock("LAST-ONE", 5);
    app.shopper().propose("k", &two).await.assert_replay_of(&first);
    let one = cart("LAST-ONE", 1, "pm_sandbox_ok");
    app.shopper().propose("k", &one).await.assert_problem(422, "idempotency_key_reused");
    assert_eq!(app.shopper().propose("new", &two).await.status, 201);

    let bad = cart("MUG-BLUE", 0, "pm_sandbox_ok");
    app.shopper().propose("k2", &bad).await.assert_problem(422, "validation_failed");
    assert_eq!(app.shopper().propose("k2", &mugs()).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn f38_what_an_expired_confirmation_holds_is_free_without_any_worker() {
    let app = TestApp::start().await;
    let one = with(cart("LAST-ONE", 1, "pm_sandbox_ok"), "/discount_codes", json!(["FIRST3"]));
    app.execute("UPDATE discounts SET use_limit = 1 WHERE code = 'FIRST3'");
    app.shopper().proposed("k1", &one).await;
    app.shopper().propose("k2", &one).await.assert_problem(409, "insufficient_stock");
    app.clock.advance(TTL);
    assert_eq!(app.shopper().get("/products/LAST-ONE").await.json()["available"], 1);
    app.shopper().proposed("k3", &one).await;
    assert_eq!(app.number("SELECT held AS n FROM products WHERE product_id = 'LAST-ONE'"), 1);
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations WHERE status = 'expired'"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f38_an_actor_holds_a_limited_number_of_pending_confirmations() {
    let app = TestApp::with(|config| config.settings.max_pending = 2).await;
    let first = app.shopper().proposed("k1", &mugs()).await;
    app.clock.advance(Duration::from_secs(60));
    let second = app.shopper().proposed("k2", &mugs()).await;
    let problem = app.shopper().propose("k3", &mugs()).await.assert_problem(409, "too_many_pending");
    assert_eq!(problem["confirmation_ids"], json!([first, second]));
    assert_eq!(problem["retry_after_seconds"], 14 * 60);
    assert_eq!(app.caller(SECOND).propose("k3", &mugs()).await.status, 201);
    // It was a wait, not an answer: the same key goes through once there is room.
    app.shopper().delete(&format!("/confirmations/{first}")).await;
    let got = app.shopper().propose("k3", &mugs()).await;
    assert_eq!((got.status, got.is_replay()), (201, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn f18_a_guard_refuses_a_changed_price_and_a_held_price_stands() {
    let app = TestApp::start().await;
    let shown = app.shopper().post("/checkout-dry-run", &mugs()).await.json();
    let guarded = with(mugs(), "/expected_plan_digest", shown["plan_digest"].clone());
    let id = app.shopper().proposed("held", &guarded).await;
    app.execute("UPDATE products SET price_minor = 2000, version = 2 WHERE product_id = 'MUG-BLUE'");

    let first = app.shopper().propose("late", &guarded).await;
    let problem = first.assert_problem(409, "plan_changed");
    assert_eq!(problem["plan"]["lines"][0]["unit_price"]["amount"], "20.00");
    app.shopper().propose("late", &guarded).await.assert_replay_of(&first);
    let now = with(mugs(), "/expected_plan_digest", problem["plan_digest"].clone());
    assert_eq!(app.shopper().propose("agreed", &now).await.status, 201);

    let got = app.shopper().confirm(&id).await;
    assert_eq!(got.json()["total"], shown["plan"]["total"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_equal_order_of_the_last_day_is_pointed_out() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k1", &mugs()).await;
    let order = app.shopper().confirm(&id).await.json()["order_id"].clone();
    let again = app.shopper().propose("k2", &mugs()).await.json();
    assert_eq!(again["warnings"][0]["code"], "looks_like_recent_order");
    assert_eq!(again["warnings"][0]["order_id"], order);
    let shown = app.shopper().post("/checkout-dry-run", &mugs()).await.json();
    assert_eq!(shown["warnings"][0]["order_id"], order);
    assert_eq!(app.caller(SECOND).propose("k2", &mugs()).await.json()["warnings"], json!([]));
    app.clock.advance(DAY);
    assert_eq!(app.shopper().propose("k3", &mugs()).await.json()["warnings"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn f36_a_switch_that_nobody_reads_is_refused() {
    let app = TestApp::start().await;
    app.shopper().post_keyed("/checkout?dry_run=true", "k", &mugs()).await.assert_problem(400, "malformed_request");
    let body = with(mugs(), "/dry_run", json!(true));
    app.shopper().propose("k", &body).await.assert_problem(400, "malformed_request");
    let shown = app.shopper().post_keyed("/checkout-dry-run", "k", &mugs()).await;
    assert_eq!((shown.status, shown.is_replay()), (200, false));
    // A header is no part of a request, so it can't make another one of it.
    let propose = app.shopper().request(reqwest::Method::POST, "/checkout").header("Idempotency-Key", "k");
    let got = send(propose.json(&mugs())).await;
    assert_eq!((got.status, got.is_replay()), (201, false));
    for (header, value) in [("Dry-Run", "true"), ("Prefer", "dry-run"), ("API-Version", "2")] {
        let again = app.shopper().request(reqwest::Method::POST, "/checkout").header("Idempotency-Key", "k");
        send(again.header(header, value).json(&mugs())).await.assert_replay_of(&got);
    }
    let elsewhere = app.shopper().request(reqwest::Method::POST, "/v2/checkout").header("Idempotency-Key", "k");
    assert_eq!(elsewhere.json(&mugs()).send().await.unwrap().status(), 404);
    let total = |currency: &str| with(mugs(), "/expected_total", json!({"amount": 33, "currency": currency}));
    app.shopper().propose("guarded", &total("USD")).await.assert_problem(409, "plan_changed");
    app.shopper().propose("guarded", &total("EUR")).await.assert_problem(422, "idempotency_key_reused");

    let id = got.json()["confirmation_id"].as_str().unwrap().to_owned();
    let rehearsed = app.shopper().post_keyed(&format!("/confirm-checkout/{id}?dry_run=true"), "c", &json!({})).await;
    rehearsed.assert_problem(400, "malformed_request");
    assert_eq!(app.charges(), 0);
    let got = app.shopper().confirm_keyed(&id, "c").await;
    assert_eq!((got.status, got.is_replay()), (200, false));
}
