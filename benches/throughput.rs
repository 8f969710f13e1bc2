//! Propose + confirm over HTTP against the release binary: requests per second at 1, 32 and 128 clients, with group
//! commit and with one job a commit; start-up time and resident memory at idle. Compare the ratios within one run.
//!
//!     cargo bench --bench throughput

#![allow(clippy::expect_used, clippy::float_arithmetic)]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const RUN: Duration = Duration::from_secs(5);

struct Server {
    child: Child,
    url: String,
    started_in: Duration,
    _dir: tempfile::TempDir,
}

impl Server {
    async fn start(batch: &str) -> Self {
        let dir = tempfile::TempDir::new().expect("a folder");
        let begun = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["serve", "--demo", "--bind", "127.0.0.1:0", "--write-batch", batch, "--max-pending", "10000"])
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
        let url = url.trim_end_matches(',').to_owned();
        while reqwest::get(format!("{url}/readyz")).await.map(|r| r.status().as_u16()).unwrap_or(0) != 200 {}
        Self { child, url, started_in: begun.elapsed(), _dir: dir }
    }

    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A purchase: one proposal and one confirm. Every cart has an address of its own, so that none is a repeat.
async fn buy(http: &reqwest::Client, url: &str, n: usize) {
    let cart = json!({
        "items": [{"product_id": "GIFT-WRAP", "quantity": 1}],
        "shipping_address": {"name": "A", "line1": n.to_string(), "city": "C", "postal_code": "1", "country": "US"},
        "payment_method": "pm_sandbox_ok",
    });
    let post = |path: String| http.post(format!("{url}{path}")).bearer_auth("csk_demo_shopper");
    let proposed = post("/checkout".into()).header("Idempotency-Key", n.to_string()).json(&cart).send().await;
    let proposed: Value = proposed.expect("an answer").json().await.expect("JSON");
    let id = proposed["confirmation_id"].as_str().unwrap_or_else(|| panic!("{proposed}"));
    let confirmed = post(format!("/confirm-checkout/{id}")).send().await.expect("an answer");
    assert_eq!(confirmed.status(), 200);
}

/// Requests per second: two for each purchase.
async fn throughput(server: &Server, clients: usize) -> f64 {
    let http = reqwest::Client::new();
    let (next, url) = (Arc::new(AtomicUsize::new(clients * 1_000_000)), server.url.clone());
    let (begun, first) = (Instant::now(), clients * 1_000_000);
    let running = (0..clients).map(|_| {
        let (http, next, url) = (http.clone(), next.clone(), url.clone());
        tokio::spawn(async move {
            while begun.elapsed() < RUN {
                buy(&http, &url, next.fetch_add(1, Ordering::Relaxed)).await;
            }
        })
    });
    for client in running.collect::<Vec<_>>() {
        client.await.expect("a client");
    }
    let purchases = next.load(Ordering::Relaxed) - first;
    2.0 * purchases as f64 / begun.elapsed().as_secs_f64()
}

fn stock_up(server: &Server) {
    let database = server._dir.path().join("data/countersign.db");
    let mut conn =
        <diesel::SqliteConnection as diesel::Connection>::establish(&database.to_string_lossy()).expect("it");
    diesel::connection::SimpleConnection::batch_execute(
        &mut conn,
        "PRAGMA busy_timeout = 5000; UPDATE products SET stock = 100000000 WHERE product_id = 'GIFT-WRAP'",
    )
    .expect("more stock");
}

#[tokio::main]
async fn main() {
    let idle = Server::start("64").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("start-up until ready: {:.0?}; resident at idle: {} KiB", idle.started_in, idle.resident_kib());
    drop(idle);
    for clients in [1, 32, 128] {
        let mut measured = Vec::new();
        for batch in ["64", "1"] {
            let server = Server::start(batch).await;
            stock_up(&server);
            measured.push(throughput(&server, clients).await);
        }
        let [group, single] = measured[..] else { unreachable!("two batch sizes") };
        println!(
            "{clients:>4} clients: {group:>7.0} requests/s with group commit, {single:>7.0} with one job a commit, ratio {:.2}",
            group / single
        );
    }
}
