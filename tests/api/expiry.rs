//! Deadlines of confirmations: what they end, what they leave alone, and what is shown of it.

use crate::support::*;
use countersign::clock::Clock;
use countersign::operations::expire;
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn f37_the_databases_own_clock_decides_nothing() {
    const FIVE_MINUTES: Duration = Duration::from_secs(300);
    let real = Clock::System.now();
    for now in [real.before(FIVE_MINUTES), real, real.after(FIVE_MINUTES)] {
        for (millis, in_time) in [(-1_i64, true), (0, false), (1, false), (999, false)] {
            let clock = Clock::manual(now);
            let app = TestApp::with(|config| config.clock = clock.clone()).await;
            let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 5, "pm_sandbox_ok")).await;
            let offered = app.caller(SUPPORT).refund("r", &refund(&order, "101.00", "USD")).await.json();
            let id = app.shopper().proposed("k", &mugs()).await;
            clock.advance(Duration::from_millis(u64::try_from(900_000 + millis).unwrap()));
            let confirmed = app.shopper().confirm(&id).await;
            let refunded = app.caller(SUPPORT).confirm_refund(offered["confirmation_id"].as_str().unwrap()).await;
            for got in [confirmed, refunded] {
                match in_time {
                    true => assert_eq!(got.status, 200, "{millis} ms: {}", got.text()),
                    false => drop(got.assert_problem(410, "confirmation_expired")),
                }
            }
            let once_more = i64::from(in_time);
            assert_eq!((app.charges(), app.given_back().0), (1 + once_more, once_more));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f39_the_expiry_of_an_old_attempt_leaves_the_order_of_a_newer_one_alone() {
    let app = TestApp::start().await;
    let old = app.shopper().proposed("k1", &mugs()).await;
    app.clock.advance(Duration::from_secs(60));
    let new = app.shopper().proposed("k2", &mugs()).await;
    let order = app.shopper().confirm(&new).await.json()["order_id"].clone();
    app.clock.advance(TTL);
    expire::expire_due(&app.context).await.unwrap();
    app.shopper().confirm(&old).await.assert_problem(410, "confirmation_expired");
    let order = app.shopper().get(&format!("/orders/{}", order.as_str().unwrap())).await.json();
    assert_eq!(order["status"], "confirmed");
    assert_eq!(app.number("SELECT stock * 1000 + held AS n FROM products WHERE product_id = 'MUG-BLUE'"), 118_000);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f39_an_attempt_that_is_decided_late_and_the_order_of_a_newer_one_leave_each_other_alone() {
    let app = TestApp::start().await;
    let old = app.shopper().proposed("k1", &cart("MUG-BLUE", 1, "pm_sandbox_timeout_before_charge")).await;
    app.shopper().confirm(&old).await.assert_problem(503, "outcome_unknown");
    let elsewhere = with(cart("MUG-BLUE", 2, "pm_sandbox_ok"), "/shipping_address/line1", json!("2 Market Street"));
    let newer = app.shopper().ordered("k2", &elsewhere).await;
    let order = app.shopper().get(&format!("/orders/{newer}")).await;
    app.clock.advance(2 * TTL);
    assert_eq!(expire::expire_due(&app.context).await.unwrap(), 0, "what is asked of the provider doesn't expire");
    let late = app.shopper().confirm(&old).await;
    assert_eq!(late.status, 200, "{}", late.text());
    assert_ne!(late.json()["order_id"], newer);
    assert_eq!(app.shopper().get(&format!("/orders/{newer}")).await.body, order.body);
    assert_eq!(app.number("SELECT stock * 1000 + held AS n FROM products WHERE product_id = 'MUG-BLUE'"), 117_000);
    assert_eq!(app.charges(), 2);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f43_each_state_says_what_can_be_done_next() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let path = format!("/confirmations/{id}");
    let shown = app.shopper().get(&path).await.json();
    assert_eq!(shown["next"], json!({"confirm": format!("/confirm-checkout/{id}"), "cancel": path}));
    app.clock.advance(TTL);
    let shown = app.shopper().get(&path).await.json();
    assert_eq!((&shown["status"], &shown["next"]), (&json!("expired"), &json!({"propose": "/checkout"})));
    assert_eq!(shown["order_id"], Value::Null);

    for (method, status) in [("pm_sandbox_declined", "declined"), ("pm_sandbox_timeout_before_charge", "committing")] {
        let id = app.shopper().proposed(method, &cart("MUG-BLUE", 1, method)).await;
        app.shopper().confirm(&id).await;
        let shown = app.shopper().get(&format!("/confirmations/{id}")).await.json();
        assert_eq!(shown["status"], status);
        let next = match status {
            "declined" => json!({"propose": "/checkout"}),
            _ => json!({"confirm": format!("/confirm-checkout/{id}")}),
        };
        assert_eq!(shown["next"], next);
    }

    for status in ["cancelled", "confirmed"] {
        let id = app.shopper().proposed(status, &cart("MUG-TRAVEL", 1, "pm_sandbox_ok")).await;
        let path = format!("/confirmations/{id}");
        let next = match status {
            "cancelled" => {
                assert_eq!(app.shopper().delete(&path).await.status, 204);
                json!({"propose": "/checkout"})
            }
            _ => {
                json!({"order": format!("/orders/{}", app.shopper().confirm(&id).await.json()["order_id"].as_str().unwrap())})
            }
        };
        let shown = app.shopper().get(&path).await.json();
        assert_eq!((&shown["status"], &shown["next"]), (&json!(status), &next));
    }
}
