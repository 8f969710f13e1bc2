//! The caller's half: keys that are made once, a runner that goes on where it was killed, and knows when to stop.

use crate::support::*;
use countersign::agent::client::{Answer, Http, Lost, Request, Transport};
use countersign::agent::dedupe::{DedupeRecord, Mark};
use countersign::agent::identity::{Parameters, Run, Step};
use countersign::agent::keys::{KeyError, KeyStore};
use countersign::agent::retry::Policy;
use countersign::agent::runner::{Call, Done, Event, Runner, Stop};
use countersign::agent::{SystemTime, Time};
use countersign::clock::Clock;
use countersign::domain::error::{Code, Recovery};
use countersign::domain::time::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

fn run() -> Run {
    Run { tenant: "t".into(), id: "r".into() }
}

fn step(id: &str, parameters: &Value) -> Step {
    Step { id: id.into(), tool: "issue_refund".into(), parameters: Parameters::of(parameters) }
}

fn now() -> Timestamp {
    Timestamp::from_unix_millis(1_796_117_400_000).unwrap()
}

fn store(dir: &TempDir) -> KeyStore {
    KeyStore::open(&dir.path().join("keys.db")).unwrap()
}

fn final_no(recovery: &str) -> Answer {
    let body = json!({"code": "insufficient_stock", "recovery": recovery}).to_string();
    Answer { status: 409, body, ..Answer::default() }
}

#[test]
fn a_step_has_one_key_and_a_changed_call_takes_an_explicit_authorisation() {
    let dir = TempDir::new().unwrap();
    let keys = store(&dir);
    let (five, six) = (step("s", &json!({"amount": "5.00"})), step("s", &json!({"amount": "6.00"})));
    let first = keys.create_or_get(&run(), &five, now()).unwrap();
    assert_eq!(keys.create_or_get(&run(), &five, now()).unwrap(), first);
    assert_eq!(store(&dir).create_or_get(&run(), &five, now()).unwrap(), first, "after a restart");
    let refused = keys.create_or_get(&run(), &six, now()).unwrap_err();
    assert!(matches!(refused, KeyError::Changed { .. }), "{refused}");
    assert!(refused.to_string().contains("needs a new authorisation"));

    assert_eq!(keys.authorise(&run(), &six, now()), Err(KeyError::Undecided { step: "s".into() }));
    keys.conclude(&first.key, &final_no("fix_request")).unwrap();
    let second = keys.authorise(&run(), &six, now()).unwrap();
    assert_ne!(second.key, first.key);
    assert_eq!(keys.create_or_get(&run(), &six, now()).unwrap(), second);

    let other_run = Run { id: "r2".into(), ..run() };
    let other_tenant = Run { tenant: "t2".into(), ..run() };
    for other in [other_run, other_tenant] {
        assert_ne!(keys.create_or_get(&other, &five, now()).unwrap().key, first.key);
    }
}

#[test]
fn the_attempt_is_raised_only_by_a_final_answer_that_says_so_and_once() {
    let dir = TempDir::new().unwrap();
    let (keys, step) = (store(&dir), step("s", &json!(1)));
    let first = keys.create_or_get(&run(), &step, now()).unwrap();
    let not_told = Err(KeyError::NotToldTo { step: "s".into() });
    assert_eq!(keys.raise(&run(), &step, 1, &first.key, now()), not_told, "nothing is known of it");
    for recovery in ["retry_same_key", "fix_request", "ask_human", "stop"] {
        let dir = TempDir::new().unwrap();
        let keys = store(&dir);
        let first = keys.create_or_get(&run(), &step, now()).unwrap();
        keys.conclude(&first.key, &final_no(recovery)).unwrap();
        assert_eq!(keys.raise(&run(), &step, 1, &first.key, now()), not_told, "{recovery}");
    }
    keys.conclude(&first.key, &final_no("new_key")).unwrap();
    keys.conclude(&first.key, &Answer { status: 201, ..Answer::default() }).unwrap();
    assert_eq!(keys.create_or_get(&run(), &step, now()).unwrap().answer.unwrap().status, 409, "the first word stays");
    let lost = keys.create_or_get(&run(), &Step { id: "lost".into(), ..step.clone() }, now()).unwrap();
    let other = keys.raise(&run(), &Step { id: "lost".into(), ..step.clone() }, 1, &first.key, now());
    assert_eq!(other, Err(KeyError::Undecided { step: "lost".into() }), "{lost:?}");
    for _ in 0..2 {
        keys.raise(&run(), &step, 1, &first.key, now()).unwrap();
        let second = keys.create_or_get(&run(), &step, now()).unwrap();
        assert_eq!((second.attempt, second.answer), (2, None));
        assert_ne!(second.key, first.key);
    }
}

