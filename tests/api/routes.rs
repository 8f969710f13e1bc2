//! What holds for every operation of the effect catalogue. An operation without an example here doesn't compile.

use crate::support::*;
use countersign::domain::operation::Operation;
use countersign::effects::KeyRule;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// An actor that may do everything.
const ALL: &str = "csk_demo_all";

/// A call that succeeds.
struct Example {
    method: Method,
    path: String,
    body: Option<Value>,
}

impl Example {
    fn request(&self, caller: Caller) -> RequestBuilder {
        let request = caller.request(self.method.clone(), &self.path);
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }

    fn keyed(&self, caller: Caller, key: &str) -> RequestBuilder {
        self.request(caller).header("Idempotency-Key", key)
    }
}

/// The call, with whatever it needs made before.
async fn example(app: &TestApp, operation: Operation) -> Example {
    let caller = app.caller(ALL);
    let plain = operation.profile().path.to_owned();
    let (path, body) = match operation {
        Operation::SearchProducts => (plain + "?q=mug&in_stock=true&limit=2", None),
        Operation::GetProduct => ("/products/MUG-BLUE".into(), None),
        Operation::BatchGetProducts => (plain, Some(json!({"product_ids": ["MUG-BLUE"]}))),
        Operation::BatchSearchProducts => (plain, Some(json!({"queries": [{"q": "mug"}]}))),
        Operation::BatchUpdateProducts => {
            let update = json!({"product_id": "MUG-BLUE", "set": {"stock": 77}});
            (plain, Some(json!({"mode": "per_item", "updates": [update]})))
        }
        Operation::DryRunCheckout | Operation::ProposeCheckout => (plain, Some(mugs())),
        Operation::ListConfirmations | Operation::ListOrders => {
            caller.ordered("made-before", &mugs()).await;
            (plain, None)
        }
        Operation::GetConfirmation | Operation::CancelConfirmation => {
            (format!("/confirmations/{}", caller.proposed("made-before", &mugs()).await), None)
        }
        Operation::ConfirmCheckout => {
            (format!("/confirm-checkout/{}", caller.proposed("made-before", &mugs()).await), None)
        }
        Operation::GetOrder => (format!("/orders/{}", caller.ordered("made-before", &mugs()).await), None),
        Operation::SetShippingAddress => {
            let order = caller.ordered("made-before", &mugs()).await;
            (format!("/orders/{order}/shipping-address"), Some(with(address("US"), "/line1", json!("2 Market Street"))))
        }
        Operation::DryRunRefund | Operation::IssueRefund => {
            let order = caller.ordered("made-before", &mugs()).await;
            (plain, Some(refund(&order, "5.00", "USD")))
        }
        Operation::ConfirmRefund => {
            let order = caller.ordered("made-before", &cart("LAST-ONE", 1, "pm_sandbox_ok")).await;
            let offered = caller.refund("offered-before", &refund(&order, "100.01", "USD")).await.json();
            (format!("/confirm-refund/{}", offered["confirmation_id"].as_str().unwrap()), None)
        }
        Operation::GetRefund => {
            let order = caller.ordered("made-before", &mugs()).await;
            let made = caller.refund("refunded-before", &refund(&order, "5.00", "USD")).await;
            (made.header("Location").unwrap().to_owned(), None)
        }
        Operation::GetOperationStatus => {
            caller.proposed("made-before", &mugs()).await;
            (plain, None)
        }
        Operation::GetTask => {
            let call = caller.request(Method::POST, "/checkout").header("Agent-Task-Id", "t").json(&mugs());
            assert_eq!(send(call.header("Idempotency-Key", "made-before")).await.status, 201);
            ("/tasks/t".into(), None)
        }
    };
    Example { method: operation.profile().method.parse().unwrap(), path, body }
}

