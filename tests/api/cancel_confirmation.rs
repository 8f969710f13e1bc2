use crate::support::*;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_frees_what_was_held_and_a_repeat_finds_it_done() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let path = format!("/confirmations/{id}");
    let got = app.shopper().delete(&path).await;
    assert_eq!((got.status, got.body.len()), (204, 0));
    app.shopper().delete(&path).await.assert_problem(404, "nothing_to_cancel");
    assert_eq!(app.shopper().get(&path).await.json()["status"], "cancelled");
    assert_eq!(app.shopper().get("/products/MUG-BLUE").await.json()["available"], 120);
    app.shopper().confirm(&id).await.assert_problem(410, "confirmation_cancelled");
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_cancels_at_once_one_frees_and_the_others_are_told_that_it_is_done() {
    let app = TestApp::start().await;
    for round in 0..10 {
        let id = app.shopper().proposed(&format!("k{round}"), &mugs()).await;
        let path = format!("/confirmations/{id}");
        let got = join_all((0..8).map(|_| app.shopper().delete(&path))).await;
        assert_eq!(got.iter().filter(|got| got.status == 204).count(), 1);
        for other in got.iter().filter(|got| got.status != 204) {
            other.assert_problem(404, "nothing_to_cancel");
        }
    }
    assert_eq!(app.shopper().get("/products/MUG-BLUE").await.json()["available"], 120);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f25_with_a_key_a_repeat_replays_and_another_cancel_is_a_reuse() {
    let app = TestApp::start().await;
    let a = app.shopper().proposed("a", &mugs()).await;
    let b = app.shopper().proposed("b", &mugs()).await;
    let cancel = |id: String| {
        let request = app.shopper().request(Method::DELETE, &format!("/confirmations/{id}"));
        send(request.header("Idempotency-Key", "cancel"))
    };
    let first = cancel(a.clone()).await;
    assert_eq!(first.status, 204);
    cancel(a).await.assert_replay_of(&first);
    cancel(b.clone()).await.assert_problem(422, "idempotency_key_reused");
    assert_eq!(app.shopper().get(&format!("/confirmations/{b}")).await.json()["status"], "pending");
    // Not money: a day later the key is new work.
    app.clock.advance(DAY);
    assert_eq!(cancel(b).await.status, 404, "b has expired by then");
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_another_actors_confirmation_looks_like_none_and_stays_untouched() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let path = format!("/confirmations/{id}");
    let (never, before) = ("cnf_0193a1c2e5f07b8c9d0e1f2a3b4c5d6e", app.dump());
    let plain = |problem: Value| with(problem, "/instance", Value::Null);
    for other in [SECOND, STRANGER].map(|other| app.caller(other)) {
        let not_there = plain(other.confirm(never).await.assert_problem(404, "not_found"));
        for answer in [
            other.get(&path).await,
            other.delete(&path).await,
            other.confirm(&id).await,
            other.confirm_keyed(&id, "c").await,
            send(other.request(Method::DELETE, &path).header("Idempotency-Key", "d")).await,
        ] {
            assert_eq!(plain(answer.assert_problem(404, "not_found")), not_there, "as if it had never been");
        }
    }
    assert_eq!(app.dump(), before);
    assert_eq!(app.shopper().get(&path).await.json()["status"], "pending");
    assert_eq!(app.shopper().confirm(&id).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decided_confirmation_cannot_be_cancelled() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let order = app.shopper().confirm(&id).await.json()["order_id"].clone();
    let problem =
        app.shopper().delete(&format!("/confirmations/{id}")).await.assert_problem(409, "confirmation_decided");
    assert_eq!(problem["order_id"], order);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmation_that_is_being_confirmed_cannot_be_cancelled_and_keeps_its_hold_whatever_the_clock_says() {
    let app = TestApp::start().await;
    let cart = cart("LAST-ONE", 1, "pm_sandbox_timeout_before_charge");
    let id = app.shopper().proposed("k", &cart).await;
    app.shopper().confirm(&id).await.assert_problem(503, "outcome_unknown");
    let path = format!("/confirmations/{id}");
    app.shopper().delete(&path).await.assert_problem(409, "operation_in_flight");
    app.clock.advance(2 * TTL);
    assert_eq!(app.shopper().get(&path).await.json()["status"], "committing");
    assert_eq!(app.shopper().get("/products/LAST-ONE").await.json()["available"], 0);
    assert_eq!(app.shopper().confirm(&id).await.status, 200);
    app.assert_consistent();
}
