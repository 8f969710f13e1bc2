//! The matrix: every operation that writes, disturbed at every point that it passes, in every way. Each cell is followed
//! by the same call with the same key until it is settled; then the effect is there once, a repeat is a replay to the
//! byte, and the books add up. With `COUNTERSIGN_MATRIX` naming a file, each cell's outcome is added to it.

use crate::process::Process;
use crate::support::*;
use countersign::domain::operation::Operation;
use countersign::domain::time::Timestamp;
use countersign::effects::{Effect, Reach};
use countersign::failpoints::*;
use reqwest::Method;
use serde_json::{Value, json};
use socket2::SockRef;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The points that an operation passes whose claim, effect and answer are one transaction.
const LOCAL: &[&str] = &[BEFORE_CLAIM, BEFORE_LOCAL_COMMIT, AFTER_LOCAL_COMMIT];
/// Those that it passes when money leaves the process.
pub const PROVIDER: &[&str] = &[
    BEFORE_CLAIM,
    BEFORE_PHASE_ONE_COMMIT,
    AFTER_PHASE_ONE,
    BEFORE_PROVIDER,
    PROVIDER_ACTED,
    PROVIDER_ANSWERED,
    BEFORE_PHASE_THREE_COMMIT,
    AFTER_PHASE_THREE_COMMIT,
];
/// Where whoever stops keeps others waiting: inside a transaction, or on a thread that serves connections.
const BLOCKING: &[&str] =
    &[BEFORE_CLAIM, BEFORE_LOCAL_COMMIT, AFTER_LOCAL_COMMIT, BEFORE_PHASE_ONE_COMMIT, BEFORE_PHASE_THREE_COMMIT];
/// More than the lease, and than what `Retry-After` asks for.
const PAST_THE_LEASE: Duration = Duration::from_secs(21);

#[derive(Clone, Copy, Debug)]
enum Disturbance {
    Abort,
    Panic,
    Error,
    ClientFin,
    ClientRst,
    /// Stops until its lease is over and somebody else has taken it.
    Stall,
}

impl Disturbance {
    const ALL: [Self; 6] = [Self::Abort, Self::Panic, Self::Error, Self::ClientFin, Self::ClientRst, Self::Stall];

    fn action(self) -> &'static str {
        match self {
            Self::Abort => "return(abort)",
            Self::Panic => "panic",
            Self::Error => "return",
            Self::ClientFin | Self::ClientRst | Self::Stall => "return(hold)",
        }
    }
}

/// The call that is disturbed, and what it comes to.
struct Call {
    credential: &'static str,
    method: Method,
    path: String,
    key: String,
    body: Option<Value>,
    status: u16,
}

/// One server for all cells of an operation; another one after each that ends it.
struct Bench {
    home: Home,
    now: Timestamp,
    process: Process,
    cells: usize,
}

impl Bench {
    async fn new() -> Self {
        let (home, now) = (Home::new(), Timestamp::from_unix_millis(1_796_117_400_000).unwrap());
        let process = Self::start(&home, now);
        let plenty = ["BOOK-ATLAS", "GIFT-WRAP"].map(|id| json!({"product_id": id, "set": {"stock": 100_000}}));
        let batch = json!({"mode": "atomic", "updates": plenty});
        assert_eq!(process.caller(MERCHANT).update("plenty", &batch).await.status, 200);
        Self { home, now, process, cells: 0 }
    }

    /// Nobody but the retry goes on with what was begun.
    fn start(home: &Home, now: Timestamp) -> Process {
        let flags = ["--worker-interval", "1h", "--max-pending", "1000", "--refund-lookalike-window", "0"];
        let patience = ["--provider-timeout", "10s", "--lease", "20s"];
        Process::start_at(home, now, &[&flags[..], &patience].concat())
    }

    fn restart(&mut self) {
        self.process.kill();
        self.process = Self::start(&self.home, self.now);
    }

    fn wait(&mut self, span: Duration) {
        self.now = self.now.after(span);
        self.process.control().set_clock(self.now);
    }

