//! The binary itself: its command line, its end, and two of it on one file.

use crate::support::*;
use countersign::database::DatabaseUrl;
use countersign::domain::time::Timestamp;
use futures_util::future::join_all;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub struct Process {
    child: Child,
    pub url: String,
    http: reqwest::Client,
    control: Control,
}

impl Process {
    /// The demo, with short provider time-outs and leases, so that real time is enough.
    pub fn start(home: &Home, flags: &[&str]) -> Self {
        Self::serve(home, &[&["--demo"], flags].concat())
    }

    /// The same, by a clock that the test moves.
    #[cfg(feature = "failpoints")]
    pub fn start_at(home: &Home, now: Timestamp, flags: &[&str]) -> Self {
        let control = Control::new(home);
        control.set_clock(now);
        Self::spawn(home, control, &[&["--demo"], flags].concat())
    }

    fn serve(home: &Home, flags: &[&str]) -> Self {
        Self::spawn(home, Control::new(home), flags)
    }

    fn spawn(home: &Home, control: Control, flags: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["serve", "--bind", "127.0.0.1:0"])
            .current_dir(home.path())
            .envs(addresses(home))
            .env("COUNTERSIGN_CONTROL", &control.folder)
            .env("COUNTERSIGN_PROVIDER_TIMEOUT", "500ms")
            .env("COUNTERSIGN_LEASE", "1s")
            .env("COUNTERSIGN_WORKER_INTERVAL", "100ms")
            .env("COUNTERSIGN_SANDBOX_DELAY", "300ms")
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(control.folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect(&line);
        let url = url.trim_end_matches(',').to_owned();
        // Below the server's keep-alive, so that no call meets a connection that is just being closed.
        let http = reqwest::Client::builder().pool_idle_timeout(Duration::from_secs(2));
        let http = http.timeout(Duration::from_secs(20)).build().unwrap();
        Self { child, url, http, control }
    }

    pub fn shopper(&self) -> Caller<'_> {
        self.caller(SHOPPER)
    }

    pub fn caller(&self, key: &'static str) -> Caller<'_> {
        Caller::new(&self.http, &self.url, key)
    }

    /// What the server obeys besides its API.
    #[cfg(feature = "failpoints")]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// From anywhere, at once.
    #[cfg(feature = "failpoints")]
    pub fn kill_9(&self) {
        Command::new("kill").args(["-9", &self.child.id().to_string()]).status().unwrap();
    }

    #[cfg(feature = "failpoints")]
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn terminate(&mut self) -> std::process::ExitStatus {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.control.folder.join("log")).unwrap()
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The server that is tested: this build's, or another one, to see that the tests find out.
fn binary() -> String {
    std::env::var("COUNTERSIGN_TEST_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_countersign").to_owned())
}

/// The folder through which a server's `failpoints` obey.
pub struct Control {
    folder: PathBuf,
}

#[cfg_attr(not(feature = "failpoints"), expect(dead_code, reason = "without failpoints nobody obeys"))]
impl Control {
    fn new(home: &Home) -> Self {
        let folder = home.path().join(format!("control-{}", uuid::Uuid::now_v7().simple()));
        std::fs::create_dir(&folder).unwrap();
        Self { folder }
    }

    /// Arms these points and no others, from the next one on that is passed, in the notation of the crate `fail`.
    pub fn arm(&self, points: &str) {
        self.put("failpoints", points);
    }

    /// Whether somebody stops at a point.
    pub fn is_held(&self) -> bool {
        self.folder.join("held").exists()
    }

    /// Lets them go on.
    pub fn release(&self) {
        std::fs::remove_file(self.folder.join("held")).unwrap();
    }

    pub fn set_clock(&self, now: Timestamp) {
        self.put("clock", &now.unix_millis().to_string());
    }

