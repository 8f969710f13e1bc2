use crate::support::*;
use countersign::store::actors;
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread")]
async fn f32_a_replay_is_authorised_like_a_first_call() {
    let app = TestApp::start().await;
    let first = app.shopper().propose("k", &mugs()).await;
    let id = first.json()["confirmation_id"].as_str().unwrap().to_owned();
    let confirmed = app.shopper().confirm(&id).await;
    app.execute("UPDATE actors SET scopes = 'catalog:read' WHERE name = 'shopper'");
    app.shopper().propose("k", &mugs()).await.assert_problem(403, "insufficient_scope");
    app.shopper().confirm(&id).await.assert_problem(403, "insufficient_scope");
    app.execute("UPDATE actors SET scopes = 'checkout:propose checkout:confirm' WHERE name = 'shopper'");
    app.shopper().confirm(&id).await.assert_replay_of(&confirmed);
    app.execute("UPDATE actors SET disabled_at = created_at WHERE name = 'shopper'");
    app.shopper().propose("k", &mugs()).await.assert_problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_one_bearer_key() {
    let app = TestApp::start().await;
    let http = reqwest::Client::new();
    let url = format!("{}/products/MUG-BLUE", app.url);
    let get = |value: &'static str| send(http.get(&url).header("Authorization", value));
    assert_eq!(get("bearer csk_demo_shopper").await.status, 200);
    for bad in ["", "Bearer", "Bearer ", "csk_demo_shopper", "Basic csk_demo_shopper", "Bearer csk_demo_shopper x"] {
        get(bad).await.assert_problem(401, "unauthenticated");
    }
    let twice = http.get(&url).header("Authorization", "Bearer csk_demo_shopper").header("Authorization", "Bearer x");
    send(twice).await.assert_problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn f07_confirms_and_other_carts_under_one_key_stay_their_actors_own() {
    let app = TestApp::start().await;
    let mut orders = BTreeSet::new();
    for (n, actor) in [SHOPPER, SECOND, STRANGER].into_iter().enumerate() {
        let id = app.caller(actor).proposed("k", &cart("MUG-BLUE", 1 + n as i64, "pm_sandbox_ok")).await;
        let got = app.caller(actor).confirm_keyed(&id, "c").await;
        assert_eq!((got.status, got.is_replay()), (200, false), "{}", got.text());
        assert_eq!(got.json()["plan"]["lines"][0]["quantity"], 1 + n);
        app.caller(actor).confirm_keyed(&id, "c").await.assert_replay_of(&got);
        orders.insert(got.json()["order_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((orders.len(), app.charges()), (3, 3));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f09_who_acts_is_known_from_the_credential_alone() {
    let app = TestApp::start().await;
    let forged = with(mugs(), "/actor_id", json!("act_00000000000000000000000000000000"));
    app.shopper().propose("k", &forged).await.assert_problem(400, "malformed_request");
    let id = app.shopper().proposed("k", &mugs()).await;
    let forged = json!({"actor_id": "act_00000000000000000000000000000000"});
    let path = format!("/confirm-checkout/{id}");
    app.caller(SECOND).post(&path, &forged).await.assert_problem(400, "malformed_request");
    assert_eq!(app.charges(), 0);

    // The victim's own id, in every write and every place where it could be believed.
    let actors = app.context.store.read(|db, _| Ok(actors::list(db)?)).await.unwrap();
    let victim = actors.iter().map(|(actor, _)| actor).find(|actor| actor.name == "shopper").unwrap();
    let (victim, attacker) = (victim.actor_id.as_str(), app.caller("csk_demo_all"));
    let order = app.shopper().ordered("o", &cart("MUG-TRAVEL", 5, "pm_sandbox_ok")).await;
    let before = app.dump();
    let refund = refund(&order, "5.00", "USD");
    for member in ["actor_id", "actor", "account_id"] {
        for (path, body) in [("/checkout", mugs()), (&path, json!({})), ("/refunds", refund.clone())] {
            let forged = with(body.clone(), &format!("/{member}"), json!(victim));
            attacker.post_keyed(path, "forged", &forged).await.assert_problem(400, "malformed_request");
            let query = format!("{path}?{member}={victim}");
            attacker.post_keyed(&query, "forged", &body).await.assert_problem(400, "malformed_request");
        }
    }
    let header = attacker.request(Method::POST, &path).header("X-Actor-Id", victim);
    send(header).await.assert_problem(404, "not_found");
    assert_eq!(app.dump(), before);
}
