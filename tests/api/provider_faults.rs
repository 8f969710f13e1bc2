use crate::support::*;
use countersign::domain::error::Code;
use countersign::domain::payment::{Charge, GiveBack, PaymentMethod, ProviderKey};
use countersign::operations::{Context, phases};
use countersign::payments::{Answering, Found, Outcome, PaymentProvider};
use countersign::store::payments;
use reqwest::Method;
use std::sync::Arc;
use std::time::Duration;

/// Recovers every undecided payment, as the worker does, without waiting for its interval.
async fn recover(app: &TestApp) {
    let now = app.clock.now().after(365 * DAY);
    let due = app.context.store.read(move |db, _| Ok(payments::to_recover(db, now, 100)?)).await.unwrap();
    for id in due {
        let _ = phases::recover(&app.context, id, "recovery").await;
    }
}

/// What a client sees of one fault, and that a retry and the recovery both end in the one order and the one charge.
async fn one_charge_at_the_end(method: &str, attempts: i64) {
    for recovered in [false, true] {
        let app = TestApp::start().await;
        let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, method)).await;
        let unknown = app.shopper().confirm_keyed(&id, "c").await;
        let problem = unknown.assert_problem(503, "outcome_unknown");
        assert_eq!(problem["recovery"], "retry_same_key");
        assert_eq!(unknown.header("Idempotency-Key-Expires"), Some("2026-12-08T09:30:00.000Z"));
        assert!(!problem["detail"].as_str().unwrap().contains("500"), "nothing of the provider's own words: {problem}");
        assert_eq!(app.shopper().get(&format!("/confirmations/{id}")).await.json()["status"], "committing");
        assert_eq!(app.number("SELECT count(*) AS n FROM payments WHERE lease_owner IS NOT NULL"), 0);

        if recovered {
            recover(&app).await;
        }
        let got = app.shopper().confirm_keyed(&id, "c").await;
        assert_eq!(got.status, 200, "{method}: {}", got.text());
        assert_eq!(got.is_replay(), recovered, "{method}");
        assert_eq!(got.header("Idempotency-Key-Expires"), unknown.header("Idempotency-Key-Expires"));
        app.shopper().confirm_keyed(&id, "c").await.assert_replay_of(&got);
        assert_eq!(app.charges(), 1, "{method}");
        assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), attempts, "{method}");
        assert_eq!(app.number("SELECT count(*) AS n FROM orders"), 1);
        app.assert_consistent();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f42_a_time_out_before_the_charge_is_unknown_and_charged_once_by_the_retry() {
    one_charge_at_the_end("pm_sandbox_timeout_before_charge", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f22_a_time_out_after_the_charge_is_found_and_not_sent_again() {
    one_charge_at_the_end("pm_sandbox_timeout_after_charge", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f30_an_error_before_the_charge_is_unknown_and_charged_once_by_the_retry() {
    one_charge_at_the_end("pm_sandbox_error_before_charge", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn f30_an_error_after_the_charge_is_found_and_not_sent_again() {
    one_charge_at_the_end("pm_sandbox_error_after_charge", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_that_lands_after_it_was_not_seen_is_not_charged_again() {
    one_charge_at_the_end("pm_sandbox_charge_arrives_late", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_answer_within_the_time_out_is_an_answer() {
    let app = TestApp::with(|config| config.settings.provider_timeout = Duration::from_secs(5)).await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    assert_eq!(app.shopper().confirm(&id).await.status, 200);
    assert_eq!(app.charges(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f42_a_slow_answer_after_the_time_out_is_unknown_and_then_found() {
    let app = TestApp::with(|config| config.sandbox_delay = Duration::from_secs(60)).await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    app.shopper().confirm(&id).await.assert_problem(503, "outcome_unknown");
    assert_eq!(app.shopper().confirm(&id).await.status, 200);
    assert_eq!(app.charges(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn f21_the_end_of_a_lease_starts_recovery_not_a_second_charge() {
    let app = TestApp::with(|config| config.settings.provider_timeout = Duration::from_secs(2)).await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_timeout_after_charge")).await;
    let hanging = app.shopper().confirm_keyed(&id, "c");
    let other = async {
        eventually("the charge is booked", async || app.charges() == 1).await;
        app.shopper().confirm_keyed(&id, "c").await.assert_problem(409, "idempotency_in_flight");
        app.clock.advance(Duration::from_secs(30));
        let got = app.shopper().confirm_keyed(&id, "c").await;
        assert_eq!(got.status, 200, "{}", got.text());
        got
    };
    // The first call has lost its lease; when its time-out comes, it reads what the other one wrote.
    let (hung, recovered) = tokio::join!(hanging, other);
    hung.assert_replay_of(&recovered);
    app.shopper().confirm_keyed(&id, "c").await.assert_replay_of(&recovered);
    assert_eq!(app.charges(), 1);
    assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f42_failed_only_on_proof_and_never_sent_again_once_the_provider_forgot_the_key() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_timeout_before_charge")).await;
    app.shopper().confirm(&id).await.assert_problem(503, "outcome_unknown");
    app.clock.advance(DAY);
    for _ in 0..2 {
        let problem = app.shopper().confirm(&id).await.assert_problem(409, "payment_needs_review");
        assert_eq!(problem["recovery"], "ask_human");
    }
    assert_eq!(app.shopper().get(&format!("/confirmations/{id}")).await.json()["status"], "committing");
    assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), 1);
    assert_eq!(app.number("SELECT held AS n FROM products WHERE product_id = 'MUG-BLUE'"), 1);
}

/// A provider behind a gateway that answers every request with a page of its own.
struct BadGateway;

const PAGE: &str = "<html><title>502 Bad Gateway</title></html>";

impl PaymentProvider for BadGateway {
    fn accepts(&self, _: &PaymentMethod) -> bool {
        true
    }

    fn key_lifetime(&self) -> Duration {
        DAY
    }

    fn charge_request(&self, _: &Charge) -> String {
        unreachable!("what was stored is sent again")
    }

    fn charge<'a>(&'a self, _: &'a ProviderKey, _: &'a str) -> Answering<'a, Outcome> {
        Box::pin(async { Outcome::Unknown(PAGE.to_owned()) })
    }

    fn refund_request(&self, _: &GiveBack) -> String {
        unreachable!("what was stored is sent again")
    }

    fn refund<'a>(&'a self, _: &'a ProviderKey, _: &'a str) -> Answering<'a, Outcome> {
        Box::pin(async { Outcome::Unknown(PAGE.to_owned()) })
    }

    fn find<'a>(&'a self, _: &'a ProviderKey) -> Answering<'a, Found> {
        Box::pin(async { Found::NotSeen })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f42_a_page_of_a_gateway_is_no_answer_however_often_it_comes_and_nobody_is_shown_it() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_timeout_before_charge")).await;
    app.shopper().confirm_keyed(&id, "c").await.assert_problem(503, "outcome_unknown");
    let behind_it = Context { provider: Arc::new(BadGateway), ..app.context.clone() };
    let undecided = app.context.store.read(|db, now| Ok(payments::to_recover(db, now.after(DAY), 100)?)).await.unwrap();
    for _ in 0..10 {
        let problem = phases::recover(&behind_it, undecided[0].clone(), "r").await.err().unwrap();
        assert_eq!(problem.code, Code::OutcomeUnknown);
        assert!(!problem.answer("r").unwrap().body.contains("<html>"));
        let status = app.shopper().request(Method::GET, "/operation-status").header("Idempotency-Key", "c");
        assert_eq!(send(status).await.json()["status"], "unknown");
        assert_eq!(app.shopper().get(&format!("/confirmations/{id}")).await.json()["status"], "committing");
        app.clock.advance(Duration::from_secs(3600));
    }
    assert!(!app.dump().contains("<html>"));
    assert_eq!(app.shopper().confirm_keyed(&id, "c").await.status, 200);
    assert_eq!(app.charges(), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f26_the_worker_recovers_what_nobody_asks_about() {
    let app = TestApp::with(|config| config.settings.worker_interval = Duration::from_millis(20)).await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_error_before_charge")).await;
    app.shopper().confirm(&id).await.assert_problem(503, "outcome_unknown");
    app.clock.advance(Duration::from_secs(60));
    let path = format!("/confirmations/{id}");
    eventually("it is confirmed", async || app.shopper().get(&path).await.json()["status"] == "confirmed").await;
    assert_eq!(app.charges(), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f22_a_charge_whose_order_cannot_be_written_is_found_again_later() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    app.execute(match app.home.is_postgres() {
        true => {
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room'; END $$; \
             CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION fail()"
        }
        false => "CREATE TRIGGER t BEFORE INSERT ON orders BEGIN SELECT RAISE(ABORT, 'no room'); END",
    });
    for _ in 0..3 {
        let got = app.shopper().confirm_keyed(&id, "c").await;
        got.assert_problem(503, "outcome_unknown");
        assert_eq!(got.header("Idempotency-Key-Expires"), Some("2026-12-08T09:30:00.000Z"));
        assert_eq!(app.number("SELECT count(*) AS n FROM payments WHERE lease_owner IS NOT NULL"), 0);
    }
    let waits = "SELECT count(*) AS n FROM payments WHERE recover_at > '2026-12-01 09:30:00'";
    assert_eq!(app.number(waits), 1, "the worker backs off");
    app.execute(if app.home.is_postgres() { "DROP TRIGGER t ON orders" } else { "DROP TRIGGER t" });
    let got = app.shopper().confirm_keyed(&id, "c").await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(app.charges(), 1);
    assert_eq!(number(&app.ledger(), "SELECT sum(count) AS n FROM attempts"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f18_a_price_that_changes_while_the_provider_thinks_changes_nothing() {
    let app = TestApp::with(|config| config.settings.provider_timeout = Duration::from_secs(5)).await;
    let proposed = app.shopper().propose("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await.json();
    let confirm = app.shopper().confirm(proposed["confirmation_id"].as_str().unwrap());
    let change = async {
        eventually("it is charged", async || app.charges() == 1).await;
        app.execute("UPDATE products SET price_minor = price_minor * 2 WHERE product_id = 'MUG-BLUE'");
    };
    let (confirmed, ()) = tokio::join!(confirm, change);
    assert_eq!(confirmed.json()["plan"], proposed["plan"]);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_closes_while_the_provider_thinks_leaves_the_outcome_unknown() {
    let app = TestApp::with(|config| config.settings.provider_timeout = Duration::from_secs(5)).await;
    let id = app.shopper().proposed("k", &cart("MUG-BLUE", 1, "pm_sandbox_slow")).await;
    let confirm = app.shopper().confirm(&id);
    let close = async {
        eventually("it is charged", async || app.charges() == 1).await;
        app.context.store.close().await;
    };
    let (confirmed, ()) = tokio::join!(confirm, close);
    let problem = confirmed.assert_problem(503, "outcome_unknown");
    assert!(!problem["detail"].as_str().unwrap().contains("Nothing was done"));
}
