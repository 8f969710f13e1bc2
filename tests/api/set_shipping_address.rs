use crate::support::*;
use reqwest::Method;
use serde_json::{Value, json};

fn street(line1: &str) -> Value {
    with(address("US"), "/line1", json!(line1))
}

async fn set_keyed(app: &TestApp, order: &str, key: &str, address: &Value) -> Got {
    let request = app.shopper().request(Method::PUT, &format!("/orders/{order}/shipping-address"));
    send(request.header("Idempotency-Key", key).json(address)).await
}

async fn goes_to(app: &TestApp, order: &str) -> Value {
    app.shopper().get(&format!("/orders/{order}")).await.json()["shipping_address"]["line1"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_put_replaces_the_whole_address_and_a_repeat_changes_nothing() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &with(mugs(), "/shipping_address/line2", json!("Floor 3"))).await;
    let first = app.shopper().set_address(&order, &street("2 Market Street")).await;
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.json(), json!({"order_id": order, "shipping_address": street("2 Market Street")}));
    let repeat = app.shopper().set_address(&order, &street("2 Market Street")).await;
    assert_eq!((repeat.status, &repeat.body, repeat.is_replay()), (200, &first.body, false));
    let shown = app.shopper().get(&format!("/orders/{order}")).await.json();
    assert_eq!(shown["shipping_address"], street("2 Market Street"), "line2 is gone");
    assert_eq!(shown["plan"]["shipping_address"]["line2"], "Floor 3", "the plan stays as it was confirmed");
    assert_eq!(app.number("SELECT count(*) AS n FROM claims WHERE operation = 'set_shipping_address'"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_retry_overwrites_without_a_key_and_replays_with_one() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &mugs()).await;
    app.shopper().set_address(&order, &street("Old")).await;
    app.shopper().set_address(&order, &street("New")).await;
    app.shopper().set_address(&order, &street("Old")).await;
    assert_eq!(goes_to(&app, &order).await, "Old", "without a key the last write wins, whoever meant it");

    let old = set_keyed(&app, &order, "old", &street("Older")).await;
    let new = set_keyed(&app, &order, "new", &street("Newer")).await;
    assert_eq!((old.status, new.status), (200, 200));
    set_keyed(&app, &order, "old", &street("Older")).await.assert_replay_of(&old);
    assert_eq!(goes_to(&app, &order).await, "Newer");
    set_keyed(&app, &order, "old", &street("Another")).await.assert_problem(422, "idempotency_key_reused");
    let other = app.shopper().ordered("k2", &mugs()).await;
    set_keyed(&app, &other, "old", &street("Older")).await.assert_problem(422, "idempotency_key_reused");
    assert_eq!(goes_to(&app, &other).await, "1 Market Street");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_would_change_the_price_is_refused() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &with(mugs(), "/shipping_address/region", json!("CA"))).await;
    let in_region = |region: Value| with(address("US"), "/region", region);
    for elsewhere in [address("DE"), address("US"), in_region(json!("NY"))] {
        let problem = app.shopper().set_address(&order, &elsewhere).await.assert_problem(409, "address_changes_price");
        assert!(problem["detail"].as_str().unwrap().contains("country \"US\" with region \"CA\""));
    }
    assert_eq!(goes_to(&app, &order).await, "1 Market Street");
    // Nothing was stored: the key is free for the corrected request.
    set_keyed(&app, &order, "a", &address("DE")).await.assert_problem(409, "address_changes_price");
    assert_eq!(set_keyed(&app, &order, "a", &in_region(json!("CA"))).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_can_be_changed_until_the_delivery_window_starts() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &mugs()).await;
    let earliest = app.shopper().get(&format!("/orders/{order}")).await.json()["plan"]["delivery"]["earliest"].clone();
    assert_eq!(earliest, "2026-12-04");
    app.clock.advance(2 * DAY + std::time::Duration::from_secs(14 * 3600 + 30 * 60 - 1)); // 2026-12-03T23:59:59Z
    let set = set_keyed(&app, &order, "a", &street("2 Market Street")).await;
    assert_eq!(set.status, 200, "{}", set.text());
    app.clock.advance(std::time::Duration::from_secs(1));
    app.shopper().set_address(&order, &street("3 Market Street")).await.assert_problem(409, "delivery_started");
    set_keyed(&app, &order, "a", &street("2 Market Street")).await.assert_replay_of(&set);
    let pickup = app.shopper().ordered("p", &with(mugs(), "/shipping_option", json!("pickup"))).await;
    app.shopper().set_address(&pickup, &street("2 Market Street")).await.assert_problem(409, "delivery_started");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_account_may_set_it_and_so_may_orders_any_with_orders_write() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &mugs()).await;
    assert_eq!(app.caller(SECOND).set_address(&order, &street("Second's")).await.status, 200);
    app.caller(STRANGER).set_address(&order, &street("Stranger's")).await.assert_problem(404, "not_found");
    app.caller(SUPPORT).set_address(&order, &street("Support's")).await.assert_problem(403, "insufficient_scope");
    app.execute("UPDATE actors SET scopes = 'orders:any orders:write' WHERE name = 'support'");
    assert_eq!(app.caller(SUPPORT).set_address(&order, &street("All's")).await.status, 200);
    app.shopper().set_address("ord_1", &street("Nobody's")).await.assert_problem(404, "not_found");
    let bad = with(street(" "), "/country", json!("us"));
    let problem = app.shopper().set_address(&order, &bad).await.assert_problem(422, "validation_failed");
    assert_eq!(
        (&problem["errors"][0]["pointer"], &problem["errors"][1]["pointer"]),
        (&json!("/line1"), &json!("/country"))
    );
    assert_eq!(goes_to(&app, &order).await, "All's");
}
