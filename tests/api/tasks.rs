//! What became of a key, and what a task did.

use crate::support::*;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;

const TASK: &str = "task/1";

async fn status(caller: Caller<'_>, key: &str) -> Got {
    send(caller.request(Method::GET, "/operation-status").header("Idempotency-Key", key)).await
}

fn of_task(request: RequestBuilder) -> RequestBuilder {
    request.header("Agent-Task-Id", TASK)
}

async fn task(caller: Caller<'_>) -> Value {
    let got = caller.get("/tasks/task%2F1").await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(got.json()["task_id"], TASK);
    got.json()["operations"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_key_shows_the_stored_answer_and_runs_nothing() {
    let app = TestApp::start().await;
    let shopper = app.shopper();
    status(shopper, "k").await.assert_problem(404, "not_found");
    let propose = of_task(shopper.request(Method::POST, "/checkout")).header("Idempotency-Key", "k").json(&mugs());
    let first = send(propose).await;
    app.clock.advance(Duration::from_secs(60));
    let got = status(shopper, "\"k\"").await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(got.header("Idempotency-Key"), Some("k"));
    let body = got.json();
    assert_eq!((&body["operation_id"], &body["status"]), (&json!("propose_checkout"), &json!("completed")));
    assert_eq!((&body["http_status"], &body["response"]), (&json!(201), &first.json()));
    assert_eq!(body["resource"].as_str(), first.header("Location"));
    assert_eq!((&body["first_seen_at"], &body["task_id"]), (&json!("2026-12-01T09:30:00.000Z"), &json!(TASK)));

    let refused = shopper.propose("refused", &cart("LAST-ONE", 2, "pm_sandbox_ok")).await;
    let body = status(shopper, "refused").await.json();
    assert_eq!((&body["http_status"], &body["response"]), (&json!(409), &refused.json()));

    let id = first.json()["confirmation_id"].as_str().unwrap().to_owned();
    let cancel = shopper.request(Method::DELETE, &format!("/confirmations/{id}")).header("Idempotency-Key", "cancel");
    assert_eq!(send(cancel).await.status, 204);
    let body = status(shopper, "cancel").await.json();
    assert_eq!((&body["http_status"], &body["response"]), (&json!(204), &Value::Null));
    shopper.propose("bad", &json!({})).await.assert_problem(400, "malformed_request");
    status(shopper, "bad").await.assert_problem(404, "not_found");
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_to_look_up_is_demanded_and_checked() {
    let app = TestApp::start().await;
    app.shopper().get("/operation-status").await.assert_problem(400, "idempotency_key_required");
    status(app.shopper(), "\"").await.assert_problem(400, "idempotency_key_invalid");
    let twice = app.shopper().request(Method::GET, "/operation-status").header("Idempotency-Key", "a");
    send(twice.header("Idempotency-Key", "b")).await.assert_problem(400, "idempotency_key_invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn f47_a_confirms_key_is_in_flight_then_unknown_then_completed() {
    let app = TestApp::start().await;
    let shopper = app.shopper();
    let id = shopper.proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_timeout_after_charge")).await;
    let (got, seen) = tokio::join!(shopper.confirm_keyed(&id, "c"), async {
        let (mut seen, path) = (Value::Null, &id);
        eventually("the confirm has begun", async || {
            let got = status(shopper, "c").await;
            seen = if got.status == 200 { got.json() } else { Value::Null };
            seen["status"] == "in_flight"
        })
        .await;
        assert_eq!(seen["resource"], format!("/confirmations/{path}"));
        seen
    });
    got.assert_problem(503, "outcome_unknown");
    assert!(seen["response"].is_null() && seen["http_status"].is_null());
    assert_eq!(status(shopper, "c").await.json()["status"], "unknown");
    let settled = shopper.confirm_keyed(&id, "c").await;
    let body = status(shopper, "c").await.json();
    assert_eq!(
        (&body["status"], &body["http_status"], &body["response"]),
        (&json!("completed"), &json!(200), &settled.json())
    );
    assert_eq!(body["resource"], format!("/orders/{}", settled.json()["order_id"].as_str().unwrap()));
    app.clock.advance(30 * DAY);
    assert_eq!(status(shopper, "c").await.json()["status"], "completed", "as long as the order exists");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_its_actors_and_needs_the_scope_of_its_operation() {
    let app = TestApp::start().await;
    app.shopper().proposed("k", &mugs()).await;
    for other in [SECOND, STRANGER, READONLY] {
        status(app.caller(other), "k").await.assert_problem(404, "not_found");
    }
    app.execute("UPDATE actors SET scopes = 'orders:read' WHERE name = 'shopper'");
    let problem = status(app.shopper(), "k").await.assert_problem(403, "insufficient_scope");
    assert!(problem["detail"].as_str().unwrap().contains("checkout:propose"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_key_is_410_where_money_was_meant_and_404_elsewhere() {
    let app = TestApp::start().await;
    let first = app.shopper().propose("k", &mugs()).await;
    let set = json!({"mode": "atomic", "updates": [{"product_id": "MUG-BLUE", "set": {"stock": 50}}]});
    app.caller(MERCHANT).update("k", &set).await;
    app.clock.advance(8 * DAY);
    let problem = status(app.shopper(), "k").await.assert_problem(410, "idempotency_key_expired");
    assert_eq!(problem["resource"].as_str(), first.header("Location"));
    status(app.caller(MERCHANT), "k").await.assert_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_shows_what_its_calls_came_to_by_operation() {
    let app = TestApp::start().await;
    let shopper = app.shopper();
    shopper.get("/tasks/task%2F1").await.assert_problem(404, "not_found");
    let propose = |key: &'static str, cart: Value| {
        send(of_task(shopper.request(Method::POST, "/checkout")).header("Idempotency-Key", key).json(&cart))
    };
    let slow = cart("MUG-BLUE", 1, "pm_sandbox_error_after_charge");
    let id = propose("k", slow.clone()).await.json()["confirmation_id"].as_str().unwrap().to_owned();
    for _ in 0..3 {
        assert!(propose("k", slow.clone()).await.is_replay());
    }
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(propose("k2", cart("LAST-ONE", 2, "pm_sandbox_ok")).await.status, 409);
    assert_eq!(propose("k3", json!({})).await.status, 400);
    let confirm = || send(of_task(shopper.request(Method::POST, &format!("/confirm-checkout/{id}"))));
    assert_eq!(confirm().await.status, 503);
    let counts = |calls, keys, executed, replayed, refused, in_flight, outcome: &str, id: &str, at: &str| {
        json!({"operation_id": id, "calls": calls, "keys": keys, "executed": executed, "replayed": replayed,
               "refused": refused, "failed": 0, "in_flight": in_flight, "last_outcome": outcome, "last_at": at})
    };
    let proposals = counts(6, 3, 1, 3, 2, 0, "refused", "propose_checkout", "2026-12-01T09:30:01.000Z");
    let unknown = counts(1, 1, 0, 0, 0, 1, "in_flight", "confirm_checkout", "2026-12-01T09:30:01.000Z");
    assert_eq!(task(shopper).await, json!([proposals, unknown]));
    assert_eq!(confirm().await.status, 200);
    assert_eq!(confirm().await.status, 200);
    let confirms = counts(3, 1, 1, 1, 0, 0, "replayed", "confirm_checkout", "2026-12-01T09:30:01.000Z");
    assert_eq!(task(shopper).await, json!([proposals, confirms]));

    // The same when it is written down, half written down, and read by a server that starts later.
    app.context.tally.flush(&app.context.store).await.unwrap();
    assert_eq!(task(shopper).await, json!([proposals, confirms]));
    assert!(confirm().await.is_replay());
    let confirms = counts(4, 1, 1, 2, 0, 0, "replayed", "confirm_checkout", "2026-12-01T09:30:01.000Z");
    assert_eq!(task(shopper).await, json!([proposals, confirms]));
    app.context.tally.flush(&app.context.store).await.unwrap();
    assert_eq!(app.number("SELECT sum(calls) AS n FROM task_calls"), 10);

    app.caller(SECOND).get("/tasks/task%2F1").await.assert_problem(404, "not_found");
    shopper.proposed("without-a-task", &mugs()).await;
    assert_eq!(task(shopper).await, json!([proposals, confirms]));
    app.clock.advance(8 * DAY);
    countersign::operations::forget::forget_due(&app.context).await.unwrap();
    shopper.get("/tasks/task%2F1").await.assert_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_a_replay_writes_nothing_before_the_worker_does() {
    let app = TestApp::start().await;
    let propose = || {
        let request = app.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", "k").json(&mugs());
        send(of_task(request))
    };
    propose().await;
    let before = app.dump();
    for _ in 0..5 {
        assert!(propose().await.is_replay());
    }
    assert_eq!(app.dump(), before);
    assert_eq!(task(app.shopper()).await[0]["replayed"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_count_is_seen_twice_or_missed_while_counts_are_written_down() {
    let app = TestApp::with(|config| config.settings.worker_interval = Duration::from_millis(1)).await;
    app.shopper().proposed("k", &mugs()).await;
    for n in 1..=100 {
        let request = app.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", "k").json(&mugs());
        assert!(send(of_task(request)).await.is_replay());
        assert_eq!(task(app.shopper()).await[0]["replayed"], n);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_an_id_is_counted_as_one_subject_and_a_call_without_its_scope_is_counted_too() {
    let app = TestApp::start().await;
    for id in ["x".repeat(5_000), "a%00b".into(), "%C3%A9".into()] {
        let cancel = app.shopper().request(Method::DELETE, &format!("/confirmations/{id}"));
        assert_eq!(send(of_task(cancel)).await.status, 404);
    }
    let propose = || of_task(app.shopper().request(Method::POST, "/checkout")).json(&mugs());
    send(propose()).await.assert_problem(400, "idempotency_key_required");
    app.execute("UPDATE actors SET scopes = 'catalog:read' WHERE name = 'shopper'");
    send(propose().header("Idempotency-Key", "k")).await.assert_problem(403, "insufficient_scope");
    let operations = task(app.shopper()).await;
    assert_eq!((&operations[0]["operation_id"], &operations[0]["refused"]), (&json!("propose_checkout"), &json!(2)));
    assert_eq!((&operations[1]["calls"], &operations[1]["keys"]), (&json!(3), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_that_are_written_down_late_do_not_hide_a_later_outcome() {
    let app = TestApp::start().await;
    let propose = || {
        let request = app.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", "k");
        send(of_task(request).json(&mugs()))
    };
    propose().await;
    app.context.tally.flush(&app.context.store).await.unwrap();
    // Another server has counted a later call meanwhile.
    app.execute(
        "UPDATE task_calls SET calls = 2, replayed = 1, last_outcome = 'replayed', last_at = '2026-12-02 00:00:00'",
    );
    propose().await;
    app.context.tally.flush(&app.context.store).await.unwrap();
    let operation = task(app.shopper()).await[0].clone();
    assert_eq!((&operation["calls"], &operation["last_at"]), (&json!(3), &json!("2026-12-02T00:00:00.000Z")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_looked_up_key_says_when_it_will_be_forgotten_and_what_it_was_about() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("k", &mugs()).await;
    let set = app.shopper().request(Method::PUT, &format!("/orders/{order}/shipping-address"));
    let first = send(set.header("Idempotency-Key", "a").json(&address("US"))).await;
    let got = status(app.shopper(), "a").await;
    assert_eq!(got.header("Idempotency-Key-Expires"), first.header("Idempotency-Key-Expires"));
    assert_eq!(got.header("Idempotency-Key-Expires"), Some("2026-12-02T09:30:00.000Z"));
    assert_eq!(got.json()["resource"], format!("/orders/{order}"));
    let reused = app.shopper().propose("k", &cart("MUG-BLUE", 1, "pm_sandbox_ok")).await;
    reused.assert_problem(422, "idempotency_key_reused");
    assert_eq!(reused.header("Idempotency-Key-Expires"), Some("2026-12-08T09:30:00.000Z"));
}
