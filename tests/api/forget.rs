//! Retention: the clock forgets answers; the sweeper only makes room.

use crate::support::*;
use countersign::effects::Retention;
use countersign::operations::forget;
use futures_util::future::join_all;
use serde_json::json;
use std::time::Duration;

const SECOND_LONG: Duration = Duration::from_secs(1);

async fn short_memory() -> TestApp {
    TestApp::with(|config| config.settings.retention = Retention { money: SECOND_LONG, other: SECOND_LONG }).await
}

fn set_stock(stock: i64) -> serde_json::Value {
    json!({"mode": "atomic", "updates": [{"product_id": "TEA-ASSAM", "set": {"stock": stock}}]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_retry_of_a_proposal_is_410_before_and_after_the_sweep_and_never_new_work() {
    let app = short_memory().await;
    let first = app.shopper().propose("k", &mugs()).await;
    app.shopper()
        .propose("refused", &cart("LAST-ONE", 2, "pm_sandbox_ok"))
        .await
        .assert_problem(409, "insufficient_stock");
    app.clock.advance(Duration::from_millis(999));
    app.shopper().propose("k", &mugs()).await.assert_replay_of(&first);
    app.clock.advance(Duration::from_millis(1));
    for sweep in ["before", "after"] {
        let problem = app.shopper().propose("k", &mugs()).await.assert_problem(410, "idempotency_key_expired");
        assert_eq!(problem["resource"].as_str(), first.header("Location"), "{sweep} the sweep");
        let refused = app.shopper().propose("refused", &cart("LAST-ONE", 2, "pm_sandbox_ok")).await;
        refused.assert_problem(410, "idempotency_key_expired");
        let other = cart("MUG-BLUE", 1, "pm_sandbox_ok");
        app.shopper().propose("k", &other).await.assert_problem(422, "idempotency_key_reused");
        if sweep == "before" {
            assert_eq!(forget::forget_due(&app.context).await.unwrap(), 2);
        }
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM claims WHERE answer_body IS NULL AND fingerprint <> ''"), 2);
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
    assert_eq!(forget::forget_due(&app.context).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_retry_of_a_catalogue_update_is_new_work_before_and_after_the_sweep() {
    let app = short_memory().await;
    let merchant = app.caller(MERCHANT);
    for stock in [7, 8] {
        assert_eq!(merchant.update("k", &set_stock(stock)).await.json()["results"][0]["status"], "updated");
        app.clock.advance(SECOND_LONG);
    }
    assert_eq!(forget::forget_due(&app.context).await.unwrap(), 1);
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 0, "other keys keep nothing");
    let again = merchant.update("k", &set_stock(7)).await;
    assert_eq!((again.is_replay(), &again.json()["results"][0]["status"]), (false, &json!("updated")));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirms_answer_outlives_its_key() {
    let app = short_memory().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let first = app.shopper().confirm_keyed(&id, "c").await;
    app.clock.advance(10 * DAY);
    forget::forget_due(&app.context).await.unwrap();
    app.shopper().confirm_keyed(&id, "c").await.assert_replay_of(&first);
}

#[tokio::test(flavor = "multi_thread")]
async fn f50_the_sweeper_forgets_more_than_a_batch_and_leaves_what_is_not_due() {
    let app = TestApp::start().await;
    app.shopper().propose("k", &mugs()).await;
    app.caller(MERCHANT).update("kept", &set_stock(1)).await;
    app.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 950) \
         INSERT INTO claims SELECT actor_id, 'old' || i, operation, fingerprint, fingerprint_version, task_id, resource, \
         created_at, '2026-11-30 00:00:00', answer_status, answer_body, answer_location \
         FROM claims, n WHERE idempotency_key IN ('kept', 'k')",
    );
    let before = app.number("SELECT count(*) AS n FROM claims");
    assert_eq!(before, 2 + 2 * 950, "each actor has its own");
    let keys: Vec<String> = (0..20).map(|i| format!("meanwhile{i}")).collect();
    let cart = mugs();
    let writers = join_all(keys.iter().map(|key| app.shopper().propose(key, &cart)));
    let (forgotten, written) = tokio::join!(forget::forget_due(&app.context), writers);
    assert_eq!(forgotten.unwrap(), 2 * 950);
    for (key, written) in keys.iter().zip(&written) {
        assert_eq!(written.status, 201, "nobody waits too long behind it: {}", written.text());
        app.shopper().propose(key, &cart).await.assert_replay_of(written);
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 2 + 950 + 20, "money keys stay");
    assert_eq!(app.number("SELECT count(*) AS n FROM claims WHERE answer_body IS NOT NULL"), 2 + 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn f50_a_sweeper_in_a_loop_never_touches_what_is_running() {
    let app = TestApp::with(|config| {
        config.settings.retention = Retention { money: SECOND_LONG, other: SECOND_LONG };
        config.settings.worker_interval = Duration::from_millis(1);
        config.settings.provider_timeout = Duration::from_secs(10);
    })
    .await;
    let buyers = [SHOPPER, SECOND, STRANGER];
    let stories = buyers.map(|buyer| {
        let (app, caller) = (&app, app.caller(buyer));
        async move {
            let id = caller.proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
            let (first, ()) = tokio::join!(caller.confirm_keyed(&id, "c"), async {
                for _ in 0..10 {
                    app.clock.advance(SECOND_LONG / 5); // its key's time is over while it runs
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
            assert_eq!(first.status, 200, "{}", first.text());
            caller.confirm_keyed(&id, "c").await.assert_replay_of(&first);
        }
    });
    join_all(stories).await;
    assert_eq!(app.charges(), 3);
    app.assert_consistent();
}
