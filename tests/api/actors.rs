use crate::support::*;

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
