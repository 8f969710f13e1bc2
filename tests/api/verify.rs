//! `countersign verify` as it is called: yes to everything of this server, also over a restart; its table, its JSON, and what
//! it says when nothing can be asked.

use crate::faulty::{Ask, Faulty};
use crate::process::Process;
use crate::support::*;
use reqwest::Method;
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

pub const ALL: &str = "csk_demo_all";

/// The command itself.
async fn verify(url: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["verify", "--url", url]).args(flags).env("COUNTERSIGN_KEY", ALL);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub struct Report {
    pub code: i32,
    pub json: Value,
    pub errors: String,
}

impl Report {
    pub async fn of(url: &str, flags: &[&str]) -> Self {
        let output = verify(url, &[&["--json"], flags].concat()).await;
        let errors = String::from_utf8(output.stderr).unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no report: {errors}"));
        Self { code: output.status.code().unwrap(), json, errors }
    }

    /// The ids of the questions with this result.
    pub fn with(&self, result: &str) -> Vec<&str> {
        let questions = self.json["questions"].as_array().unwrap().iter();
        questions.filter(|question| question["result"] == result).map(|q| q["id"].as_str().unwrap()).collect()
    }

    pub fn evidence(&self, id: &str) -> &str {
        let questions = self.json["questions"].as_array().unwrap();
        questions.iter().find(|question| question["id"] == id).unwrap()["evidence"].as_str().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_of_this_server_is_yes_and_nothing_is_left_open() {
    let app = TestApp::start().await;
    let report = Report::of(&app.url, &["--other-key", SECOND]).await;
    assert_eq!(report.with("fail"), [""; 0], "{:#}", report.json);
    assert_eq!((report.code, report.with("pass").len()), (0, 13), "{}", report.errors);
    assert_eq!(report.with("skipped"), ["answer_survives_restart"]);
    assert!(report.evidence("others_see_nothing").contains("404 not_found to another actor"), "{:#}", report.json);
    let pending = app.caller(ALL).get("/confirmations?status=pending").await.json();
    assert_eq!(pending["confirmations"], json!([]));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_fits_eighty_columns_and_is_plain_when_nobody_looks() {
    let app = TestApp::start().await;
    let output = verify(&app.url, &["--product", "DATES-BOX"]).await;
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{table}");
    assert_eq!(output.stderr, b"");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(
        table.contains("\npass     key_demanded                    Is a call without its key refused?\n"),
        "{table}"
    );
    assert!(table.contains("\nskipped  answer_survives_restart ") && !table.contains('\x1b'), "{table}");
    assert!(table.ends_with("\n13 passed, 0 failed, 1 skipped\n"), "{table}");

    let server = Faulty::new(&app.url, |_| (), |_, got| drop(got.headers.remove("Idempotent-Replayed")));
    let output = verify(&server.url, &[]).await;
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(table.contains("\nfail     same_key_same_answer "), "{table}");
}

/// A real process, found at one address, that the command restarts.
#[tokio::test(flavor = "multi_thread")]
async fn answers_survive_a_restart_of_the_process() {
    let home = Home::new();
    let mut process = Process::start(&home, &[]);
    let server = Arc::new(Faulty::faultless(&process.url));
    let pipe = |name: &str| {
        let path = home.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    };
    // Opening a pipe waits for who opens its other end.
    let (asked, down) = (pipe("asked"), pipe("down"));
    let command = format!("echo now > {}; cat {}", asked.display(), down.display());
    let flags = ["--restart-command", &command];
    let restart = std::thread::spawn({
        let server = server.clone();
        move || {
            std::fs::read(asked).unwrap();
            process.kill();
            std::fs::write(down, "").unwrap();
            let process = Process::start(&home, &[]);
            server.set_upstream(&process.url);
            (process, home)
        }
    });
    let report = Report::of(&server.url, &flags).await;
    assert_eq!(report.with("fail"), [""; 0], "{:#}", report.json);
    assert_eq!((report.code, report.with("pass").len()), (0, 14));
    drop(restart.join().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_command_that_fails_is_no_answer() {
    let app = TestApp::start().await;
    let report = Report::of(&app.url, &["--restart-command", "exit 3"]).await;
    assert_eq!((report.code, report.with("fail")), (1, vec!["answer_survives_restart"]));
    assert!(report.evidence("answer_survives_restart").contains("exit status: 3"));
}

/// 429 says that nobody has looked at the call: it is sent again, and no question is about it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_busy_for_a_moment_is_waited_for() {
    let app = TestApp::start().await;
    let turned_away = Mutex::new(false);
    let busy_once = move |ask: &Ask, got: &mut Got| {
        if ask.method == Method::GET && !std::mem::replace(&mut turned_away.lock().unwrap(), true) {
            got.status = 429;
            got.headers.insert("Retry-After", "1".parse().unwrap());
        }
    };
    let server = Faulty::new(&app.url, |_| (), busy_once);
    assert_eq!(Report::of(&server.url, &[]).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_one_clear_line() {
    let app = TestApp::start().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{nobody}");
    for (url, flags, words) in [
        (nobody.as_str(), &[][..], "can't be reached: GET /products: Connection refused"),
        (&app.url, &["--key", "csk_nobody"], "the server doesn't know --key"),
        (&app.url, &["--key", SHOPPER], "needs the scope refunds:create"),
        (&app.url, &["--key", MERCHANT], "needs the scope checkout:propose"),
        (&app.url, &["--key", "a b"], "visible ASCII"),
        (&app.url, &["--product", "NO-SUCH"], "GET /products/NO-SUCH: 404 not_found"),
        (&app.url, &["--product", "LAMP-WASHI"], "insufficient_stock"),
        (&app.url, &["--payment-method", "pm_nothing"], "validation_failed"),
        (&app.url, &["--payment-method", "pm_sandbox_declined"], "key_demanded: nothing can be bought"),
        (&app.url, &["--other-key", READONLY], "--other-key may not do what is asked"),
        (&app.url, &["--other-key", "csk_nobody"], "the server doesn't know --other-key"),
        ("https://localhost:1", &[], "cargo feature https"),
        ("localhost:8080", &[], "http://"),
    ] {
        let output = verify(url, flags).await;
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!((output.status.code(), out.as_str(), err.lines().count()), (Some(2), "", 1), "{flags:?}: {err}");
        assert!(err.contains(words), "{flags:?}: {err}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let output = command.arg("verify").env_remove("COUNTERSIGN_KEY").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--key"));
}