#[test]
fn what_was_started_and_not_done_is_never_repeated() {
    let dir = TempDir::new().unwrap();
    drop(store(&dir));
    let open = || DedupeRecord::open(&dir.path().join("keys.db")).unwrap();
    let (marks, call) = (open(), step("pay", &json!({"to": "x"})));
    assert_eq!(marks.begin(&run(), &call, now()), Ok(Mark::Yours));
    for _ in 0..2 {
        assert_eq!(open().begin(&run(), &call, now()), Ok(Mark::Unclear { since: now() }), "killed in between");
    }
    open().did_not_happen(&run(), &call).unwrap();
    assert_eq!(open().begin(&run(), &call, now()), Ok(Mark::Yours), "a person looked");
    marks.done(&run(), &call, "receipt 7").unwrap();
    open().did_not_happen(&run(), &call).unwrap();
    assert_eq!(open().begin(&run(), &call, now()), Ok(Mark::Done("receipt 7".into())));
    let changed = marks.begin(&run(), &step("pay", &json!({"to": "y"})), now());
    assert!(matches!(changed, Err(KeyError::Changed { .. })));
}

/// Waits by moving a clock.
struct TestTime {
    clock: Clock,
    waited: Mutex<Vec<Duration>>,
}

impl TestTime {
    fn new() -> Self {
        Self { clock: Clock::manual(now()), waited: Mutex::default() }
    }

    fn waited(&self) -> Vec<Duration> {
        self.waited.lock().unwrap().clone()
    }
}

impl Time for TestTime {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn sleep(&self, wait: Duration) {
        self.waited.lock().unwrap().push(wait);
        self.clock.advance(wait);
    }
}

/// Says what it was told to say, in order, and the last of it for ever.
struct Scripted {
    lines: Vec<Result<Answer, Lost>>,
    heard: Mutex<Vec<Request>>,
}

impl Scripted {
    fn new(lines: Vec<Result<Answer, Lost>>) -> Self {
        Self { lines, heard: Mutex::default() }
    }

    fn heard(&self) -> Vec<Request> {
        self.heard.lock().unwrap().clone()
    }
}

impl Transport for Scripted {
    async fn send(&self, request: &Request) -> Result<Answer, Lost> {
        let mut heard = self.heard.lock().unwrap();
        heard.push(request.clone());
        self.lines[(heard.len() - 1).min(self.lines.len() - 1)].clone()
    }
}

fn runner<'a, T, W>(transport: &'a T, time: &'a W, store: &'a KeyStore) -> Runner<'a, T, W> {
    Runner {
        transport,
        time,
        store,
        run: run(),
        policy: Policy::DEFAULT,
        chance: Box::new(fastrand::Rng::with_seed(1)),
        watch: Box::new(|_| ()),
    }
}

fn a_refund() -> Call {
    let body = Some(json!({"order_id": "ord_1", "amount": {"amount": "5.00", "currency": "USD"}, "reason": "late"}));
    Call { step: "refund".into(), tool: "issue_refund", method: "POST", path: "/refunds".into(), body }
}

/// As the runner makes it of [`a_refund`].
fn a_step() -> Step {
    let call = a_refund();
    let parameters = Parameters::of(&json!([call.method, call.path, call.body]));
    Step { id: call.step, tool: call.tool.into(), parameters }
}

fn ok() -> Result<Answer, Lost> {
    Ok(Answer { status: 201, body: "{\"refund_id\":\"rfd_1\"}".into(), ..Answer::default() })
}

fn problem(code: Code) -> Result<Answer, Lost> {
    let row = code.row();
    let body = json!({"code": code, "recovery": row.recovery}).to_string();
    Ok(Answer { status: row.status, body, ..Answer::default() })
}

