//! Lists of orders and of confirmations.

use crate::support::*;
use serde_json::Value;

async fn walk(caller: Caller<'_>, list: &str, member: &str, id: &str) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = caller.get(&format!("{list}limit=2{cursor}")).await.json();
        let items: Vec<Value> = page[member].as_array().unwrap().clone();
        seen.extend(items.iter().map(|item| item[id].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { return seen };
        assert_eq!(items.len(), 2);
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_come_newest_first_a_page_at_a_time_and_are_the_accounts_own() {
    let app = TestApp::start().await;
    let mut made = Vec::new();
    for (key, buyer) in [("1", SHOPPER), ("2", SECOND), ("3", SHOPPER), ("4", SHOPPER), ("5", SECOND)] {
        made.push(app.caller(buyer).ordered(key, &mugs()).await);
    }
    let other = app.caller(STRANGER).ordered("1", &mugs()).await;
    let newest_first: Vec<String> = made.iter().rev().cloned().collect();
    assert_eq!(walk(app.shopper(), "/orders?", "orders", "order_id").await, newest_first);
    assert_eq!(walk(app.caller(STRANGER), "/orders?", "orders", "order_id").await, [other]);
    assert_eq!(walk(app.caller(SUPPORT), "/orders?", "orders", "order_id").await.len(), 6);
    let listed = app.shopper().get("/orders").await.json()["orders"][0].clone();
    assert_eq!(listed, app.shopper().get(&format!("/orders/{}", made[4])).await.json());
    app.shopper().get("/orders?cursor=ord_1").await.assert_problem(422, "validation_failed");
    app.shopper().get("/orders?status=confirmed").await.assert_problem(400, "malformed_request");

    // What is added meanwhile neither repeats nor hides anything.
    let page = app.shopper().get("/orders?limit=2").await.json();
    app.shopper().ordered("6", &mugs()).await;
    let next = page["next_cursor"].as_str().unwrap();
    let rest = app.shopper().get(&format!("/orders?cursor={next}")).await.json();
    assert_eq!(rest["orders"][0]["order_id"], newest_first[2]);
    assert_eq!(rest["orders"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmations_are_listed_by_the_status_that_they_have_now() {
    let app = TestApp::start().await;
    let shopper = app.shopper();
    let due = shopper.proposed("due", &mugs()).await;
    app.clock.advance(TTL);
    let confirmed = shopper.proposed("confirmed", &mugs()).await;
    shopper.confirm(&confirmed).await;
    let cancelled = shopper.proposed("cancelled", &mugs()).await;
    shopper.delete(&format!("/confirmations/{cancelled}")).await;
    let declined = shopper.proposed("declined", &cart("MUG-BLUE", 1, "pm_sandbox_declined")).await;
    shopper.confirm(&declined).await;
    let committing = shopper.proposed("committing", &cart("MUG-BLUE", 1, "pm_sandbox_timeout_before_charge")).await;
    shopper.confirm(&committing).await;
    let pending = shopper.proposed("pending", &mugs()).await;

    for (status, id) in [
        ("pending", &pending),
        ("committing", &committing),
        ("confirmed", &confirmed),
        ("declined", &declined),
        ("cancelled", &cancelled),
        ("expired", &due),
    ] {
        let list = shopper.get(&format!("/confirmations?status={status}")).await.json();
        assert_eq!(list["confirmations"].as_array().unwrap().len(), 1, "{status}");
        assert_eq!(list["confirmations"][0], shopper.get(&format!("/confirmations/{id}")).await.json());
        assert_eq!(list["confirmations"][0]["status"], status);
    }
    let all = [pending, committing, declined, cancelled, confirmed, due];
    assert_eq!(walk(shopper, "/confirmations?", "confirmations", "confirmation_id").await, all);
    assert_eq!(walk(app.caller(SECOND), "/confirmations?", "confirmations", "confirmation_id").await, [""; 0]);
    shopper.get("/confirmations?status=open").await.assert_problem(400, "malformed_request");
    shopper.get("/confirmations?cursor=ord_1").await.assert_problem(422, "validation_failed");
}
