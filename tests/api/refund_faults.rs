//! What the provider does to a refund: declines, errors, silence, lateness. One refund at the end, and what was reserved
//! is neither lost nor spent twice.

use crate::support::*;
use countersign::operations::phases;
use countersign::store::payments;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// How a refund is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Steps {
    One,
    Two,
}

/// An order paid with this method, and a call that refunds 101.00 of it: directly, or by confirming it.
struct Story {
    app: TestApp,
    order: String,
    call: (String, Option<Value>),
}

impl Story {
    async fn begin(method: &str, steps: Steps, slow: Duration) -> Self {
        let app = TestApp::with(|config| {
            config.settings.provider_timeout = slow;
            if steps == Steps::One {
                config.settings.refunds.thresholds = countersign::domain::refund::Thresholds::parse("USD:900").unwrap();
            }
        })
        .await;
        let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, method)).await;
        let asked = refund(&order, "101.00", "USD");
        let call = match steps {
            Steps::One => ("/refunds".to_owned(), Some(asked)),
            Steps::Two => {
                let offered = app.caller(SUPPORT).refund("offer", &asked).await.json();
                (format!("/confirm-refund/{}", offered["confirmation_id"].as_str().unwrap()), None)
            }
        };
        Self { app, order, call }
    }

    async fn ask(&self) -> Got {
        let request = self.app.caller(SUPPORT).request(Method::POST, &self.call.0).header("Idempotency-Key", "r");
        send(match &self.call.1 {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    async fn order(&self) -> Value {
        self.app.caller(SUPPORT).get(&format!("/orders/{}", self.order)).await.json()
    }

    fn attempts(&self) -> i64 {
        number(
            &self.app.ledger(),
            "SELECT max(count) AS n FROM attempts JOIN ledger USING (provider_key) WHERE refund_of IS NOT NULL",
        )
    }

    /// Recovers every undecided payment, as the worker does, without waiting for its interval.
    async fn recover(&self) {
        let now = self.app.clock.now().after(365 * DAY);
        let due = self.app.context.store.read(move |db, _| Ok(payments::to_recover(db, now, 100)?)).await.unwrap();
        for id in due {
            let _ = phases::recover(&self.app.context, id, "recovery").await;
        }
    }
}

async fn one_refund_at_the_end(method: &str, attempts: i64) {
    for steps in [Steps::One, Steps::Two] {
        for recovered in [false, true] {
            let story = Story::begin(method, steps, Duration::from_millis(300)).await;
            let unknown = story.ask().await;
            unknown.assert_problem(503, "outcome_unknown");
            let open = story.order().await;
            assert_eq!(
                (&open["refunded"]["amount"], &open["refunds"][0]["status"]),
                (&json!("0.00"), &json!("pending"))
            );
            assert_eq!(open["remaining_refundable"], open["refunds"][0]["remaining_refundable"], "it is reserved");
            assert_ne!(open["remaining_refundable"], open["total"]);
            let status = story.app.caller(SUPPORT).request(Method::GET, "/operation-status");
            assert_eq!(send(status.header("Idempotency-Key", "r")).await.json()["status"], "unknown");
            if recovered {
                story.recover().await;
            }
            let got = story.ask().await;
            let expected = if steps == Steps::One { 201 } else { 200 };
            assert_eq!(got.status, expected, "{method} {steps:?}: {}", got.text());
            assert_eq!(got.is_replay(), recovered, "{method} {steps:?}");
            assert_eq!(got.header("Idempotency-Key-Expires"), unknown.header("Idempotency-Key-Expires"));
            story.ask().await.assert_replay_of(&got);
            assert_eq!(story.app.given_back(), (1, 10100), "{method} {steps:?}");
            assert_eq!(story.attempts(), attempts, "{method} {steps:?}");
            assert_eq!(story.order().await["refunded"]["amount"], "101.00");
            story.app.assert_consistent();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f42_a_time_out_before_the_refund_is_unknown_and_made_once_by_the_retry() {
    one_refund_at_the_end("pm_sandbox_refund_timeout_before", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f22_a_time_out_after_the_refund_is_found_and_not_sent_again() {
    one_refund_at_the_end("pm_sandbox_refund_timeout_after", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f30_an_error_before_the_refund_is_unknown_and_made_once_by_the_retry() {
    one_refund_at_the_end("pm_sandbox_refund_error_before", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f30_an_error_after_the_refund_is_found_and_not_sent_again() {
    one_refund_at_the_end("pm_sandbox_refund_error_after", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_arrives_late_is_sent_again_with_its_own_key_and_made_once() {
    one_refund_at_the_end("pm_sandbox_refund_arrives_late", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_refund_stays_readable_and_its_amount_is_free_again() {
    for steps in [Steps::One, Steps::Two] {
        let story = Story::begin("pm_sandbox_refund_declined", steps, Duration::from_secs(1)).await;
        let declined = story.ask().await;
        let problem = declined.assert_problem(402, "refund_declined");
        assert_eq!(
            (&problem["decline_reason"], &problem["recovery"]),
            (&json!("insufficient_funds"), &json!("ask_human"))
        );
        let order = story.order().await;
        assert_eq!(problem["remaining_refundable"], order["total"]);
        assert_eq!((&order["status"], &order["remaining_refundable"]), (&json!("confirmed"), &order["total"]));
        assert_eq!(order["refunds"][0]["status"], "declined");
        let id = problem["refund_id"].as_str().unwrap();
        let read = story.app.caller(SUPPORT).get(&format!("/refunds/{id}")).await.json();
        assert_eq!((&read["status"], &read["remaining_refundable"]), (&json!("declined"), &order["total"]));
        story.ask().await.assert_replay_of(&declined);
        // A declined one is nothing that a new one could look like.
        let dry =
            story.app.caller(SUPPORT).post("/refunds-dry-run", &refund(&story.order, "101.00", "USD")).await.json();
        assert_eq!(dry["similar"], json!([]));
        assert_eq!(story.app.given_back(), (0, 0));
        story.app.assert_consistent();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f02_f49_a_repeat_while_the_provider_thinks_is_told_to_wait() {
    for steps in [Steps::One, Steps::Two] {
        let story = Story::begin("pm_sandbox_refund_slow", steps, Duration::from_secs(10)).await;
        let (first, busy) = tokio::join!(story.ask(), async {
            let sent = "SELECT count(*) AS n FROM payments WHERE refund_id IS NOT NULL";
            eventually("it is on its way", async || story.app.number(sent) == 1).await;
            story.ask().await
        });
        assert!(first.status < 300, "{}", first.text());
        assert!(busy.is_replay() || busy.code() == "idempotency_in_flight", "{}", busy.text());
        story.ask().await.assert_replay_of(&first);
        assert_eq!(story.app.given_back(), (1, 10100));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f04_f23_no_way_round_an_unknown_refund() {
    let app = TestApp::with(|config| config.settings.provider_timeout = Duration::from_millis(300)).await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_refund_timeout_before")).await;
    let support = app.caller(SUPPORT);
    let ten = refund(&order, "10.00", "USD");
    support.refund("first", &ten).await.assert_problem(503, "outcome_unknown");
    let first = app.caller(SUPPORT).get(&format!("/orders/{order}")).await.json()["refunds"][0]["refund_id"].clone();

    // A fresh key gets a second look, whatever the clock says, and confirming it has to wait for the first.
    app.clock.advance(11 * Duration::from_secs(60));
    let offered = support.refund("second", &ten).await;
    assert_eq!((offered.status, &offered.json()["similar"]), (202, &json!([first])));
    let id = offered.json()["confirmation_id"].as_str().unwrap().to_owned();
    let problem = support.confirm_refund(&id).await.assert_problem(409, "attempt_pending");
    assert_eq!(problem["refund_id"], first);
    assert_eq!(support.get(&format!("/confirmations/{id}")).await.json()["status"], "pending");
    assert_eq!(app.given_back(), (0, 0));

    assert_eq!(support.refund("first", &ten).await.status, 201);
    let second = support.confirm_refund(&id).await;
    // The second refund of this charge is a first attempt too: its answer is lost as well.
    second.assert_problem(503, "outcome_unknown");
    assert_eq!(support.confirm_refund(&id).await.status, 200);
    assert_eq!(app.given_back(), (2, 2000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f04_f23_of_two_confirmed_lookalikes_the_second_waits_for_the_first() {
    let app = TestApp::with(|config| config.settings.provider_timeout = Duration::from_millis(300)).await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_refund_timeout_after")).await;
    let support = app.caller(SUPPORT);
    let large = refund(&order, "101.00", "USD");
    let offer =
        async |key: &str| support.refund(key, &large).await.json()["confirmation_id"].as_str().unwrap().to_owned();
    let (a, b) = (offer("a").await, offer("b").await);
    support.confirm_refund(&a).await.assert_problem(503, "outcome_unknown");
    support.confirm_refund(&b).await.assert_problem(409, "attempt_pending");
    assert_eq!(support.confirm_refund(&a).await.status, 200);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f42_too_old_to_be_sent_again_a_refund_waits_for_a_person() {
    let story = Story::begin("pm_sandbox_refund_timeout_before", Steps::One, Duration::from_millis(300)).await;
    story.ask().await.assert_problem(503, "outcome_unknown");
    story.app.clock.advance(DAY);
    story.ask().await.assert_problem(409, "payment_needs_review");
    let dry = story.app.caller(SUPPORT).post("/refunds-dry-run", &refund(&story.order, "101.00", "USD")).await.json();
    assert_eq!(dry["because"], json!(["looks_like"]), "undecided for however long");
    assert_eq!(story.app.given_back(), (0, 0));
    story.app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f50_an_undecided_refund_is_never_too_old_to_be_settled_by_its_own_key() {
    let app = TestApp::with(|config| {
        config.settings.provider_timeout = Duration::from_millis(300);
        config.settings.retention.money = Duration::from_secs(1);
    })
    .await;
    let order = app.shopper().ordered("o", &cart("MUG-BLUE", 1, "pm_sandbox_refund_timeout_before")).await;
    let one = refund(&order, "1.00", "USD");
    app.caller(SUPPORT).refund("r", &one).await.assert_problem(503, "outcome_unknown");
    app.clock.advance(Duration::from_secs(60));
    countersign::operations::forget::forget_due(&app.context).await.unwrap();
    let status = app.caller(SUPPORT).request(Method::GET, "/operation-status").header("Idempotency-Key", "r");
    assert_eq!(send(status).await.json()["status"], "unknown");
    assert_eq!(app.caller(SUPPORT).refund("r", &one).await.status, 201);
    app.caller(SUPPORT).refund("r", &one).await.assert_problem(410, "idempotency_key_expired");
    assert_eq!(app.given_back(), (1, 100));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_of_a_charge_that_the_provider_does_not_know_is_declined() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &mugs()).await;
    batch(&app.ledger(), "DELETE FROM ledger");
    let problem = app.caller(SUPPORT).refund("r", &refund(&order, "1.00", "USD")).await;
    assert_eq!(problem.assert_problem(402, "refund_declined")["decline_reason"], "charge_not_refundable");
}