#[tokio::test]
async fn the_same_bytes_go_under_the_same_key_until_the_answer_is_final_and_then_never_again() {
    let dir = TempDir::new().unwrap();
    let (keys, time) = (store(&dir), TestTime::new());
    let server = Scripted::new(vec![
        Err(Lost::NotSent("refused".into())),
        Err(Lost::NoAnswer("timed out".into())),
        Ok(Answer { status: 502, body: "<html>".into(), ..Answer::default() }),
        problem(Code::IdempotencyInFlight),
        problem(Code::OutcomeUnknown),
        ok(),
    ]);
    let done = runner(&server, &time, &keys).call(&a_refund()).await.unwrap();
    assert_eq!(done.answer["refund_id"], "rfd_1");
    let heard = server.heard();
    assert_eq!(heard.len(), 6);
    assert!(heard.iter().all(|request| *request == heard[0] && request.key.as_ref() == Some(&done.key)));
    let again = runner(&server, &time, &keys).call(&a_refund()).await.unwrap();
    assert_eq!((again.answer, again.key, server.heard().len()), (done.answer, done.key, 6), "it is written down");
}

#[tokio::test]
async fn what_will_not_change_is_sent_exactly_once() {
    for code in Code::ALL.iter().filter(|code| code.row().recovery != Recovery::RetrySameKey) {
        let dir = TempDir::new().unwrap();
        let (keys, time, server) = (store(&dir), TestTime::new(), Scripted::new(vec![problem(*code)]));
        {
            let stop = runner(&server, &time, &keys).call(&a_refund()).await.unwrap_err();
            let as_told = match code.row().recovery {
                Recovery::NewKey | Recovery::ProposeAgain => matches!(stop, Stop::Again { .. }),
                Recovery::FixRequest => matches!(stop, Stop::Fix(_)),
                Recovery::AskHuman => matches!(stop, Stop::Human(_)),
                Recovery::Stop => matches!(stop, Stop::Over(_)),
                Recovery::RetrySameKey => unreachable!(),
            };
            assert!(as_told, "{code:?}: {stop}");
        }
        assert_eq!((server.heard().len(), time.waited().len()), (1, 0), "{code:?}");
    }
}

#[tokio::test]
async fn a_refusal_after_an_unheard_call_decides_nothing_and_is_not_written_down() {
    let unheard = || Err(Lost::NoAnswer("timed out".into()));
    for code in [Code::Unauthenticated, Code::NotFound, Code::ValidationFailed, Code::PaymentNeedsReview] {
        let dir = TempDir::new().unwrap();
        let (keys, time) = (store(&dir), TestTime::new());
        let server = Scripted::new(vec![unheard(), problem(code), problem(code)]);
        let stop = runner(&server, &time, &keys).call(&a_refund()).await.unwrap_err();
        assert!(matches!(stop, Stop::Unknown(_)), "{code:?}: {stop}");
        assert_eq!(server.heard().pop().unwrap().path, "/operation-status", "{code:?}");
        let step = Step { tool: "issue_refund".into(), ..step("refund", &json!(1)) };
        assert!(matches!(keys.authorise(&run(), &step, now()), Err(KeyError::Undecided { .. })), "{code:?}");
        let key = server.heard()[0].key.clone().unwrap();
        keys.did_not_happen(&key).unwrap();
        assert_eq!(keys.create_or_get(&run(), &a_step(), now()).unwrap().sent_at, None, "a person looked");
        // Mended, the same run goes on under the same key.
        let server = Scripted::new(vec![ok()]);
        let done = runner(&server, &time, &keys).call(&a_refund()).await.unwrap();
        assert_eq!(server.heard()[0].key.as_ref(), Some(&done.key));
    }
}

#[tokio::test]
async fn a_call_that_has_to_be_mended_can_be_authorised_anew_and_a_lost_credential_needs_nothing() {
    for (code, mended) in [(Code::ValidationFailed, true), (Code::Unauthenticated, false)] {
        let dir = TempDir::new().unwrap();
        let (keys, time, server) = (store(&dir), TestTime::new(), Scripted::new(vec![problem(code), ok()]));
        runner(&server, &time, &keys).call(&a_refund()).await.unwrap_err();
        let changed = step("refund", &json!("mended"));
        assert_eq!(keys.authorise(&run(), &changed, now()).is_ok(), mended, "{code:?}");
        let again = runner(&server, &time, &keys).call(&a_refund()).await;
        assert_eq!(again.is_ok(), !mended, "{code:?}: the same call goes on where nothing has to be changed in it");
    }
}