    async fn prepare(&mut self, operation: Operation) -> Call {
        self.cells += 1;
        let (shopper, n) = (self.process.shopper(), self.cells);
        let cart = with(cart("BOOK-ATLAS", 1, "pm_sandbox_ok"), "/shipping_address/line1", json!(format!("{n}")));
        let call = |credential, method, path: String, body, status| Call {
            credential,
            method,
            path,
            key: format!("key-{n}"),
            body,
            status,
        };
        match operation {
            Operation::ProposeCheckout => call(SHOPPER, Method::POST, "/checkout".into(), Some(cart), 201),
            Operation::ConfirmCheckout => {
                let id = shopper.proposed(&format!("offer-{n}"), &cart).await;
                call(SHOPPER, Method::POST, format!("/confirm-checkout/{id}"), None, 200)
            }
            Operation::CancelConfirmation => {
                let id = shopper.proposed(&format!("offer-{n}"), &cart).await;
                call(SHOPPER, Method::DELETE, format!("/confirmations/{id}"), None, 204)
            }
            Operation::IssueRefund => {
                let asked = refund(&self.order(n).await, "1.00", "USD");
                call(SUPPORT, Method::POST, "/refunds".into(), Some(asked), 201)
            }
            Operation::ConfirmRefund => {
                let asked = refund(&self.order(n).await, "100.01", "USD");
                let offered = self.process.caller(SUPPORT).refund(&format!("offer-{n}"), &asked).await.json();
                let path = format!("/confirm-refund/{}", offered["confirmation_id"].as_str().unwrap());
                call(SUPPORT, Method::POST, path, None, 200)
            }
            Operation::BatchUpdateProducts => {
                let set = json!([{"product_id": "MUG-BLUE", "set": {"stock": 1000 + n}}]);
                let batch = json!({"mode": "atomic", "updates": set});
                call(MERCHANT, Method::POST, "/products-batch-update".into(), Some(batch), 200)
            }
            Operation::SetShippingAddress => {
                let (path, to) = (format!("/orders/{}/shipping-address", self.order(n).await), address("US"));
                call(SHOPPER, Method::PUT, path, Some(with(to, "/line2", json!(format!("key-{n}")))), 200)
            }
            other => panic!("{other:?} isn't in the matrix"),
        }
    }

    async fn order(&self, n: usize) -> String {
        let mugs = cart("GIFT-WRAP", 90, "pm_sandbox_ok");
        self.process
            .shopper()
            .ordered(&format!("order-{n}"), &with(mugs, "/shipping_address/line1", json!(n.to_string())))
            .await
    }

