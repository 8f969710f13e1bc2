//! Refunds: at most once, never too much, and twice-asked when it matters.

use crate::support::*;
use countersign::config::Config;
use countersign::domain::refund::{Approver, Thresholds};
use countersign::effects::Retention;
use countersign::operations::forget;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

pub fn without_lookalikes(config: &mut Config) {
    config.settings.refunds.lookalike_window = Duration::ZERO;
}

/// An order of exactly 100.00 USD: no tax in Oregon, no shipping for pickup.
pub async fn hundred(app: &TestApp, key: &str) -> String {
    app.set_stock("LAST-ONE", 10);
    let cart = with(cart("LAST-ONE", 1, "pm_sandbox_ok"), "/shipping_address/region", json!("OR"));
    let order = app.shopper().ordered(key, &with(cart, "/shipping_option", json!("pickup"))).await;
    assert_eq!(app.shopper().get(&format!("/orders/{order}")).await.json()["total"]["amount"], "100.00");
    order
}

fn confirmation(got: &Got) -> String {
    assert_eq!(got.status, 202, "{}", got.text());
    got.json()["confirmation_id"].as_str().unwrap().to_owned()
}

async fn shown(app: &TestApp, order: &str) -> Value {
    app.caller(SUPPORT).get(&format!("/orders/{order}")).await.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_refund_is_one_step_and_every_page_shows_it() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let noted = with(refund(&order, "30.00", "USD"), "/note", json!("The handle was broken"));
    let got = app.caller(SUPPORT).refund("r", &noted).await;
    assert_eq!(got.status, 201, "{}", got.text());
    let made = got.json();
    let id = made["refund_id"].as_str().unwrap();
    assert_eq!(got.header("Location"), Some(format!("/refunds/{id}").as_str()));
    assert_eq!(
        (&made["order_id"], &made["status"], &made["reason"]),
        (&json!(order), &json!("succeeded"), &json!("damaged"))
    );
    assert_eq!(
        (&made["amount"]["amount"], &made["remaining_refundable"]["amount"]),
        (&json!("30.00"), &json!("70.00"))
    );
    assert_eq!((&made["note"], &made["confirmation_id"]), (&json!("The handle was broken"), &Value::Null));
    assert_eq!(app.caller(SUPPORT).get(&format!("/refunds/{id}")).await.json(), made);
    assert_eq!(app.caller(APPROVER).get(&format!("/refunds/{id}")).await.json(), made);
    let order = shown(&app, &order).await;
    assert_eq!((&order["status"], &order["refunds"]), (&json!("partially_refunded"), &json!([made])));
    assert_eq!(
        (&order["refunded"]["amount"], &order["remaining_refundable"]["amount"]),
        (&json!("30.00"), &json!("70.00"))
    );
    assert_eq!(app.given_back(), (1, 3000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f33_f35_one_amount_however_it_is_written_is_one_refund_and_anything_else_is_a_reuse() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let first = app.caller(SUPPORT).refund("r", &refund(&order, "10.00", "USD")).await;
    assert_eq!(first.status, 201);
    for amount in ["10", "10.0", "10.00", "10.000", "\"10\"", "\"10.0\"", "\"10.00\""] {
        let compact =
            format!(r#"{{"order_id":"{order}","amount":{{"amount":{amount},"currency":"USD"}},"reason":"damaged"}}"#);
        let pretty = format!(
            "{{\n  \"reason\": \"damaged\",\n  \"note\": null,\n  \"amount\": {{\"currency\": \"usd\", \"amount\": {amount}}},\n  \"order_id\": \"{order}\"\n}}"
        );
        for body in [compact, pretty] {
            app.caller(SUPPORT).post_raw("/refunds", "r", body).await.assert_replay_of(&first);
        }
    }
    let other = hundred(&app, "o2").await;
    let same = refund(&order, "10.00", "USD");
    for reused in [
        with(same.clone(), "/note", json!("again")),
        with(same.clone(), "/reason", json!("late")),
        with(same.clone(), "/order_id", json!(other)),
        refund(&order, "10.01", "USD"),
        refund(&order, "10.00", "EUR"),
        refund(&order, "10", "JPY"),
    ] {
        app.caller(SUPPORT).refund("r", &reused).await.assert_problem(422, "idempotency_key_reused");
    }
    app.caller(SUPPORT).post_keyed("/checkout", "r", &mugs()).await.assert_problem(403, "insufficient_scope");
    assert_eq!(app.given_back(), (1, 1000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_is_lost_and_the_caller_asks_again() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let support = app.caller(SUPPORT);
    let first = support.refund("r", &refund(&order, "25.00", "USD")).await;

    // With the same key: the first answer.
    support.refund("r", &refund(&order, "25.00", "USD")).await.assert_replay_of(&first);

    // With a fresh key: it looks like the first, so nothing moves until somebody confirms.
    app.clock.advance(9 * MINUTE);
    let again = support.refund("fresh", &refund(&order, "25.00", "USD")).await;
    let id = confirmation(&again);
    assert_eq!(again.header("Location"), Some(format!("/confirmations/{id}").as_str()));
    let offered = again.json();
    assert_eq!((&offered["operation"], &offered["status"]), (&json!("refund"), &json!("pending")));
    assert_eq!(
        (&offered["because"], &offered["similar"]),
        (&json!(["looks_like"]), &json!([first.json()["refund_id"]]))
    );
    assert_eq!(
        offered["refund"],
        json!({"order_id": order, "amount": {"amount": "25.00", "currency": "USD"}, "reason": "damaged"})
    );
    assert_eq!(
        (&offered["amount"]["amount"], &offered["remaining_refundable"]["amount"]),
        (&json!("25.00"), &json!("50.00"))
    );
    assert_eq!((&offered["refund_id"], offered.get("order_id")), (&Value::Null, None));
    assert_eq!(offered["next"]["confirm"], format!("/confirm-refund/{id}"));
    assert_eq!(app.given_back(), (1, 2500));
    assert_eq!(shown(&app, &order).await["remaining_refundable"]["amount"], "50.00", "reserved");
    support.refund("fresh", &refund(&order, "25.00", "USD")).await.assert_replay_of(&again);

    // Cancelled: the amount is free again, and nothing ever moved.
    assert_eq!(support.delete(&format!("/confirmations/{id}")).await.status, 204);
    assert_eq!(shown(&app, &order).await["remaining_refundable"]["amount"], "75.00");
    support.confirm_refund(&id).await.assert_problem(410, "confirmation_cancelled");

    // Meant after all: a second look, then the second refund.
    let id = confirmation(&support.refund("meant", &refund(&order, "25.00", "USD")).await);
    let confirmed = support.confirm_refund(&id).await;
    assert_eq!(confirmed.status, 200, "{}", confirmed.text());
    assert_eq!(
        (&confirmed.json()["confirmation_id"], &confirmed.json()["remaining_refundable"]["amount"]),
        (&json!(id), &json!("50.00"))
    );
    support.confirm_refund(&id).await.assert_replay_of(&confirmed);
    let read = support.get(&format!("/confirmations/{id}")).await.json();
    assert_eq!((&read["status"], &read["refund_id"]), (&json!("confirmed"), &confirmed.json()["refund_id"]));
    assert_eq!(read["next"]["refund"], format!("/refunds/{}", confirmed.json()["refund_id"].as_str().unwrap()));
    assert_eq!(app.given_back(), (2, 5000));

    // Another amount, or long after, looks like nothing.
    assert_eq!(support.refund("other", &refund(&order, "24.99", "USD")).await.status, 201);
    app.clock.advance(10 * MINUTE);
    assert_eq!(support.refund("later", &refund(&order, "24.99", "USD")).await.status, 201);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_lookalike_rule_off_a_fresh_key_is_a_second_refund() {
    let app = TestApp::with(without_lookalikes).await;
    let order = hundred(&app, "o").await;
    for key in ["1", "2"] {
        let got = app.caller(SUPPORT).refund(key, &refund(&order, "25.00", "USD")).await;
        assert_eq!(got.status, 201, "{}", got.text());
    }
    assert_eq!(app.given_back(), (2, 5000));
}

#[tokio::test(flavor = "multi_thread")]
async fn f15_f16_one_by_one_down_to_zero_in_each_currency_and_then_no_more() {
    for (product, country, currency, step, unit, zero) in [
        ("MUG-TRAVEL", "US", "USD", (1_000, "10.00"), "0.01", "0.00"),
        ("TEAPOT-IRON", "JP", "JPY", (2_000, "2000"), "1", "0"),
        ("DATES-BOX", "KW", "KWD", (3_333, "3.333"), "0.001", "0.000"),
    ] {
        let app = TestApp::with(without_lookalikes).await;
        let cart = with(cart(product, 1, "pm_sandbox_ok"), "/shipping_address/country", json!(country));
        let order = app.shopper().ordered("o", &cart).await;
        let total = app.number("SELECT total_minor AS n FROM orders");
        let mut keys = 0;
        loop {
            let left = shown(&app, &order).await["remaining_refundable"]["amount"].as_str().unwrap().to_owned();
            let more = app.number("SELECT total_minor - refunded_minor AS n FROM orders") > step.0;
            keys += 1;
            let amount = if more { step.1.to_owned() } else { left };
            let got = app.caller(SUPPORT).refund(&format!("r{keys}"), &refund(&order, &amount, currency)).await;
            assert_eq!(got.status, 201, "{}", got.text());
            assert_eq!(got.json()["amount"], json!({"amount": amount, "currency": currency}));
            if !more {
                assert_eq!(got.json()["remaining_refundable"]["amount"], zero);
                break;
            }
        }
        assert!(keys > 2);
        let problem = app.caller(SUPPORT).refund("one-more", &refund(&order, unit, currency)).await;
        let problem = problem.assert_problem(409, "refund_exceeds_remaining");
        assert_eq!(problem["remaining_refundable"], json!({"amount": zero, "currency": currency}));
        let order = shown(&app, &order).await;
        assert_eq!((&order["status"], &order["refunded"]), (&json!("refunded"), &order["total"]));
        assert_eq!(app.given_back(), (keys, total));
        app.assert_consistent();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f01_twenty_parallel_refunds_of_15_against_100_are_six() {
    let app = TestApp::with(without_lookalikes).await;
    let order = hundred(&app, "o").await;
    let keys: Vec<String> = (0..20).map(|i| format!("r{i}")).collect();
    let fifteen = refund(&order, "15.00", "USD");
    let got = join_all(keys.iter().map(|key| app.caller(SUPPORT).refund(key, &fifteen))).await;
    assert_eq!(got.iter().filter(|got| got.status == 201).count(), 6);
    for refused in got.iter().filter(|got| got.status != 201) {
        let problem = refused.assert_problem(409, "refund_exceeds_remaining");
        assert_eq!(problem["remaining_refundable"]["amount"], "10.00");
        assert_eq!(problem["recovery"], "ask_human");
    }
    for (key, got) in keys.iter().zip(&got) {
        app.caller(SUPPORT).refund(key, &fifteen).await.assert_replay_of(got);
    }
    assert_eq!(shown(&app, &order).await["refunded"]["amount"], "90.00");
    assert_eq!(app.given_back(), (6, 9000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f01_of_two_parallel_refunds_of_60_one_wins() {
    let app = TestApp::with(without_lookalikes).await;
    let order = hundred(&app, "o").await;
    let sixty = refund(&order, "60.00", "USD");
    let (a, b) = tokio::join!(app.caller(SUPPORT).refund("a", &sixty), app.caller(SUPPORT).refund("b", &sixty));
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
    let refused = if a.status == 409 { &a } else { &b };
    let problem = refused.assert_problem(409, "refund_exceeds_remaining");
    assert_eq!(problem["remaining_refundable"]["amount"], "40.00");
    assert_eq!(app.given_back(), (1, 6000));

    let fifteen = refund(&order, "15.00", "USD");
    let keys: Vec<String> = (0..10).map(|i| format!("r{i}")).collect();
    let got = join_all(keys.iter().map(|key| app.caller(SUPPORT).refund(key, &fifteen))).await;
    assert_eq!(got.iter().filter(|got| got.status == 201).count(), 2);
    for refused in got.iter().filter(|got| got.status != 201) {
        refused.assert_problem(409, "refund_exceeds_remaining");
    }
    assert_eq!(app.given_back(), (3, 9000));
    let asked = "SELECT sum(count) AS n FROM attempts";
    assert_eq!(number(&app.ledger(), asked), 1 + 3, "the provider saw the charge and what was admitted");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f01_what_the_provider_has_not_answered_is_reserved() {
    let app = TestApp::with(without_lookalikes).await;
    app.set_stock("LAST-ONE", 10);
    let cart = with(cart("LAST-ONE", 1, "pm_sandbox_refund_timeout_before"), "/shipping_address/region", json!("OR"));
    let order = app.shopper().ordered("o", &with(cart, "/shipping_option", json!("pickup"))).await;
    let (support, sixty) = (app.caller(SUPPORT), refund(&order, "60.00", "USD"));
    support.refund("a", &sixty).await.assert_problem(503, "outcome_unknown");
    let keys: Vec<String> = (0..10).map(|i| format!("r{i}")).collect();
    for refused in join_all(keys.iter().map(|key| support.refund(key, &sixty))).await {
        let problem = refused.assert_problem(409, "refund_exceeds_remaining");
        assert_eq!(problem["remaining_refundable"]["amount"], "40.00");
    }
    assert_eq!(support.refund("a", &sixty).await.status, 201);
    assert_eq!(app.given_back(), (1, 6000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f29_fifty_repeats_of_one_key_at_once_are_one_refund() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let ten = refund(&order, "10.00", "USD");
    let got = join_all((0..50).map(|_| app.caller(SUPPORT).refund("r", &ten))).await;
    assert!(got.iter().all(|got| got.status == 201 || got.code() == "idempotency_in_flight"), "{got:?}");
    assert_eq!(got.iter().filter(|got| got.status == 201 && !got.is_replay()).count(), 1);
    assert_eq!(app.given_back(), (1, 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_threshold_is_cumulative_so_that_splitting_does_not_get_round_it() {
    let app = TestApp::with(|config| {
        config.settings.refunds.thresholds = Thresholds::parse("USD:50.00").unwrap();
    })
    .await;
    let order = hundred(&app, "o").await;
    let support = app.caller(SUPPORT);
    assert_eq!(support.refund("1", &refund(&order, "30.00", "USD")).await.status, 201);
    assert_eq!(support.refund("2", &refund(&order, "20.00", "USD")).await.status, 201, "50.00 is not more than 50.00");
    let third = support.refund("3", &refund(&order, "0.01", "USD")).await;
    assert_eq!(third.json()["because"], json!(["threshold"]));
    let both = support.refund("4", &refund(&order, "30.00", "USD")).await;
    assert_eq!(both.json()["because"], json!(["threshold", "looks_like"]));
    // What is only offered counts too.
    assert_eq!(both.json()["remaining_refundable"]["amount"], "19.99");
    support.refund("5", &refund(&order, "20.00", "USD")).await.assert_problem(409, "refund_exceeds_remaining");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_no_longer_fits_is_told_that_it_may_be_one() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let sixty = refund(&order, "60.00", "USD");
    let first = app.caller(SUPPORT).refund("r", &sixty).await.json();
    let problem = app.caller(SUPPORT).refund("fresh", &sixty).await.assert_problem(409, "refund_exceeds_remaining");
    assert_eq!((&problem["similar"], &problem["recovery"]), (&json!([first["refund_id"]]), &json!("ask_human")));
    assert!(problem["detail"].as_str().unwrap().contains("if this is a repeat, you are done"));
    assert_eq!(app.given_back(), (1, 6000));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_equal_offers_the_second_is_not_confirmed_blindly_when_the_first_was_made() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let (support, large) = (app.caller(SUPPORT), refund(&order, "101.00", "USD"));
    let (a, b) = (confirmation(&support.refund("a", &large).await), confirmation(&support.refund("b", &large).await));
    let made = support.confirm_refund(&a).await.json();
    let problem = support.confirm_refund(&b).await.assert_problem(409, "equal_refund_made");
    assert_eq!(problem["similar"], json!([made["refund_id"]]));
    assert_eq!(support.get(&format!("/confirmations/{b}")).await.json()["status"], "pending");
    assert_eq!(app.given_back(), (1, 10100));
    // Whoever wants a second one asks anew, is shown the first, and confirms that.
    assert_eq!(support.delete(&format!("/confirmations/{b}")).await.status, 204);
    let again = support.refund("c", &large).await;
    assert_eq!(again.json()["similar"], json!([made["refund_id"]]));
    assert_eq!(support.confirm_refund(&confirmation(&again)).await.status, 200);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f38_an_offered_refund_reserves_its_amount_until_it_expires_and_no_longer() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let support = app.caller(SUPPORT);
    let id = confirmation(&support.refund("1", &refund(&order, "280.00", "USD")).await);
    support.refund("2", &refund(&order, "30.00", "USD")).await.assert_problem(409, "refund_exceeds_remaining");
    app.clock.advance(TTL - Duration::from_millis(1));
    support.refund("3", &refund(&order, "30.00", "USD")).await.assert_problem(409, "refund_exceeds_remaining");
    app.clock.advance(Duration::from_millis(1));
    assert_eq!(
        shown(&app, &order).await["remaining_refundable"],
        shown(&app, &order).await["total"],
        "no worker has run"
    );
    support.confirm_refund(&id).await.assert_problem(410, "confirmation_expired");
    assert_eq!(support.refund("4", &refund(&order, "30.00", "USD")).await.status, 201);
    assert_eq!(support.get(&format!("/confirmations/{id}")).await.json()["status"], "expired");
    support.refund("2", &refund(&order, "30.00", "USD")).await.assert_problem(409, "refund_exceeds_remaining");
    assert_eq!(app.given_back(), (1, 3000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f03_f11_fifty_confirms_of_one_refund_give_the_money_back_once() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let id = confirmation(&app.caller(SUPPORT).refund("r", &refund(&order, "200.00", "USD")).await);
    let path = format!("/confirm-refund/{id}");
    let confirms = (0..50).map(|i| {
        let request = app.caller(SUPPORT).request(Method::POST, &path);
        send(request.header("Idempotency-Key", format!("c{i}")))
    });
    let got = join_all(confirms).await;
    assert!(got.iter().all(|got| got.status == 200 || got.code() == "operation_in_flight"), "{got:?}");
    assert_eq!(got.iter().filter(|got| got.status == 200 && !got.is_replay()).count(), 1);
    assert_eq!(app.given_back(), (1, 20000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f10_a_confirm_is_bound_to_what_was_shown() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let offered = app.caller(SUPPORT).refund("r", &refund(&order, "200.00", "USD")).await.json();
    let id = offered["confirmation_id"].as_str().unwrap();
    let confirm = async |body: Value| app.caller(SUPPORT).post(&format!("/confirm-refund/{id}"), &body).await;
    let other = app.shopper().ordered("other", &mugs()).await;
    let other = app.caller(SUPPORT).post("/refunds-dry-run", &refund(&other, "5.00", "USD")).await.json();
    for guard in [
        json!({"expected_amount": {"amount": "200.01", "currency": "USD"}}),
        json!({"expected_amount": {"amount": "200.00", "currency": "EUR"}}),
        json!({"expected_plan_digest": format!("sha256:{}", "0".repeat(64))}),
        json!({"expected_plan_digest": other["plan_digest"]}),
    ] {
        let problem = confirm(guard).await.assert_problem(409, "confirmation_mismatch");
        assert_eq!(problem["refund"], offered["refund"]);
    }
    confirm(json!({"order_id": order})).await.assert_problem(400, "malformed_request");
    confirm(json!({"expected_total": {"amount": 1, "currency": "USD"}})).await.assert_problem(400, "malformed_request");
    assert_eq!(app.given_back(), (0, 0));
    let good =
        json!({"expected_amount": {"amount": 200, "currency": "usd"}, "expected_plan_digest": offered["plan_digest"]});
    assert_eq!(confirm(good).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn f10_a_confirmation_of_the_other_operation_is_refused_and_unharmed() {
    let app = TestApp::start().await;
    let all = app.caller("csk_demo_all");
    let order = all.ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let refund_id = confirmation(&all.refund("r", &refund(&order, "200.00", "USD")).await);
    let checkout_id = all.proposed("c", &mugs()).await;
    let problem = all.confirm(&refund_id).await.assert_problem(409, "wrong_operation");
    assert!(problem["detail"].as_str().unwrap().contains(&format!("/confirm-refund/{refund_id}")));
    let problem = all.confirm_refund(&checkout_id).await.assert_problem(409, "wrong_operation");
    assert!(problem["detail"].as_str().unwrap().contains(&format!("/confirm-checkout/{checkout_id}")));
    assert_eq!((app.charges(), app.given_back().0), (1, 0));
    assert_eq!(all.confirm_refund(&refund_id).await.status, 200);
    assert_eq!(all.confirm(&checkout_id).await.status, 200);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_under_the_policy_same_only_the_proposer_confirms() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let id = confirmation(&app.caller(SUPPORT).refund("r", &refund(&order, "200.00", "USD")).await);
    for other in [APPROVER, "csk_demo_all"] {
        app.caller(other).confirm_refund(&id).await.assert_problem(404, "not_found");
        app.caller(other).get(&format!("/confirmations/{id}")).await.assert_problem(404, "not_found");
    }
    assert_eq!(app.caller(APPROVER).get("/confirmations").await.json()["confirmations"], json!([]));
    assert_eq!(app.caller(SUPPORT).confirm_refund(&id).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn under_the_policy_other_another_actor_of_the_account_has_to_confirm() {
    let app = TestApp::with(|config| config.settings.refunds.approver = Approver::Other).await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let offered = app.caller(SUPPORT).refund("r", &refund(&order, "200.00", "USD")).await;
    let id = confirmation(&offered);
    app.caller(SUPPORT).confirm_refund(&id).await.assert_problem(403, "approver_must_differ");
    app.caller("csk_demo_all").confirm_refund(&id).await.assert_problem(404, "not_found");
    app.caller(STRANGER).confirm_refund(&id).await.assert_problem(403, "insufficient_scope");
    app.caller("csk_demo_all").get(&format!("/confirmations/{id}")).await.assert_problem(404, "not_found");

    let read = app.caller(APPROVER).get(&format!("/confirmations/{id}")).await.json();
    assert_eq!(read, offered.json());
    assert_eq!(app.caller(APPROVER).get("/confirmations?status=pending").await.json()["confirmations"], json!([read]));
    let confirmed = app.caller(APPROVER).confirm_refund(&id).await;
    assert_eq!(confirmed.status, 200, "{}", confirmed.text());
    app.caller(APPROVER).confirm_refund(&id).await.assert_replay_of(&confirmed);
    app.caller(SUPPORT).confirm_refund(&id).await.assert_problem(403, "approver_must_differ");
    assert_eq!(app.caller(SUPPORT).get(&format!("/confirmations/{id}")).await.json()["status"], "confirmed");
    assert_eq!(app.given_back(), (1, 20000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f32_a_refund_needs_its_scope_and_a_visible_order_also_on_replays() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let ten = refund(&order, "10.00", "USD");
    app.shopper().refund("r", &ten).await.assert_problem(403, "insufficient_scope");
    app.caller(APPROVER).refund("r", &ten).await.assert_problem(403, "insufficient_scope");
    app.execute("UPDATE actors SET scopes = 'refunds:create refunds:confirm orders:read' WHERE name = 'stranger'");
    for path in ["/refunds", "/refunds-dry-run"] {
        app.caller(STRANGER).post_keyed(path, "r", &ten).await.assert_problem(404, "not_found");
    }
    let first = app.caller(SUPPORT).refund("r", &ten).await;
    let made = first.header("Location").unwrap().to_owned();
    app.caller(STRANGER).get(&made).await.assert_problem(404, "not_found");
    app.shopper().get(&made).await.assert_problem(403, "insufficient_scope");
    app.caller(STRANGER).refund("r", &ten).await.assert_problem(404, "not_found");
    app.execute("UPDATE actors SET scopes = 'orders:any orders:read' WHERE name = 'support'");
    app.caller(SUPPORT).refund("r", &ten).await.assert_problem(403, "insufficient_scope");
    app.execute("UPDATE actors SET scopes = 'orders:any refunds:create' WHERE name = 'support'");
    app.caller(SUPPORT).refund("r", &ten).await.assert_replay_of(&first);
    app.execute("UPDATE actors SET scopes = 'refunds:create' WHERE name = 'support'");
    app.caller(SUPPORT).refund("r", &ten).await.assert_problem(404, "not_found");
    assert_eq!(app.given_back(), (1, 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn f32_a_proposer_who_may_no_longer_see_the_order_cannot_confirm() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let id = confirmation(&app.caller(SUPPORT).refund("r", &refund(&order, "200.00", "USD")).await);
    app.execute("UPDATE actors SET scopes = 'refunds:create refunds:confirm' WHERE name = 'support'");
    app.caller(SUPPORT).confirm_refund(&id).await.assert_problem(404, "not_found");
    assert_eq!(app.given_back(), (0, 0));
    app.execute("UPDATE actors SET scopes = 'orders:any refunds:create refunds:confirm' WHERE name = 'support'");
    assert_eq!(app.caller(SUPPORT).confirm_refund(&id).await.status, 200);
    app.execute("UPDATE actors SET scopes = 'refunds:create refunds:confirm' WHERE name = 'support'");
    app.caller(SUPPORT).confirm_refund(&id).await.assert_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn f13_f14_f34_what_is_no_amount_of_the_order_is_refused_and_moves_nothing() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let raw = |amount: &str| {
        format!(r#"{{"order_id":"{order}","amount":{{"amount":{amount},"currency":"USD"}},"reason":"late"}}"#)
    };
    for amount in [
        "0",
        "-0",
        "0.00",
        "\"0\"",
        "-5",
        "\"-5\"",
        "10.001",
        "1e1",
        "\"1e1\"",
        "\"+1\"",
        "\"01\"",
        "\".5\"",
        "\"1,000.00\"",
        "\"NaN\"",
        "0.0005",
        "9007199254740992",
        "9007199254740993",
        "99999999999999999999",
        "\"\"",
    ] {
        let problem = app.caller(SUPPORT).post_raw("/refunds", "r", raw(amount)).await;
        let problem = problem.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], "/amount/amount", "{amount}");
    }
    for amount in ["+1", "01", ".5", "NaN", "null", "true", "[]"] {
        app.caller(SUPPORT).post_raw("/refunds", "r", raw(amount)).await.assert_problem(400, "malformed_request");
    }
    let good = refund(&order, "1.00", "USD");
    for (pointer, bad) in [
        ("/order_id", with(good.clone(), "/order_id", json!("ord_1"))),
        ("/note", with(good.clone(), "/note", json!(" "))),
        ("/note", with(good.clone(), "/note", json!("x".repeat(501)))),
        ("/amount/currency", refund(&order, "1.00", "GBP")),
    ] {
        let problem = app.caller(SUPPORT).refund("r", &bad).await.assert_problem(422, "validation_failed");
        assert_eq!(problem["errors"][0]["pointer"], pointer);
    }
    for bad in [
        with(good.clone(), "/reason", json!("because")),
        with(good.clone(), "/reason", Value::Null),
        with(good.clone(), "/actor_id", json!("act_1")),
        with(good.clone(), "/dry_run", json!(true)),
    ] {
        app.caller(SUPPORT).refund("r", &bad).await.assert_problem(400, "malformed_request");
    }
    app.caller(SUPPORT).post("/refunds", &good).await.assert_problem(400, "idempotency_key_required");
    let problem = app.caller(SUPPORT).refund("euro", &refund(&order, "1.00", "EUR")).await;
    assert_eq!(problem.assert_problem(409, "currency_mismatch")["currencies"], json!(["USD"]));
    let none = with(good.clone(), "/order_id", json!("ord_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e"));
    app.caller(SUPPORT).refund("r", &none).await.assert_problem(404, "not_found");
    assert_eq!(app.given_back(), (0, 0));
    assert_eq!(app.caller(SUPPORT).refund("r", &good).await.status, 201, "the key is still free");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_cost_nothing_has_nothing_to_refund() {
    let app = TestApp::start().await;
    let free = with(with(mugs(), "/discount_codes", json!(["GOODWILL"])), "/shipping_option", json!("pickup"));
    let order = app.shopper().ordered("o", &free).await;
    let problem = app.caller(SUPPORT).refund("r", &refund(&order, "0.01", "USD")).await;
    assert_eq!(problem.assert_problem(409, "refund_exceeds_remaining")["remaining_refundable"]["amount"], "0.00");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_what_a_refund_would_do_and_writes_nothing() {
    let app = TestApp::start().await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 10, "pm_sandbox_ok")).await;
    let support = app.caller(SUPPORT);
    let dry = async |amount: &str| support.post("/refunds-dry-run", &refund(&order, amount, "USD")).await;
    let before = app.dump();
    let small = dry("25.00").await.json();
    assert_eq!((&small["dry_run"], &small["confirmation_required"]), (&json!(true), &json!(false)));
    assert_eq!((&small["because"], &small["similar"]), (&json!([]), &json!([])));
    let large = dry("200.00").await.json();
    assert_eq!((&large["confirmation_required"], &large["because"]), (&json!(true), &json!(["threshold"])));
    let problem = dry("5000.00").await.assert_problem(409, "refund_exceeds_remaining");
    assert_eq!(problem["remaining_refundable"], shown(&app, &order).await["total"]);
    assert_eq!(app.dump(), before);

    let made = support.refund("r", &refund(&order, "25.00", "USD")).await.json();
    assert_eq!(made["remaining_refundable"], small["remaining_refundable"]);
    let again = dry("25.00").await.json();
    assert_eq!((&again["because"], &again["similar"]), (&json!(["looks_like"]), &json!([made["refund_id"]])));
    let offered = support.refund("r2", &refund(&order, "200.00", "USD")).await.json();
    assert_eq!(offered["plan_digest"], large["plan_digest"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_refund_confirmations_count_towards_the_cap() {
    let app = TestApp::with(|config| config.settings.max_pending = 2).await;
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 20, "pm_sandbox_ok")).await;
    let support = app.caller(SUPPORT);
    let ids: Vec<String> = [
        confirmation(&support.refund("1", &refund(&order, "101.00", "USD")).await),
        confirmation(&support.refund("2", &refund(&order, "102.00", "USD")).await),
    ]
    .into();
    let problem = support.refund("3", &refund(&order, "103.00", "USD")).await.assert_problem(409, "too_many_pending");
    assert_eq!(problem["confirmation_ids"], json!(ids));
    assert_eq!(support.delete(&format!("/confirmations/{}", ids[0])).await.status, 204);
    assert_eq!(support.refund("3", &refund(&order, "103.00", "USD")).await.status, 202, "a wait is never stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_retry_of_a_refund_or_of_a_refused_one_is_410_and_never_money() {
    let second = Duration::from_secs(1);
    let app = TestApp::with(|config| {
        config.settings.retention = Retention { money: second, other: second };
        config.settings.refunds.thresholds = Thresholds::parse("USD:10.00").unwrap();
        without_lookalikes(config);
    })
    .await;
    let order = hundred(&app, "o").await;
    let declined = app.shopper().ordered("d", &cart("MUG-BLUE", 1, "pm_sandbox_refund_declined")).await;
    let calls = [
        ("made", refund(&order, "10.00", "USD"), 201),
        ("too-much", refund(&order, "1000.00", "USD"), 409),
        ("declined", refund(&declined, "1.00", "USD"), 402),
        ("offered", refund(&order, "90.00", "USD"), 202),
    ];
    let mut firsts = Vec::new();
    for (key, body, status) in &calls {
        let got = app.caller(SUPPORT).refund(key, body).await;
        assert_eq!(got.status, *status, "{}", got.text());
        app.caller(SUPPORT).refund(key, body).await.assert_replay_of(&got);
        firsts.push(got);
    }
    app.clock.advance(second);
    for sweep in ["before", "after"] {
        for ((key, body, _), first) in calls.iter().zip(&firsts) {
            let problem = app.caller(SUPPORT).refund(key, body).await.assert_problem(410, "idempotency_key_expired");
            let named = problem["resource"].as_str();
            match *key {
                "made" | "offered" => assert_eq!(named, first.header("Location"), "{sweep} the sweep"),
                "declined" => assert_eq!(
                    named,
                    Some(format!("/refunds/{}", first.json()["refund_id"].as_str().unwrap()).as_str())
                ),
                _ => assert_eq!(named, None),
            }
            let other = with(body.clone(), "/note", json!("another"));
            app.caller(SUPPORT).refund(key, &other).await.assert_problem(422, "idempotency_key_reused");
        }
        if sweep == "before" {
            forget::forget_due(&app.context).await.unwrap();
        }
    }
    assert_eq!(app.given_back(), (1, 1000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refunds_key_can_be_looked_up() {
    let app = TestApp::start().await;
    let order = hundred(&app, "o").await;
    let support = app.caller(SUPPORT);
    let status = async |key: &str| {
        send(support.request(Method::GET, "/operation-status").header("Idempotency-Key", key)).await.json()
    };
    let made = support.refund("r", &refund(&order, "10.00", "USD")).await;
    let found = status("r").await;
    assert_eq!((&found["operation_id"], &found["status"]), (&json!("issue_refund"), &json!("completed")));
    assert_eq!((&found["http_status"], &found["response"]), (&json!(201), &made.json()));
    assert_eq!(found["resource"].as_str(), made.header("Location"));
    let offered = support.refund("r2", &refund(&order, "10.00", "USD")).await;
    assert_eq!(status("r2").await["resource"].as_str(), offered.header("Location"));
    let confirm = support.request(Method::POST, &format!("/confirm-refund/{}", confirmation(&offered)));
    let confirmed = send(confirm.header("Idempotency-Key", "c")).await.json();
    let found = status("c").await;
    assert_eq!((&found["operation_id"], &found["response"]), (&json!("confirm_refund"), &confirmed));
    assert_eq!(found["resource"], format!("/refunds/{}", confirmed["refund_id"].as_str().unwrap()));
}