    /// All of it appears at once.
    fn put(&self, name: &str, text: &str) {
        let new = self.folder.join(format!("{name}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.folder.join(name)).unwrap();
    }
}

pub fn database(home: &Home) -> DatabaseUrl {
    home.database.clone()
}

pub fn ledger(home: &Home) -> DatabaseUrl {
    home.ledger.clone()
}

/// The embedded database stands where it does by default.
fn addresses(home: &Home) -> Vec<(&'static str, String)> {
    match home.is_postgres() {
        true => vec![
            ("COUNTERSIGN_DATABASE_URL", home.database.address()),
            ("COUNTERSIGN_SANDBOX_URL", home.ledger.address()),
        ],
        false => Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f20_f29_two_processes_on_one_database_do_everything_once() {
    let dir = Home::new();
    let (one, two) = (Process::start(&dir, &[]), Process::start(&dir, &[]));
    let cart = mugs();
    let got = join_all((0..50).map(|i| [&one, &two][i % 2].shopper().propose("k", &cart))).await;
    let first = got.iter().find(|got| !got.is_replay()).expect("one of them is the first");
    for got in got.iter().filter(|got| got.is_replay()) {
        got.assert_replay_of(first);
    }
    assert_eq!(number(&database(&dir), "SELECT count(*) AS n FROM confirmations"), 1);

    let id = first.json()["confirmation_id"].as_str().unwrap().to_owned();
    let got = join_all((0..50).map(|i| {
        let (process, id) = ([&one, &two][i % 2], &id);
        async move { process.shopper().confirm_keyed(id, &format!("c{i}")).await }
    }))
    .await;
    assert!(got.iter().all(|got| got.status == 200 || got.code() == "operation_in_flight"), "{got:?}");
    assert_eq!(got.iter().filter(|got| got.status == 200 && !got.is_replay()).count(), 1);
    assert_eq!(number(&database(&dir), "SELECT count(*) AS n FROM orders"), 1);

    let order = one.shopper().get("/orders").await.json()["orders"][0]["order_id"].as_str().unwrap().to_owned();
    let id = two.shopper().proposed("k2", &crate::support::cart("GIFT-WRAP", 1, "pm_sandbox_ok")).await;
    for (caller, path, body) in [
        (SHOPPER, format!("/confirm-checkout/{id}"), json!({})),
        (SUPPORT, "/refunds".into(), refund(&order, "5.00", "USD")),
    ] {
        let got = join_all((0..50).map(|i| [&one, &two][i % 2].caller(caller).post_keyed(&path, "same", &body))).await;
        assert_eq!(got.iter().filter(|got| got.status < 300 && !got.is_replay()).count(), 1, "{path}");
        assert!(got.iter().all(|got| got.status < 300 || got.code() == "idempotency_in_flight"), "{got:?}");
    }
    let asked = "SELECT sum(count) AS n FROM attempts";
    assert_eq!(number(&ledger(&dir), asked), 3, "two charges and a refund");

    let last = crate::support::cart("LAST-ONE", 1, "pm_sandbox_ok");
    let got = join_all((0..50).map(|i| {
        let (caller, last) = ([&one, &two][i % 2].caller([SHOPPER, SECOND, STRANGER][i % 3]), &last);
        async move { caller.propose(&format!("last{i}"), last).await }
    }))
    .await;
    assert_eq!(got.iter().filter(|got| got.status == 201).count(), 1, "the last one is held once");
    assert!(got.iter().all(|got| got.status == 201 || got.code() == "insufficient_stock"), "{got:?}");
    assert_consistent(&database(&dir), &ledger(&dir));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_demo_its_keys_open_nothing() {
    let dir = Home::new();
    let demo = Process::start(&dir, &[]);
    assert_eq!(demo.shopper().get("/products/MUG-BLUE").await.status, 200);
    drop(demo);
    let process = Process::serve(&dir, &[]);
    process.shopper().get("/products/MUG-BLUE").await.assert_problem(401, "unauthenticated");
}

fn run(home: &Home, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(args)
        .current_dir(home.path())
        .envs(addresses(home))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_bad_value_is_one_clear_line_and_exit_code_2() {
    let dir = Home::new();
    for (args, word) in [
        (&["serve", "--lease", "5s"][..], "twice"),
        (&["serve", "--demo", "--bind", "0.0.0.0:0"], "loopback"),
        (&["serve", "--confirmation-ttl", "soon"], "confirmation-ttl"),
        (&["serve", "--max-pending", "0"], "max-pending"),
        (&["serve", "--refund-confirmation-threshold", "USD:1.001"], "refund-confirmation-threshold"),
        (&["serve", "--refund-approver", "anyone"], "refund-approver"),
        (&["serve", "--refund-lookalike-window", "soon"], "refund-lookalike-window"),
        (&["serve", "--database-url", "mysql://x"], "sqlite://"),
        (&["serve", "--payments", "stripe"], "sandbox"),
        (&["serve", "--database-url", "postgres://h/d", "--sandbox-url", "sqlite://x.db"], "PostgreSQL as well"),
        (&["serve", "--database-url", "sqlite://data/x.db", "--sandbox-url", "sqlite://./data/x.db"], "two databases"),
        (&["serve", "--no-such-flag"], "no-such-flag"),
        (&["serve", "--bind", "nowhere"], "bind"),
        (&["actor", "create", "--account", "a", "--name", "n", "--scopes", "all"], "scopes"),
        (&["actor", "create", "--account", "a", "--name", "", "--scopes", "catalog:read"], "name"),
        (&["actor", "disable", "nobody"], "act_"),
    ] {
        let (code, out, err) = run(&dir, args);
        assert_eq!(code, 2, "{args:?}: {err}");
        assert_eq!((out.as_str(), err.lines().count()), ("", 1), "{args:?}: {err}");
        assert!(err.contains(word), "{args:?}: {err}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, _, err) = run(&dir, &["serve", "--bind", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(code, 1, "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_actor_made_on_the_command_line_can_call_until_it_is_disabled() {
    let dir = Home::new();
    let create =
        ["actor", "create", "--account", "acme", "--name", "buyer", "--scopes", "catalog:read,checkout:propose"];
    let (code, out, err) = run(&dir, &create);
    assert_eq!(code, 0, "{err}");
    let (id, key) = out.trim().split_once('\n').unwrap();
    let (_, listed, _) = run(&dir, &["actor", "list"]);
    assert!(listed.contains(id) && listed.contains("acme") && !listed.contains(key));

    let process = Process::start(&dir, &[]);
    let buyer = Caller::new(&process.http, &process.url, key);
    let first = buyer.propose("k", &mugs()).await;
    assert_eq!(first.status, 201);
    buyer.confirm(first.json()["confirmation_id"].as_str().unwrap()).await.assert_problem(403, "insufficient_scope");
    assert_eq!(run(&dir, &["actor", "disable", id]).0, 0);
    buyer.propose("k", &mugs()).await.assert_problem(401, "unauthenticated");
    assert!(run(&dir, &["actor", "list"]).1.contains("disabled"));
    assert_eq!(run(&dir, &["actor", "disable", "act_00000000000000000000000000000000"]).0, 1);
    let stored = "SELECT count(*) AS n FROM actors WHERE length(key_sha256) = 64";
    assert_eq!(number(&database(&dir), stored), number(&database(&dir), "SELECT count(*) AS n FROM actors"));
}