    fn request(&self, call: &Call) -> reqwest::RequestBuilder {
        let request = self.process.caller(call.credential).request(call.method.clone(), &call.path);
        let request = request.header("Idempotency-Key", &call.key);
        match &call.body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    /// How often the operation has had its effect: in our books, and in the provider's.
    fn effects(&self, operation: Operation) -> (i64, i64) {
        let ours = match operation {
            Operation::ProposeCheckout => "confirmations",
            Operation::ConfirmCheckout => "orders",
            Operation::CancelConfirmation => "confirmations WHERE status = 'cancelled'",
            Operation::IssueRefund | Operation::ConfirmRefund => "refunds WHERE status = 'succeeded'",
            Operation::BatchUpdateProducts => "stock_changes WHERE actor_id IS NOT NULL",
            Operation::SetShippingAddress => "orders WHERE shipping_address LIKE '%key-%'",
            other => panic!("{other:?} isn't in the matrix"),
        };
        let count = |url, table: &str| number(url, &format!("SELECT count(*) AS n FROM {table}"));
        (count(&self.home.database, ours), count(&self.home.ledger, "ledger"))
    }

    async fn held(&self) {
        eventually("somebody stops at the point", async || self.process.control().is_held()).await;
    }

    async fn disturb(&mut self, call: &Call, point: &str, how: Disturbance) -> Result<(), String> {
        self.process.control().arm(&format!("{point}=1*{}", how.action()));
        let first = self.request(call);
        match how {
            Disturbance::Abort => {
                let answer = try_send(first).await;
                self.restart();
                answer.map_or(Ok(()), |got| Err(format!("the process outlived it: {}", got.status)))
            }
            Disturbance::Panic | Disturbance::Error => match try_send(first).await {
                Ok(got) if !matches!(got.status, 500 | 503) => Err(format!("answered {} {}", got.status, got.text())),
                Ok(_) | Err(_) => Ok(()),
            },
            Disturbance::ClientFin | Disturbance::ClientRst => {
                let stream = self.write(call);
                self.held().await;
                match how {
                    Disturbance::ClientRst => SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap(),
                    _ => stream.shutdown(Shutdown::Both).unwrap(),
                }
                drop(stream);
                self.process.control().release();
                Ok(())
            }
            Disturbance::Stall => {
                let first = tokio::spawn(send(first));
                self.held().await;
                self.wait(PAST_THE_LEASE);
                let second = tokio::spawn(send(self.request(call)));
                if BLOCKING.contains(&point) {
                    self.process.control().release();
                    return [first.await.unwrap(), second.await.unwrap()]
                        .iter()
                        .try_for_each(|got| Self::known(call, got));
                }
                let second = second.await.unwrap();
                self.process.control().release();
                let taken_over = second.status == call.status;
                if !taken_over {
                    return Err(format!("nobody took it over: {} {}", second.status, second.text()));
                }
                Self::known(call, &first.await.unwrap())
            }
        }
    }

    /// The answer, or a wait.
    fn known(call: &Call, got: &Got) -> Result<(), String> {
        let known = got.status == call.status || matches!(got.status, 409 | 503);
        if known { Ok(()) } else { Err(format!("answered {} {}", got.status, got.text())) }
    }

    /// Sends the call and leaves the answer on its way.
    fn write(&self, call: &Call) -> TcpStream {
        let mut stream = TcpStream::connect(self.process.url.trim_start_matches("http://")).unwrap();
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        let head = format!(
            "{} {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nIdempotency-Key: {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            call.method,
            call.path,
            call.credential,
            call.key,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    /// The same call until it has its answer. Everybody waits as long as they are told.
    async fn settle(&mut self, call: &Call) -> Result<Got, String> {
        let mut last = String::new();
        for _ in 0..20 {
            let got = send(self.request(call)).await;
            if got.status == call.status {
                return Ok(got);
            }
            last = format!("{} {}", got.status, got.text());
            self.wait(PAST_THE_LEASE);
        }
        Err(format!("never settled: {last}"))
    }

    async fn cell(&mut self, operation: Operation, point: &str, how: Disturbance) -> Result<(), String> {
        let call = self.prepare(operation).await;
        let before = self.effects(operation);
        self.disturb(&call, point, how).await?;
        let settled = self.settle(&call).await?;
        let again = send(self.request(&call)).await;
        if !again.is_replay() || (again.status, &again.body) != (settled.status, &settled.body) {
            return Err(format!("a repeat got {} {}", again.status, again.text()));
        }
        let asks_provider = operation.profile().reach == Reach::Provider;
        let expected = (before.0 + 1, before.1 + i64::from(asks_provider));
        let after = self.effects(operation);
        if after != expected {
            return Err(format!("{before:?} effects became {after:?}"));
        }
        let wrong = findings(&self.home.database, &self.home.ledger, self.now);
        if wrong.is_empty() { Ok(()) } else { Err(format!("{wrong:?}")) }
    }
}

async fn row(operation: Operation, points: &[&str]) {
    let mut bench = Bench::new().await;
    let database = if bench.home.is_postgres() { "PostgreSQL" } else { "SQLite" };
    let mut failed = Vec::new();
    for point in points {
        for how in Disturbance::ALL {
            let outcome = bench.cell(operation, point, how).await;
            let said = outcome.as_ref().map_or_else(|why| why.replace('\n', " "), |()| "ok".to_owned());
            note(&format!("{}\t{point}\t{how:?}\t{database}\t{said}\n", operation.as_str()));
            if let Err(why) = outcome {
                failed.push(format!("{point} {how:?}: {why}"));
                bench = Bench::new().await; // whatever it left behind stays behind
            }
        }
    }
    assert!(failed.is_empty(), "{}: {failed:#?}", operation.as_str());
}

fn note(line: &str) {
    let Ok(file) = std::env::var("COUNTERSIGN_MATRIX") else { return };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f06_f26_a_disturbed_proposal_is_made_once() {
    row(Operation::ProposeCheckout, LOCAL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f06_f21_f22_f26_a_disturbed_confirm_ends_in_the_one_order() {
    row(Operation::ConfirmCheckout, PROVIDER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f06_f26_a_disturbed_cancel_is_done_once() {
    row(Operation::CancelConfirmation, LOCAL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f06_f21_f22_f26_a_disturbed_refund_is_made_once() {
    row(Operation::IssueRefund, PROVIDER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f06_f21_f22_f26_a_disturbed_confirm_of_a_refund_gives_back_once() {
    row(Operation::ConfirmRefund, PROVIDER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f06_f26_a_disturbed_batch_is_written_once() {
    row(Operation::BatchUpdateProducts, LOCAL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f05_f06_f26_a_disturbed_address_is_set_once() {
    row(Operation::SetShippingAddress, LOCAL).await;
}

#[test]
fn every_write_is_in_the_matrix() {
    let source = include_str!("matrix.rs");
    for operation in Operation::ALL.iter().filter(|operation| operation.profile().effect != Effect::Pure) {
        assert!(source.contains(&format!("row(Operation::{operation:?}, ")), "{operation:?}");
    }
}

#[test]
fn every_failpoint_is_in_the_matrix() {
    for point in ALL {
        assert!(LOCAL.contains(point) || PROVIDER.contains(point), "{point}");
    }
}
