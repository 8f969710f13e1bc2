//! The process is killed in the middle and nobody asks again: the workers of the next one, or of another instance, finish
//! what was begun. What a retry does is in `matrix`.

use crate::matrix::PROVIDER;
use crate::process::{Process, database, ledger};
use crate::support::*;
use countersign::clock::Clock;
use countersign::failpoints::{AFTER_PHASE_ONE, BEFORE_PROVIDER};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// The points behind which something is written that has to be finished.
fn begun() -> impl Iterator<Item = &'static str> {
    PROVIDER.iter().copied().skip_while(|point| *point != AFTER_PHASE_ONE)
}

/// A call whose money leaves the process.
struct Call {
    credential: &'static str,
    path: String,
    body: Option<Value>,
}

impl Call {
    fn to(&self, process: &Process) -> reqwest::RequestBuilder {
        let request =
            process.caller(self.credential).request(Method::POST, &self.path).header("Idempotency-Key", "last");
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

async fn confirm(process: &Process, key: &str) -> Call {
    let cart = with(cart("MUG-BLUE", 1, "pm_sandbox_ok"), "/shipping_address/line1", json!(key));
    let id = process.shopper().proposed(key, &cart).await;
    Call { credential: SHOPPER, path: format!("/confirm-checkout/{id}"), body: None }
}

async fn refund_in_one_step(process: &Process, key: &str) -> Call {
    let order = process.shopper().ordered(key, &cart("MUG-TRAVEL", 1, "pm_sandbox_ok")).await;
    Call { credential: SUPPORT, path: "/refunds".to_owned(), body: Some(refund(&order, "20.00", "USD")) }
}

async fn refund_in_two_steps(process: &Process, key: &str) -> Call {
    let order = process.shopper().ordered(key, &cart("MUG-TRAVEL", 5, "pm_sandbox_ok")).await;
    let offered = process.caller(SUPPORT).refund(key, &refund(&order, "101.00", "USD")).await.json();
    let id = offered["confirmation_id"].as_str().unwrap();
    Call { credential: SUPPORT, path: format!("/confirm-refund/{id}"), body: None }
}

/// Bookings that succeeded, and payments that are not decided.
fn money(home: &Home) -> (i64, i64) {
    let booked = number(&ledger(home), "SELECT count(*) AS n FROM ledger WHERE outcome = 'succeeded'");
    (booked, number(&database(home), "SELECT count(*) AS n FROM payments WHERE status = 'requested'"))
}

/// Kills one server in the middle of a call, and has another one finish it before anybody asks.
async fn killed(prepare: impl AsyncFn(&Process, &str) -> Call, expected: u16) {
    for point in begun() {
        let home = Home::new();
        let mut process = Process::start(&home, &[]);
        let call = prepare(&process, "first").await;
        let (before, _) = money(&home);
        process.control().arm(&format!("{point}=1*return(abort)"));
        assert!(try_send(call.to(&process)).await.is_err(), "{point}: the process is gone before it answers");
        process.kill();
        let process = Process::start(&home, &[]);
        eventually("the worker settles it", async || money(&home) == (before + 1, 0)).await;
        let got = send(call.to(&process)).await;
        assert_eq!((got.status, got.is_replay()), (expected, true), "{point}: {}", got.text());
        assert_eq!(money(&home), (before + 1, 0), "{point}");
        assert_consistent(&database(&home), &ledger(&home));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f21_f22_f26_aborted_at_each_point_of_a_confirm_waiting_ends_in_the_one_order() {
    killed(confirm, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f21_f22_f26_aborted_at_each_point_of_a_refund_waiting_gives_back_once() {
    killed(refund_in_one_step, 201).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f21_f22_f26_aborted_at_each_point_of_a_confirmed_refund_waiting_gives_back_once() {
    killed(refund_in_two_steps, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f20_f26_an_instance_dies_in_each_phase_and_another_finishes_its_work() {
    let home = Home::new();
    let survivor = Process::start(&home, &[]);
    for point in begun() {
        let mut dying = Process::start(&home, &[]);
        let call = confirm(&dying, point).await;
        let (before, _) = money(&home);
        dying.control().arm(&format!("{point}=1*return(abort)"));
        let request = dying.shopper().request(Method::POST, &call.path);
        assert!(try_send(request).await.is_err(), "{point}");
        dying.kill();
        eventually("the survivor settles it", async || money(&home) == (before + 1, 0)).await;
        let got = send(survivor.shopper().request(Method::POST, &call.path)).await;
        assert_eq!((got.status, got.is_replay()), (200, true), "{point}");
    }
    assert_consistent(&database(&home), &ledger(&home));
}

#[tokio::test(flavor = "multi_thread")]
async fn f26_killed_while_the_provider_thinks_the_charge_is_found_again() {
    let home = Home::new();
    let mut process = Process::start(&home, &["--sandbox-delay", "10s", "--provider-timeout", "20s", "--lease", "40s"]);
    let id = process.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    let path = format!("/confirm-checkout/{id}");
    let hanging = tokio::spawn(process.shopper().request(Method::POST, &path).send());
    eventually("the charge is booked", async || charges(&ledger(&home)) == 1).await;
    process.kill();
    assert!(hanging.await.unwrap().is_err());
    batch(&database(&home), "UPDATE payments SET lease_until = created_at, recover_at = created_at");
    let process = Process::start(&home, &[]);
    eventually("the worker settles it", async || money(&home) == (1, 0)).await;
    let got = process.shopper().confirm(&id).await;
    assert_eq!((got.status, got.is_replay()), (200, true));
    assert_consistent(&database(&home), &ledger(&home));
}

#[tokio::test(flavor = "multi_thread")]
async fn f38_what_expired_while_no_server_ran_is_free_when_one_starts() {
    let (home, now) = (Home::new(), Clock::System.now());
    let last = cart("LAST-ONE", 1, "pm_sandbox_ok");
    for worker_interval in ["1h", "100ms"] {
        let flags = ["--worker-interval", worker_interval];
        let mut process = Process::start_at(&home, now, &flags);
        process.shopper().proposed(worker_interval, &last).await;
        let refused = process.caller(SECOND).propose(worker_interval, &last).await;
        refused.assert_problem(409, "insufficient_stock");
        process.kill();
        let process = Process::start_at(&home, now.after(TTL), &flags);
        let id = process.caller(SECOND).proposed(&format!("{worker_interval}-later"), &last).await;
        assert_eq!(number(&database(&home), "SELECT sum(held) AS n FROM products"), 1);
        assert_eq!(process.caller(SECOND).delete(&format!("/confirmations/{id}")).await.status, 204);
    }
    assert_eq!(number(&database(&home), "SELECT count(*) AS n FROM confirmations WHERE status = 'expired'"), 2);
    assert_consistent(&database(&home), &ledger(&home));
}

#[tokio::test(flavor = "multi_thread")]
async fn f21_a_call_that_wakes_after_its_lease_ended_sends_nothing() {
    let (home, now) = (Home::new(), Clock::System.now());
    let process = Process::start_at(&home, now, &["--worker-interval", "1h"]);
    let id = process.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_ok")).await;
    process.control().arm(&format!("{BEFORE_PROVIDER}=1*return(hold)"));
    let late = tokio::spawn(send(process.shopper().request(Method::POST, &format!("/confirm-checkout/{id}"))));
    eventually("it stops before it sends", async || process.control().is_held()).await;
    process.control().set_clock(now.after(Duration::from_secs(2)));
    let settled = process.shopper().confirm(&id).await;
    assert_eq!((settled.status, settled.is_replay()), (200, false), "{}", settled.text());
    process.control().release();
    late.await.unwrap().assert_replay_of(&settled);
    assert_eq!(number(&ledger(&home), "SELECT sum(count) AS n FROM attempts"), 1);
}
