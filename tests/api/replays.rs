//! What a repeat is answered with, and when it is no repeat.

use crate::process::Process;
use crate::support::*;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// An actor that may do everything.
const ALL: &str = "csk_demo_all";

struct Call {
    method: Method,
    path: String,
    body: Option<Value>,
}

impl Call {
    fn new(method: Method, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, path: path.into(), body }
    }

    async fn send(&self, app: &TestApp, key: &str) -> Got {
        let request = app.caller(ALL).request(self.method.clone(), &self.path).header("Idempotency-Key", key);
        send(match &self.body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }
}

/// A call of each operation that takes a key, on things of its own.
async fn calls(app: &TestApp) -> Vec<Call> {
    let all = app.caller(ALL);
    let small = all.ordered("small-order", &cart("MUG-TRAVEL", 1, "pm_sandbox_ok")).await;
    let order = all.ordered("order", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let confirmed = all.proposed("to-confirm", &mugs()).await;
    let cancelled = all.proposed("to-cancel", &cart("SHIRT-M", 1, "pm_sandbox_ok")).await;
    let offered = all.refund("to-refund", &refund(&order, "101.00", "USD")).await.json();
    let stock = json!({"mode": "atomic", "updates": [{"product_id": "TEA-ASSAM", "set": {"stock": 7}}]});
    vec![
        Call::new(Method::POST, "/checkout", Some(mugs())),
        Call::new(Method::POST, format!("/confirm-checkout/{confirmed}"), None),
        Call::new(Method::DELETE, format!("/confirmations/{cancelled}"), None),
        Call::new(Method::POST, "/refunds", Some(refund(&small, "5.00", "USD"))),
        Call::new(Method::POST, format!("/confirm-refund/{}", offered["confirmation_id"].as_str().unwrap()), None),
        Call::new(Method::PUT, format!("/orders/{order}/shipping-address"), Some(address("US"))),
        Call::new(Method::POST, "/products-batch-update", Some(stock)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn f25_a_key_stands_for_one_call_whatever_the_route_and_the_method_of_the_other() {
    let app = TestApp::start().await;
    let calls = calls(&app).await;
    for (i, call) in calls.iter().enumerate() {
        let key = format!("key-{i}");
        let first = call.send(&app, &key).await;
        assert!(first.status < 300, "{} {}", call.path, first.text());
        let before = app.dump();
        for (_, other) in calls.iter().enumerate().filter(|(j, _)| *j != i) {
            let reused = other.send(&app, &key).await;
            let problem = reused.assert_problem(422, "idempotency_key_reused");
            assert_eq!(problem["recovery"], "fix_request", "{} after {}", other.path, call.path);
        }
        assert_eq!(app.dump(), before, "{}", call.path);
        call.send(&app, &key).await.assert_replay_of(&first);
    }
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f25_of_two_cancels_and_two_refunds_under_one_key_the_second_is_not_done() {
    let app = TestApp::start().await;
    let all = app.caller(ALL);
    let orders = [all.ordered("o1", &mugs()).await, all.ordered("o2", &cart("SHIRT-M", 1, "pm_sandbox_ok")).await];
    let pending = [all.proposed("p1", &mugs()).await, all.proposed("p2", &mugs()).await];
    let refunds =
        orders.each_ref().map(|order| Call::new(Method::POST, "/refunds", Some(refund(order, "5.00", "USD"))));
    let cancels = pending.each_ref().map(|id| Call::new(Method::DELETE, format!("/confirmations/{id}"), None));
    for (key, [a, b]) in [("r", refunds), ("c", cancels)] {
        assert!(a.send(&app, key).await.status < 300);
        b.send(&app, key).await.assert_problem(422, "idempotency_key_reused");
    }
    assert_eq!(all.get(&format!("/orders/{}", orders[1])).await.json()["status"], "confirmed");
    assert_eq!(all.get(&format!("/confirmations/{}", pending[1])).await.json()["status"], "pending");
    assert_eq!(app.given_back(), (1, 500));
    app.assert_consistent();
}

/// Its headers, without those that are each answer's own.
fn kept(got: &Got) -> BTreeMap<String, Vec<u8>> {
    let own = ["date", "x-request-id", "idempotent-replayed"];
    let headers = got.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    headers.filter(|(name, _)| !own.contains(&name.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn f44_a_replay_has_the_headers_of_the_first_answer_and_its_own_date_and_id() {
    let app = TestApp::start().await;
    let mut calls = calls(&app).await;
    let declined = app.caller(ALL).proposed("declined", &cart("MUG-BLUE", 1, "pm_sandbox_declined")).await;
    calls.push(Call::new(Method::POST, format!("/confirm-checkout/{declined}"), None));
    calls.push(Call::new(Method::POST, "/checkout", Some(cart("LAST-ONE", 2, "pm_sandbox_ok"))));
    let mut statuses = Vec::new();
    for (i, call) in calls.iter().enumerate() {
        let key = format!("key-{i}");
        let first = call.send(&app, &key).await;
        app.clock.advance(Duration::from_secs(1));
        let again = call.send(&app, &key).await;
        again.assert_replay_of(&first);
        assert_eq!(first.header("Idempotent-Replayed"), None);
        assert_eq!(kept(&again), kept(&first), "{}", call.path);
        assert_ne!(again.header("X-Request-Id"), first.header("X-Request-Id"));
        for got in [&first, &again] {
            assert!(got.header("Date").is_some());
            assert_eq!((got.header("Set-Cookie"), got.header("WWW-Authenticate")), (None, None));
        }
        statuses.push(first.status);
    }
    assert_eq!(statuses, [201, 200, 204, 201, 200, 200, 200, 402, 409]);
}

#[tokio::test(flavor = "multi_thread")]
async fn f47_another_amount_under_a_key_is_a_reuse_while_it_runs_when_it_is_unknown_and_when_it_is_done() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-BLUE", 2, "pm_sandbox_refund_timeout_before")).await;
    let (support, five, six) = (app.caller(SUPPORT), refund(&order, "5.00", "USD"), refund(&order, "6.00", "USD"));
    let reused = async || {
        let problem = support.refund("r", &six).await.assert_problem(422, "idempotency_key_reused");
        assert_eq!((&problem["recovery"], problem.get("retry_after_seconds")), (&json!("fix_request"), None));
    };
    let (unknown, ()) = tokio::join!(support.refund("r", &five), async {
        let sent = "SELECT count(*) AS n FROM payments WHERE refund_id IS NOT NULL";
        eventually("it is on its way", async || app.number(sent) == 1).await;
        support.refund("r", &five).await.assert_problem(409, "idempotency_in_flight");
        reused().await;
    });
    let problem = unknown.assert_problem(503, "outcome_unknown");
    assert_eq!(problem["recovery"], "retry_same_key");
    reused().await;
    let made = support.refund("r", &five).await;
    assert_eq!(made.status, 201);
    reused().await;
    support.refund("r", &five).await.assert_replay_of(&made);
    assert_eq!(app.given_back(), (1, 500));
}

#[tokio::test(flavor = "multi_thread")]
async fn f32_a_replay_and_a_call_without_the_right_have_lines_of_their_own_in_the_log() {
    let home = Home::new();
    let mut process = Process::start(&home, &[]);
    let first = process.shopper().propose("secret-key", &mugs()).await;
    process.shopper().propose("secret-key", &mugs()).await.assert_replay_of(&first);
    batch(&home.database, "UPDATE actors SET scopes = 'catalog:read' WHERE name = 'shopper'");
    process.shopper().propose("secret-key", &mugs()).await.assert_problem(403, "insufficient_scope");
    assert!(process.terminate().success());
    let log = process.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("operation=\"propose_checkout\"")).collect();
    for (line, outcome) in lines.iter().zip(["executed", "replayed", "refused"]) {
        assert!(line.contains(&format!("outcome=\"{outcome}\"")) && line.contains("actor=\"act_"), "{line}");
    }
    assert_eq!(lines.len(), 3, "{log}");
    for secret in [SHOPPER, "secret-key", "Ada Lovelace", "Market Street"] {
        assert!(!log.contains(secret), "{secret}");
    }
}
