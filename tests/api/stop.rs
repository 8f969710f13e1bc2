//! A signal to stop, with something running.

use crate::process::{Process, database, ledger};
use crate::support::*;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;
use std::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn f48_stopped_under_load_it_finishes_what_runs_and_a_retry_finds_each_answer() {
    let home = Home::new();
    // With a grace that nobody would wait for: a stop that is held up by an idle connection fails the test.
    let flags = ["--sandbox-delay", "2s", "--provider-timeout", "20s", "--lease", "60s", "--shutdown-grace", "600s"];
    let mut process = Process::start(&home, &flags);
    let keys: Vec<String> = (0..20).map(|i| format!("k{i}")).collect();
    let carts = keys.iter().map(|key| {
        let cart = cart("MUG-BLUE", 1, "pm_sandbox_slow");
        with(cart, "/shipping_address/line1", json!(key))
    });
    let propose = keys.iter().zip(carts).map(async |(key, cart)| process.shopper().proposed(key, &cart).await);
    let ids = join_all(propose).await;
    let confirm = |process: &Process, id: &str, key: &str| {
        let request = process.shopper().request(Method::POST, &format!("/confirm-checkout/{id}"));
        request.header("Idempotency-Key", format!("c-{key}"))
    };
    let idle = TcpStream::connect(process.url.trim_start_matches("http://")).unwrap();
    let running: Vec<_> =
        ids.iter().zip(&keys).map(|(id, key)| tokio::spawn(try_send(confirm(&process, id, key)))).collect();
    let reading = process.shopper().request(Method::GET, "/products/MUG-BLUE");
    let reads = tokio::spawn(async move {
        while let Ok(got) = try_send(reading.try_clone().unwrap()).await {
            assert_eq!(got.status, 200);
        }
    });
    let begun = "SELECT count(*) AS n FROM payments";
    eventually("they are on their way", async || number(&database(&home), begun) == 20).await;
    assert!(tokio::task::block_in_place(|| process.terminate()).success());
    drop(idle);
    reads.await.unwrap();

    let answers = join_all(running).await;
    let process = Process::start(&home, &[]);
    for ((id, key), answer) in ids.iter().zip(&keys).zip(answers) {
        let first = answer.unwrap().expect("what runs is finished and answered");
        assert_eq!(first.status, 200, "{}", first.text());
        send(confirm(&process, id, key)).await.assert_replay_of(&first);
    }
    assert_eq!(charges(&ledger(&home)), 20);
    assert_eq!(number(&ledger(&home), "SELECT sum(count) AS n FROM attempts"), 20);
    assert_eq!(number(&database(&home), "SELECT count(*) AS n FROM payments WHERE status = 'requested'"), 0);
    assert_consistent(&database(&home), &ledger(&home));
}

#[tokio::test(flavor = "multi_thread")]
async fn f48_a_signal_to_stop_lets_what_runs_finish_and_closes_cleanly() {
    let dir = Home::new();
    let mut process = Process::start(&dir, &[]);
    let id = process.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    let slow = process.shopper().request(Method::POST, &format!("/confirm-checkout/{id}"));
    let slow = tokio::spawn(send(slow));
    let claimed = "SELECT count(*) AS n FROM payments";
    eventually("it is on its way", async || number(&database(&dir), claimed) == 1).await;
    assert!(process.terminate().success());
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(charges(&ledger(&dir)), 1);
    let log = std::fs::metadata(dir.path().join("data/countersign.db-wal")).map_or(0, |log| log.len());
    assert_eq!(log, 0, "on SQLite everything is in the database file itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn f48_a_stop_loses_no_count_of_a_task() {
    let dir = Home::new();
    let mut process = Process::start(&dir, &["--worker-interval", "1h"]);
    for _ in 0..3 {
        let propose = process.shopper().request(Method::POST, "/checkout").header("Idempotency-Key", "k");
        assert_eq!(send(propose.header("Agent-Task-Id", "t").json(&mugs())).await.status, 201);
    }
    assert!(process.terminate().success());
    let process = Process::start(&dir, &[]);
    let task = process.shopper().get("/tasks/t").await.json();
    assert_eq!((&task["operations"][0]["executed"], &task["operations"][0]["replayed"]), (&1.into(), &2.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn f48_a_stop_does_not_wait_longer_than_its_grace() {
    let dir = Home::new();
    let flags = ["--shutdown-grace", "1s", "--provider-timeout", "60s", "--lease", "120s"];
    let mut process = Process::start(&dir, &flags);
    let id = process.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_timeout_after_charge")).await;
    let hanging = tokio::spawn(process.shopper().request(Method::POST, &format!("/confirm-checkout/{id}")).send());
    eventually("it is charged", async || charges(&ledger(&dir)) == 1).await;
    assert!(process.terminate().success(), "well before the provider's time-out");
    let answer = hanging.await.unwrap().ok().map(|response| response.status().as_u16());
    assert!(matches!(answer, None | Some(503)), "nothing is said that isn't known: {answer:?}");
    batch(&database(&dir), "UPDATE payments SET lease_until = created_at");
    let process = Process::start(&dir, &[]);
    assert_eq!(process.shopper().confirm(&id).await.status, 200);
    assert_eq!(charges(&ledger(&dir)), 1);
}
