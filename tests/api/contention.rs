//! Many at once on the same rows, in loops: nobody is told of a deadlock, and nothing is left over. For thousands of rounds,
//! set `COUNTERSIGN_TEST_ROUNDS`.

use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};

/// Both products, in this order, to an address of its own: equal carts would be attempts at one purchase.
fn two(first: &str, second: &str, place: &str) -> Value {
    let items = json!([{"product_id": first, "quantity": 1}, {"product_id": second, "quantity": 1}]);
    let cart = with(cart(first, 1, "pm_sandbox_ok"), "/items", items);
    with(with(cart, "/shipping_address/line1", json!(place)), "/discount_codes", json!(["WELCOME10"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn f27_f28_carts_in_both_orders_and_cancels_against_confirms_never_end_in_5xx() {
    let app = TestApp::with(|config| config.settings.max_pending = 10_000).await;
    app.set_stock("MUG-%", 100_000);
    let rounds = std::env::var("COUNTERSIGN_TEST_ROUNDS").map_or(60, |rounds| rounds.parse::<usize>().unwrap());
    let loops = (0..8).map(|n| {
        let app = &app;
        async move {
            let caller = app.caller([SHOPPER, SECOND, STRANGER][n % 3]);
            for round in 0..rounds {
                let (first, second) = if n % 2 == 0 { ("MUG-BLUE", "MUG-TRAVEL") } else { ("MUG-TRAVEL", "MUG-BLUE") };
                let key = format!("{n}-{round}");
                let id = caller.proposed(&key, &two(first, second, &key)).await;
                let path = format!("/confirmations/{id}");
                let (cancelled, confirmed) = tokio::join!(caller.delete(&path), caller.confirm(&id));
                let ends = (cancelled.status, confirmed.status);
                assert!(matches!(ends, (204, 410) | (409, 200)), "{ends:?} {} {}", cancelled.text(), confirmed.text());
                if n == 0 {
                    let set = json!({"mode": "atomic", "updates": [
                        {"product_id": "MUG-TRAVEL", "set": {"stock": 90_000 + round}},
                        {"product_id": "MUG-BLUE", "set": {"stock": 90_000 + round}},
                    ]});
                    assert_eq!(app.caller(MERCHANT).update(&key, &set).await.status, 200);
                }
            }
        }
    });
    join_all(loops).await;
    assert_eq!(app.number("SELECT count(*) AS n FROM orders"), app.charges());
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f01_equal_refunds_at_once_are_never_both_made_in_one_step() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let keys: Vec<String> = (0..20).map(|i| format!("r{i}")).collect();
    let ten = refund(&order, "10.00", "USD");
    let got = join_all(keys.iter().map(|key| app.caller(SUPPORT).refund(key, &ten))).await;
    assert_eq!(got.iter().filter(|got| got.status == 201).count(), 1, "the others are shown it");
    assert!(got.iter().all(|got| matches!(got.status, 201 | 202)), "{got:?}");
    assert_eq!(app.given_back(), (1, 1000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_make_the_same_products_in_opposite_orders_all_end() {
    let app = TestApp::start().await;
    for round in 0..3 {
        let batch = |reversed: bool| {
            let set = json!({"title": "New", "price": {"amount": 1, "currency": "USD"}, "stock": 1});
            let mut updates: Vec<Value> =
                (0..30).map(|i| json!({"product_id": format!("NEW-{round}-{i}"), "set": set})).collect();
            if reversed {
                updates.reverse();
            }
            json!({"mode": "atomic", "updates": updates})
        };
        let got = join_all((0..4).map(|n| {
            let (app, batch) = (&app, batch(n % 2 == 1));
            async move { app.caller(MERCHANT).update(&format!("{round}-{n}"), &batch).await }
        }))
        .await;
        for (n, got) in got.iter().enumerate() {
            assert_eq!(got.status, 200, "{}", got.text());
            let first = if n % 2 == 1 { 29 } else { 0 };
            assert_eq!(
                got.json()["results"][0]["product_id"],
                format!("NEW-{round}-{first}"),
                "in the order of the request"
            );
        }
    }
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f38_the_cap_on_pending_confirmations_holds_in_parallel() {
    let app = TestApp::with(|config| config.settings.max_pending = 5).await;
    let keys: Vec<String> = (0..30).map(|i| format!("k{i}")).collect();
    let cart = mugs();
    let got = join_all(keys.iter().map(|key| app.shopper().propose(key, &cart))).await;
    assert_eq!(got.iter().filter(|got| got.status == 201).count(), 5);
    assert!(got.iter().all(|got| got.status == 201 || got.code() == "too_many_pending"), "{got:?}");
}
