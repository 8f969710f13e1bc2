//! Many at once on the same rows, in loops: nobody is told of a deadlock, and nothing is left over.

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
    let loops = (0..8).map(|n| {
        let app = &app;
        async move {
            let caller = app.caller([SHOPPER, SECOND, STRANGER][n % 3]);
            for round in 0..60 {
                let (first, second) = if n % 2 == 0 { ("MUG-BLUE", "MUG-TRAVEL") } else { ("MUG-TRAVEL", "MUG-BLUE") };
                let key = format!("{n}-{round}");
                let id = caller.proposed(&key, &two(first, second, &key)).await;
                let path = format!("/confirmations/{id}");
                let (cancelled, confirmed) = tokio::join!(caller.delete(&path), caller.confirm(&id));
                let ends = (cancelled.status, confirmed.status);
                assert!(
                    matches!(ends, (204, 410 | 409) | (409, 200)),
                    "{ends:?} {} {}",
                    cancelled.text(),
                    confirmed.text()
                );
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
