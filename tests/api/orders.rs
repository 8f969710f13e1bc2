use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_order_shows_the_plan_as_it_was_confirmed() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let confirmed = app.shopper().confirm(&id).await.json();
    let path = format!("/orders/{}", confirmed["order_id"].as_str().unwrap());
    let order = app.shopper().get(&path).await.json();
    assert_eq!(order["plan"], confirmed["plan"]);
    assert_eq!(order["status"], "confirmed");
    assert_eq!(order["confirmation_id"], id.as_str());
    assert_eq!(order["refunded"]["amount"], "0.00");
    assert_eq!(order["remaining_refundable"], order["total"]);
    assert_eq!(order["payment"]["payment_id"], confirmed["payment"]["payment_id"]);
    assert_eq!(order["shipping_address"], order["plan"]["shipping_address"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_belongs_to_its_account() {
    let app = TestApp::start().await;
    let id = app.shopper().proposed("k", &mugs()).await;
    let order = app.shopper().confirm(&id).await.json()["order_id"].clone();
    let path = format!("/orders/{}", order.as_str().unwrap());
    assert_eq!(app.caller(SECOND).get(&path).await.status, 200, "another actor of the account");
    app.caller(STRANGER).get(&path).await.assert_problem(404, "not_found");
    assert_eq!(app.caller("csk_demo_support").get(&path).await.status, 200, "orders:any");
    app.shopper().get("/orders/ord_1").await.assert_problem(404, "not_found");
}