#[tokio::test]
async fn what_an_earlier_life_sent_may_have_happened_and_is_looked_up_when_it_is_old() {
    let dir = TempDir::new().unwrap();
    let (keys, time) = (store(&dir), TestTime::new());
    let server = Scripted::new(vec![Err(Lost::NoAnswer("killed".into()))]);
    assert!(matches!(runner(&server, &time, &keys).call(&a_refund()).await, Err(Stop::Unknown(_))));
    // A later life that can't connect knows that an earlier one did.
    let server = Scripted::new(vec![Err(Lost::NotSent("refused".into()))]);
    assert!(matches!(runner(&server, &time, &keys).call(&a_refund()).await, Err(Stop::Unknown(_))));
    time.clock.advance(Duration::from_secs(13 * 60 * 60));
    let server = Scripted::new(vec![Err(Lost::NotSent("refused".into()))]);
    assert!(matches!(runner(&server, &time, &keys).call(&a_refund()).await, Err(Stop::Unknown(_))));
    let heard: Vec<String> = server.heard().into_iter().map(|request| request.path).collect();
    assert_eq!(heard, ["/operation-status"], "a key of 24 hours would soon be new work");
}

#[tokio::test]
async fn an_equal_attempt_that_is_pending_stops_the_run_until_a_person_says_more() {
    for code in [Code::AttemptPending, Code::EqualRefundMade] {
        let dir = TempDir::new().unwrap();
        let (keys, time, server) = (store(&dir), TestTime::new(), Scripted::new(vec![problem(code), ok()]));
        for _ in 0..3 {
            let stop = runner(&server, &time, &keys).call(&a_refund()).await.unwrap_err();
            assert!(matches!(stop, Stop::Human(_)), "{stop}");
        }
        assert_eq!(server.heard().len(), 1, "{code:?}: sent again, it would be a second refund");
    }
}

#[tokio::test]
async fn retry_after_is_kept_and_patience_ends() {
    let dir = TempDir::new().unwrap();
    let (keys, time) = (store(&dir), TestTime::new());
    let busy = Answer { retry_after: Some(Duration::from_secs(7)), ..problem(Code::Overloaded).unwrap() };
    let server = Scripted::new(vec![Ok(busy)]);
    let stop = runner(&server, &time, &keys).call(&a_refund()).await.unwrap_err();
    assert!(matches!(stop, Stop::NotYet(_)), "nothing was done: {stop}");
    assert!(time.waited().iter().all(|wait| *wait >= Duration::from_secs(7)));
    assert!(time.waited().iter().sum::<Duration>() <= Policy::DEFAULT.total);
    assert!(server.heard().len() > 3 && server.heard().iter().all(|request| request.method == "POST"));
}

#[tokio::test]
async fn when_it_may_have_happened_the_last_question_is_what_became_of_the_key() {
    let looked_up = |found: Value| Ok(Answer { status: 200, body: found.to_string(), ..Answer::default() });
    let stored = json!({"status": "completed", "http_status": 201, "response": {"refund_id": "rfd_9"}});
    for (found, settled) in [(stored, true), (json!({"status": "unknown"}), false)] {
        let dir = TempDir::new().unwrap();
        let (keys, time) = (store(&dir), TestTime::new());
        let mut lines = vec![Err(Lost::NoAnswer("timed out".into())); 12];
        lines.push(looked_up(found));
        let server = Scripted::new(lines);
        let ended = runner(&server, &time, &keys).call(&a_refund()).await;
        let last = server.heard().pop().unwrap();
        assert_eq!((last.method, last.path.as_str()), ("GET", "/operation-status"));
        match ended {
            Ok(done) => assert!(settled && done.answer["refund_id"] == "rfd_9"),
            Err(stop) => assert!(!settled && matches!(stop, Stop::Unknown(_)), "{stop}"),
        }
    }
}

fn propose() -> Call {
    Call { step: "buy: propose".into(), tool: "propose_checkout", method: "POST", path: "/checkout".into(), body: None }
}

fn confirm(proposed: &Value, attempt: i64) -> Call {
    let id = proposed["confirmation_id"].as_str().unwrap();
    let (step, path) = (format!("buy: confirm {attempt}"), format!("/confirm-checkout/{id}"));
    Call { step, tool: "confirm_checkout", method: "POST", path, body: None }
}

