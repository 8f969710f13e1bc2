//! A stop in the middle of a crowd.

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