#[tokio::test(flavor = "multi_thread")]
async fn f40_every_write_demands_a_key_or_is_naturally_idempotent() {
    for operation in Operation::ALL {
        let app = TestApp::start().await;
        let (call, caller) = (example(&app, *operation).await, app.caller(ALL));
        let before = app.dump();
        match operation.profile().key {
            KeyRule::None => continue,
            KeyRule::Required => {
                send(call.request(caller)).await.assert_problem(400, "idempotency_key_required");
                assert_eq!(app.dump(), before, "{operation:?} without a key");
                let first = send(call.keyed(caller, "k")).await;
                let after = app.dump();
                assert!(first.status < 300 && after != before, "{operation:?}: {}", first.text());
                send(call.keyed(caller, "k")).await.assert_replay_of(&first);
                assert_eq!(app.dump(), after, "{operation:?} twice");
            }
            KeyRule::Natural => {
                let first = send(call.request(caller)).await;
                let after = app.dump();
                assert!(first.status < 300 && after != before, "{operation:?}: {}", first.text());
                let second = send(call.request(caller)).await;
                assert!(second.body == first.body || second.status == 404, "{operation:?}: {}", second.text());
                assert_eq!(app.dump(), after, "{operation:?} twice without a key");
            }
        }
        app.assert_consistent();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f40_with_a_key_every_naturally_idempotent_write_replays_too() {
    for operation in Operation::ALL.iter().filter(|o| o.profile().key == KeyRule::Natural) {
        let app = TestApp::start().await;
        let (call, caller) = (example(&app, *operation).await, app.caller(ALL));
        let first = send(call.keyed(caller, "k")).await;
        assert!(first.status < 300, "{operation:?}: {}", first.text());
        let after = app.dump();
        send(call.keyed(caller, "k")).await.assert_replay_of(&first);
        assert_eq!(app.dump(), after, "{operation:?} twice");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_ignore_keys_and_write_nothing() {
    for operation in Operation::ALL.iter().filter(|o| o.profile().key == KeyRule::None) {
        let app = TestApp::start().await;
        let (call, caller) = (example(&app, *operation).await, app.caller(ALL));
        app.context.tally.flush(&app.context.store).await.unwrap();
        let before = app.dump();
        let key = if *operation == Operation::GetOperationStatus { "made-before" } else { "\"" };
        for _ in 0..2 {
            let got = send(call.keyed(caller, key).header("Agent-Task-Id", "reader")).await;
            assert_eq!(got.status, 200, "{operation:?}: {}", got.text());
            assert!(!got.is_replay());
        }
        app.context.tally.flush(&app.context.store).await.unwrap();
        assert_eq!(app.dump(), before, "{operation:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f32_every_operation_needs_a_credential_an_enabled_actor_and_its_scope_also_on_replays() {
    let http = reqwest::Client::new();
    for operation in Operation::ALL {
        let app = TestApp::start().await;
        let (call, caller, profile) = (example(&app, *operation).await, app.caller(ALL), operation.profile());
        let scopes = |sql: &str| app.execute(&format!("UPDATE actors SET {sql} WHERE name = 'all'"));
        let every = "catalog:read catalog:write checkout:propose checkout:confirm orders:read orders:write orders:any \
                     refunds:create refunds:confirm";
        let without: Vec<&str> =
            every.split(' ').filter(|word| !profile.scopes.iter().any(|scope| scope.as_str() == *word)).collect();
        let key = if *operation == Operation::GetOperationStatus { "made-before" } else { "k" };

        for round in ["first call", "replay"] {
            let anonymous = http.request(call.method.clone(), format!("{}{}", app.url, call.path));
            send(anonymous).await.assert_problem(401, "unauthenticated");
            scopes("disabled_at = created_at");
            send(call.keyed(caller, key)).await.assert_problem(401, "unauthenticated");
            scopes("disabled_at = NULL");
            scopes(&format!("scopes = '{}'", without.join(" ")));
            let got = send(call.keyed(caller, key)).await;
            match *operation {
                Operation::GetOperationStatus => {
                    scopes("scopes = 'catalog:read'");
                    send(call.keyed(caller, key)).await.assert_problem(403, "insufficient_scope");
                }
                Operation::GetTask => assert_eq!(got.status, 200, "one's own task: {}", got.text()),
                _ => {
                    let problem = got.assert_problem(403, "insufficient_scope");
                    assert!(problem["detail"].as_str().unwrap().contains(profile.scopes[0].as_str()));
                }
            }
            scopes(&format!("scopes = '{every}'"));
            let got = send(call.keyed(caller, key)).await;
            assert!(got.status < 300, "{operation:?}, {round}: {}", got.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn f08_orders_confirmations_tasks_and_keys_of_others_look_like_nothing() {
    let app = TestApp::start().await;
    let shopper = app.shopper();
    let (order, pending) = (shopper.ordered("a", &mugs()).await, shopper.proposed("b", &mugs()).await);
    let task = shopper.request(Method::POST, "/checkout").header("Agent-Task-Id", "t").header("Idempotency-Key", "c");
    assert_eq!(send(task.json(&mugs())).await.status, 201);
    let stranger = app.caller(STRANGER);
    stranger.get(&format!("/orders/{order}")).await.assert_problem(404, "not_found");
    stranger.set_address(&order, &address("US")).await.assert_problem(404, "not_found");
    stranger.get(&format!("/confirmations/{pending}")).await.assert_problem(404, "not_found");
    stranger.delete(&format!("/confirmations/{pending}")).await.assert_problem(404, "not_found");
    stranger.confirm(&pending).await.assert_problem(404, "not_found");
    stranger.get("/tasks/t").await.assert_problem(404, "not_found");
    let status = stranger.request(Method::GET, "/operation-status").header("Idempotency-Key", "a");
    send(status).await.assert_problem(404, "not_found");
    for (list, member) in [("/orders", "orders"), ("/confirmations", "confirmations")] {
        assert_eq!(stranger.get(list).await.json()[member], json!([]));
        let cursor = if member == "orders" { &order } else { &pending };
        assert_eq!(stranger.get(&format!("{list}?cursor={cursor}")).await.json()[member], json!([]));
    }
    // The support desk sees every account's orders, but nobody's confirmations.
    assert_eq!(app.caller(SUPPORT).get("/orders").await.json()["orders"][0]["order_id"], order);
    assert_eq!(app.caller(SUPPORT).get("/confirmations").await.json()["confirmations"], json!([]));
}
