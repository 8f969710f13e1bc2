//! The process fails or is killed at each named point. A retry of the same call, and doing nothing but waiting, both
//! end in the one order.

use crate::process::{Process, database, ledger};
use crate::support::*;
use countersign::failpoints;
use reqwest::Method;
use serde_json::{Value, json};

/// The points that a confirm passes.
const CONFIRM: &[&str] = &[
    failpoints::BEFORE_CLAIM,
    failpoints::AFTER_PHASE_ONE,
    failpoints::BEFORE_PROVIDER,
    failpoints::PROVIDER_ACTED,
    failpoints::PROVIDER_ANSWERED,
    failpoints::BEFORE_PHASE_THREE_COMMIT,
    failpoints::AFTER_PHASE_THREE_COMMIT,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Retry,
    Wait,
}

/// The status of a request whose answer may never come.
async fn attempt(request: reqwest::RequestBuilder) -> Option<u16> {
    try_send(request).await.ok().map(|got| got.status)
}

async fn proposed(dir: &Home) -> String {
    let process = Process::start(dir, "", &[]);
    process.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_ok")).await
}

async fn settle(process: &Process, dir: &Home, id: &str, point: &str, then: Then) {
    // Before the claim nothing has happened yet: waiting alone can't buy anything.
    let begun = point != failpoints::BEFORE_CLAIM;
    if then == Then::Wait && begun {
        let orders = "SELECT count(*) AS n FROM orders";
        eventually("the worker makes the order", async || number(&database(dir), orders) == 1).await;
    }
    let confirm = async || process.shopper().confirm_keyed(id, "c").await;
    eventually("the retry settles", async || confirm().await.status == 200).await;
    let got = confirm().await;
    assert!(got.is_replay(), "{point}");
    confirm().await.assert_replay_of(&got);
    assert_eq!(number(&database(dir), "SELECT count(*) AS n FROM orders"), 1, "{point} {then:?}");
    assert_eq!(charges(&ledger(dir)), 1, "{point} {then:?}");
    assert_consistent(&database(dir), &ledger(dir));
}

