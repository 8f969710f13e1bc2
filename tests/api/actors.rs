use crate::support::*;
use countersign::domain::operation::Operation;
use reqwest::Method;

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
async fn every_operation_needs_a_credential_and_its_scope() {
    let app = TestApp::start().await;
    app.execute("UPDATE actors SET scopes = 'orders:write' WHERE name = 'stranger'");
    let http = reqwest::Client::new();
    for operation in Operation::ALL {
        let profile = operation.profile();
        let method: Method = profile.method.parse().unwrap();
        let path = profile.path.replace(['{', '}'], "");
        let anonymous = http.request(method.clone(), format!("{}{path}", app.url));
        send(anonymous).await.assert_problem(401, "unauthenticated");
        let unscoped = app.caller(STRANGER).request(method.clone(), &path);
        let problem = send(unscoped).await.assert_problem(403, "insufficient_scope");
        assert!(problem["detail"].as_str().unwrap().contains(profile.scopes[0].as_str()));
    }
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