async fn buy(app: &TestApp, keys: &KeyStore, bodies: &[Value], watch: impl Fn(Event) + Send) -> Result<Done, Stop> {
    let http = Http::new(&app.url, SHOPPER, "task", Duration::from_secs(10)).unwrap();
    let time = TestTime::new();
    let mut runner = Runner { watch: Box::new(watch), ..runner(&http, &time, keys) };
    runner.two_steps(&propose(), bodies, confirm).await
}

#[tokio::test(flavor = "multi_thread")]
async fn declined_or_out_of_stock_it_gets_on_with_a_new_attempt_and_does_not_loop() {
    let app = TestApp::start().await;
    let scarce = |quantity| cart("LAST-ONE", quantity, "pm_sandbox_ok");
    let stories = [
        ("declined", vec![with(mugs(), "/payment_method", json!("pm_sandbox_declined")), mugs()]),
        ("out of stock", vec![scarce(2), scarce(1)]),
    ];
    for (n, (story, bodies)) in stories.into_iter().enumerate() {
        let dir = TempDir::new().unwrap();
        let keys = store(&dir);
        let done = buy(&app, &keys, &bodies, |_| ()).await.unwrap_or_else(|stop| panic!("{story}: {stop}"));
        assert_eq!(done.answer["status"], "confirmed", "{story}");
        // Under replayed keys: everything is sent again, and nothing is new.
        keys.forget_answers(&run()).unwrap();
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let heard = events.clone();
        let again = buy(&app, &keys, &bodies, move |event| heard.lock().unwrap().push(event)).await.unwrap();
        assert_eq!(again.answer, done.answer, "{story}");
        let sent = events.lock().unwrap().iter().filter(|event| matches!(event, Event::Sending { .. })).count();
        assert!(sent <= 4, "{story}: {sent} calls");
        assert_eq!(app.number("SELECT count(*) AS n FROM orders"), n as i64 + 1, "{story}");
    }
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_expired_offers_end_with_the_last_authorised_body() {
    let app = TestApp::start().await;
    let dir = TempDir::new().unwrap();
    let keys = store(&dir);
    let clock = app.clock.clone();
    let expire = move |event: Event| {
        if matches!(&event, Event::Concluded { step, .. } if step == "buy: propose") {
            clock.advance(TTL);
        }
    };
    let bodies = [mugs(), mugs()];
    for _ in 0..2 {
        let ended = buy(&app, &keys, &bodies, expire.clone()).await;
        assert!(matches!(ended, Err(Stop::Again { attempt: 2, .. })), "{ended:?}");
    }
    let fewer = buy(&app, &keys, &bodies[..1], |_| ()).await;
    assert!(matches!(fewer, Err(Stop::NotAuthorised { attempt: 2 })), "{fewer:?}");
    assert_eq!((app.charges(), app.number("SELECT count(*) AS n FROM confirmations")), (0, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn f43_an_expired_confirmation_is_told_from_a_confirmed_one_and_a_new_attempt_is_made_once() {
    let app = TestApp::start().await;
    let dir = TempDir::new().unwrap();
    let keys = store(&dir);
    let (clock, expired) = (app.clock.clone(), Mutex::new(false));
    let expire_once = |event: Event| {
        let mut expired = expired.lock().unwrap();
        if !*expired && matches!(&event, Event::Concluded { step, .. } if step == "buy: propose") {
            clock.advance(TTL);
            *expired = true;
        }
    };
    let done = buy(&app, &keys, &[mugs(), mugs()], expire_once).await.unwrap();
    let list = app.shopper().get("/confirmations").await.json();
    let states: Vec<(&str, bool)> = list["confirmations"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|one| (one["status"].as_str().unwrap(), one["next"]["propose"].is_string()))
        .collect();
    assert_eq!(states, [("expired", true), ("confirmed", false)], "each says what can be done next");
    assert_eq!(done.answer["order_id"], list["confirmations"][0]["order_id"]);
    assert_eq!(app.charges(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f49_in_flight_is_waited_for_with_the_same_key_to_the_end() {
    let app = TestApp::start().await;
    let dir = TempDir::new().unwrap();
    let keys = store(&dir);
    let bodies = [with(mugs(), "/payment_method", json!("pm_sandbox_slow"))];
    let http = Http::new(&app.url, SHOPPER, "task", Duration::from_secs(10)).unwrap();
    let codes: Mutex<BTreeSet<String>> = Mutex::default();
    let quick = Policy { base: Duration::from_millis(50), ..Policy::DEFAULT };
    let shop = async || {
        let watch = |event: Event| {
            if let Event::Heard { code: Some(code), .. } = event {
                codes.lock().unwrap().insert(code);
            }
        };
        let mut runner = Runner { watch: Box::new(watch), policy: quick, ..runner(&http, &SystemTime, &keys) };
        runner.two_steps(&propose(), &bodies, confirm).await.unwrap().answer
    };
    let (one, two, three) = tokio::join!(shop(), shop(), shop());
    assert!(one == two && two == three);
    assert!(codes.into_inner().unwrap().contains("idempotency_in_flight"));
    assert_eq!(app.charges(), 1);
    assert_eq!(app.number("SELECT count(*) AS n FROM claims"), 2, "a key for each step, to the end");
}

/// The demo's agent, as a process.
fn agent(app: &TestApp, state: &Path, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["demo-agent", "--url", &app.url, "--key", "csk_demo_all", "--manner", "keys"])
        .arg("--state")
        .arg(state)
        .args(flags)
        .output()
        .unwrap()
}

fn events(output: &Output) -> Vec<Value> {
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_of_one_run_have_one_key_for_each_step_and_one_effect() {
    let app = TestApp::start().await;
    let dir = TempDir::new().unwrap();
    let outputs = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| agent(&app, dir.path(), &[]));
        let running: Vec<_> = (0..8).map(start).collect();
        running.into_iter().map(|process| process.join().unwrap()).collect::<Vec<_>>()
    });
    let mut keys: BTreeMap<(String, i64), BTreeSet<String>> = BTreeMap::new();
    for output in &outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        for event in events(output).iter().filter(|event| event["event"] == "key") {
            let step = (event["step"].as_str().unwrap().to_owned(), event["attempt"].as_i64().unwrap());
            keys.entry(step).or_default().insert(event["key"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(keys.len(), 5);
    assert!(keys.values().all(|of_step| of_step.len() == 1), "{keys:?}");
    assert_eq!((app.charges(), app.given_back().0), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_word_or_before_it_hears_and_started_again_each_step_has_one_effect() {
    let app = TestApp::start().await;
    let (app, at_once) = (&app, 8);
    let whole = TempDir::new().unwrap();
    let words = events(&agent(app, whole.path(), &["--run", "whole"])).len();
    assert!(words > 20, "{words}");
    // At every word it says, and between the answer and its reading of every call.
    let calls =
        events(&agent(app, whole.path(), &["--run", "again"])).iter().filter(|e| e["event"] == "sending").count();
    let at_word = (1..words).map(|point| ("--die-at", point));
    let unheard = (1..=calls).map(|point| ("--die-unheard", point));
    let points: Vec<(&str, usize)> = at_word.chain(unheard).collect();
    for points in points.chunks(at_once) {
        std::thread::scope(|scope| {
            for (how, point) in points {
                scope.spawn(move || {
                    let (dir, run, point) = (TempDir::new().unwrap(), format!("run{how}-{point}"), point.to_string());
                    let killed = agent(app, dir.path(), &["--run", &run, how, &point]);
                    assert!(!killed.status.success(), "it was to die: {how} {point}");
                    let resumed = agent(app, dir.path(), &["--run", &run]);
                    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stdout));
                });
            }
        });
    }
    let runs = i64::try_from(points.len()).unwrap() + 2;
    assert_eq!((app.charges(), app.given_back().0), (2 * runs, runs));
    assert_eq!(app.number("SELECT count(*) AS n FROM confirmations"), 2 * runs);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_proves_what_it_says_and_shows_the_damage_beside_it() {
    let app = TestApp::start().await;
    for seed in ["1", "2", "3"] {
        let output = Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(["demo", "--url", &app.url, "--seed", seed])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "seed {seed}:\n{said}");
        assert!(!said.contains("FAILED") && said.matches("  holds ").count() >= 6, "{said}");
        let orders = said.lines().find(|line| line.trim_start().starts_with("orders ")).unwrap();
        let numbers: Vec<u64> = orders.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert!(numbers[..2] == [2, 2] && numbers[2] > 2, "wanted, with keys, without: {numbers:?}");
        assert!(!said.contains('\u{1b}'), "no colour where there is no terminal");
    }
    app.assert_consistent();
}