async fn confirm_through(point: &str, action: &str, then: Then) {
    let dir = Home::new();
    let id = proposed(&dir).await;
    let mut process = Process::start(&dir, &format!("{point}=1*{action}"), &[]);
    let confirm = process.shopper().request(Method::POST, &format!("/confirm-checkout/{id}"));
    let seen = attempt(confirm.header("Idempotency-Key", "c")).await;
    if action == "return(abort)" {
        assert_eq!(seen, None, "{point}: the process is gone before it answers");
        process.kill();
        process = Process::start(&dir, "", &[]);
    } else {
        assert!(matches!(seen, Some(500 | 503)), "{point}: {seen:?}");
    }
    settle(&process, &dir, &id, point, then).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f21_f22_f26_aborted_at_each_point_of_a_confirm_a_retry_ends_in_the_one_order() {
    for point in CONFIRM {
        confirm_through(point, "return(abort)", Then::Retry).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f21_f22_f26_aborted_at_each_point_of_a_confirm_waiting_ends_in_the_one_order() {
    for point in CONFIRM {
        confirm_through(point, "return(abort)", Then::Wait).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f22_failing_at_each_point_of_a_confirm_ends_in_the_one_order() {
    for point in CONFIRM {
        confirm_through(point, "return", Then::Retry).await;
        confirm_through(point, "return", Then::Wait).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_aborted_between_effect_and_answer_a_proposal_is_made_once() {
    for point in [failpoints::BEFORE_CLAIM, failpoints::BEFORE_LOCAL_COMMIT] {
        for action in ["return", "return(abort)"] {
            let dir = Home::new();
            let mut process = Process::start(&dir, &format!("{point}=1*{action}"), &[]);
            let request = process.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", "k");
            let seen = attempt(request.json(&mugs())).await;
            assert_eq!(seen, (action == "return").then_some(500));
            assert_eq!(number(&database(&dir), "SELECT count(*) AS n FROM claims"), 0, "nothing is half done");
            if action != "return" {
                process.kill();
                process = Process::start(&dir, "", &[]);
            }
            let got = process.shopper().propose("k", &mugs()).await;
            assert_eq!((got.status, got.is_replay()), (201, false));
            process.shopper().propose("k", &mugs()).await.assert_replay_of(&got);
            assert_eq!(number(&database(&dir), "SELECT count(*) AS n FROM confirmations"), 1);
            assert_consistent(&database(&dir), &ledger(&dir));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_aborted_between_effect_and_answer_a_cancel_is_done_once() {
    let dir = Home::new();
    let id = proposed(&dir).await;
    let path = format!("/confirmations/{id}");
    let cancel = |process: &Process| process.shopper().request(Method::DELETE, &path).header("Idempotency-Key", "c");
    let mut process = Process::start(&dir, "before_local_commit=1*return(abort)", &[]);
    assert_eq!(attempt(cancel(&process)).await, None);
    process.kill();
    let process = Process::start(&dir, "", &[]);
    assert_eq!(process.shopper().get(&path).await.json()["status"], "pending");
    assert_eq!(send(cancel(&process)).await.status, 204);
    assert!(send(cancel(&process)).await.is_replay());
    assert_consistent(&database(&dir), &ledger(&dir));
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_aborted_between_effect_and_answer_a_batch_is_written_once() {
    for point in [failpoints::BEFORE_CLAIM, failpoints::BEFORE_LOCAL_COMMIT] {
        let dir = Home::new();
        let set = json!({"mode": "per_item", "updates": [
            {"product_id": "MUG-BLUE", "set": {"stock": 7}},
            {"product_id": "NO-SUCH", "set": {"stock": 7}},
        ]});
        let mut process = Process::start(&dir, &format!("{point}=1*return(abort)"), &[]);
        let update = process.caller(MERCHANT).request(Method::POST, "/products-batch-update");
        assert_eq!(attempt(update.header("Idempotency-Key", "k").json(&set)).await, None);
        process.kill();
        let changes = "SELECT count(*) AS n FROM stock_changes WHERE actor_id IS NOT NULL";
        assert_eq!(number(&database(&dir), changes), 0, "nothing is half done");
        let process = Process::start(&dir, "", &[]);
        let got = process.caller(MERCHANT).update("k", &set).await;
        assert_eq!((got.status, got.is_replay()), (200, false));
        process.caller(MERCHANT).update("k", &set).await.assert_replay_of(&got);
        assert_eq!(number(&database(&dir), changes), 1);
        assert_consistent(&database(&dir), &ledger(&dir));
    }
}

/// A refund in one step, or the confirm of one that was offered: its path and body.
async fn refund_call(process: &Process, steps: u8) -> (String, Option<Value>) {
    let order = process.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let asked = refund(&order, if steps == 1 { "20.00" } else { "200.00" }, "USD");
    if steps == 1 {
        return ("/refunds".to_owned(), Some(asked));
    }
    let offered = process.caller(SUPPORT).refund("offer", &asked).await.json();
    (format!("/confirm-refund/{}", offered["confirmation_id"].as_str().unwrap()), None)
}

async fn refund_through(point: &str, action: &str, steps: u8, then: Then) {
    let dir = Home::new();
    let (path, body) = refund_call(&Process::start(&dir, "", &[]), steps).await;
    let ask = |process: &Process| {
        let request = process.caller(SUPPORT).request(Method::POST, &path).header("Idempotency-Key", "r");
        body.as_ref().map_or_else(|| request.try_clone().unwrap(), |body| request.try_clone().unwrap().json(body))
    };
    let mut process = Process::start(&dir, &format!("{point}=1*{action}"), &[]);
    let seen = attempt(ask(&process)).await;
    if action == "return(abort)" {
        assert_eq!(seen, None, "{point}: the process is gone before it answers");
        process.kill();
        process = Process::start(&dir, "", &[]);
    } else {
        assert!(matches!(seen, Some(500 | 503)), "{point}: {seen:?}");
    }
    // Before the claim nothing has happened yet: waiting alone can't give anything back.
    if then == Then::Wait && point != failpoints::BEFORE_CLAIM {
        let succeeded = "SELECT count(*) AS n FROM refunds WHERE status = 'succeeded'";
        eventually("the worker settles it", async || number(&database(&dir), succeeded) == 1).await;
    }
    let expected = if steps == 1 { 201 } else { 200 };
    eventually("the retry settles", async || send(ask(&process)).await.status == expected).await;
    let got = send(ask(&process)).await;
    assert!(got.is_replay(), "{point}");
    send(ask(&process)).await.assert_replay_of(&got);
    assert_eq!(number(&database(&dir), "SELECT count(*) AS n FROM refunds"), 1, "{point} {then:?}");
    let given_back = "SELECT count(*) AS n FROM ledger WHERE refund_of IS NOT NULL AND outcome = 'succeeded'";
    assert_eq!(number(&ledger(&dir), given_back), 1, "{point} {then:?}");
    assert_consistent(&database(&dir), &ledger(&dir));
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f21_f22_f26_aborted_at_each_point_of_a_refund_it_is_made_once() {
    for point in CONFIRM {
        refund_through(point, "return(abort)", 1, Then::Retry).await;
        refund_through(point, "return(abort)", 1, Then::Wait).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f21_f22_f26_aborted_at_each_point_of_a_confirmed_refund_it_is_made_once() {
    for point in CONFIRM {
        refund_through(point, "return(abort)", 2, Then::Retry).await;
        refund_through(point, "return(abort)", 2, Then::Wait).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f22_failing_at_each_point_of_a_refund_it_is_made_once() {
    for point in CONFIRM {
        refund_through(point, "return", 1, Then::Retry).await;
        refund_through(point, "return", 2, Then::Wait).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f20_f26_an_instance_dies_in_each_phase_and_another_finishes_its_work() {
    for point in CONFIRM.iter().filter(|point| **point != failpoints::BEFORE_CLAIM) {
        let dir = Home::new();
        let id = proposed(&dir).await;
        let survivor = Process::start(&dir, "", &[]);
        let mut dying = Process::start(&dir, &format!("{point}=1*return(abort)"), &[]);
        let confirm = dying.shopper().request(Method::POST, &format!("/confirm-checkout/{id}"));
        assert_eq!(attempt(confirm.header("Idempotency-Key", "c")).await, None, "{point}");
        dying.kill();
        settle(&survivor, &dir, &id, point, Then::Wait).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f26_killed_while_the_provider_thinks_the_charge_is_found_again() {
    let dir = Home::new();
    let mut process =
        Process::start(&dir, "", &["--sandbox-delay", "10s", "--provider-timeout", "20s", "--lease", "40s"]);
    let id = process.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    let confirm = process.shopper().request(Method::POST, &format!("/confirm-checkout/{id}"));
    let hanging = tokio::spawn(confirm.header("Idempotency-Key", "c").send());
    eventually("the charge is booked", async || charges(&ledger(&dir)) == 1).await;
    process.kill();
    assert!(hanging.await.unwrap().is_err());
    batch(&database(&dir), "UPDATE payments SET lease_until = created_at, recover_at = created_at");
    let process = Process::start(&dir, "", &[]);
    settle(&process, &dir, &id, "slow", Then::Wait).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f21_a_call_that_wakes_after_its_lease_ended_sends_nothing() {
    let dir = Home::new();
    let id = proposed(&dir).await;
    let process = Process::start(&dir, "before_provider=1*sleep(2500)", &[]);
    let late = process.shopper().confirm_keyed(&id, "c").await;
    assert_eq!(late.status, 200, "it reads what the worker wrote meanwhile: {}", late.text());
    process.shopper().confirm_keyed(&id, "c").await.assert_replay_of(&late);
    assert_eq!(number(&ledger(&dir), "SELECT sum(count) AS n FROM attempts"), 1);
    assert_consistent(&database(&dir), &ledger(&dir));
}

#[test]
fn every_failpoint_is_listed_for_a_test() {
    for point in failpoints::ALL {
        assert!(CONFIRM.contains(point) || *point == failpoints::BEFORE_LOCAL_COMMIT, "{point}");
    }
}
