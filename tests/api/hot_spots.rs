//! Hot spots: 128 clients, each with a connection of its own, on one product, one key, one confirmation, one order, one
//! discount code. They wait for each other, and nobody is told of it: what can be had is had to the last piece and no
//! piece twice, and nothing ends in 5xx.

use crate::refunds::{hundred, without_lookalikes};
use crate::support::*;
use countersign::config::Config;
use countersign::domain::actor::{Scope, Scopes};
use countersign::operations::actors;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;

const CLIENTS: usize = 128;

/// Clients that share no connection. Each has an actor of its own, who may do anything: calls of one actor would wait for
/// each other before they come to the hot spot.
struct Crowd {
    url: String,
    clients: Vec<reqwest::Client>,
    keys: Vec<String>,
}

impl Crowd {
    async fn of(app: &TestApp) -> Self {
        let made = (0..CLIENTS).map(async |n| {
            let (account, name, scopes) = ("crowd".to_owned(), format!("client-{n}"), Scopes::new(Scope::ALL));
            actors::create(&app.context.store, account, name, scopes).await.unwrap().1
        });
        let clients = (0..CLIENTS).map(|_| reqwest::Client::new()).collect();
        Self { url: app.url.clone(), clients, keys: join_all(made).await }
    }

    fn client(&self, n: usize) -> Caller<'_> {
        Caller::new(&self.clients[n], &self.url, &self.keys[n])
    }

    /// Each acts, all at once. What they got is in their order.
    async fn all<T>(&self, act: impl AsyncFn(usize, Caller<'_>) -> T) -> Vec<T> {
        join_all((0..CLIENTS).map(|n| act(n, self.client(n)))).await
    }

    /// The same, as one actor.
    async fn all_as<T>(&self, credential: &str, act: impl AsyncFn(usize, Caller<'_>) -> T) -> Vec<T> {
        join_all((0..CLIENTS).map(|n| act(n, Caller::new(&self.clients[n], &self.url, credential)))).await
    }
}

/// The queue for a row can be long on a slow machine. No provider is slow here.
fn patient(config: &mut Config) {
    config.settings.max_pending = 10_000;
    config.settings.provider_timeout = Duration::from_secs(30);
    config.settings.lease = Duration::from_secs(60);
}

/// What the clients buy whose hot spot isn't a product.
const PRODUCTS: [&str; 8] =
    ["MUG-BLUE", "MUG-TRAVEL", "SHIRT-M", "BOOK-ATLAS", "GIFT-WRAP", "POSTER-BIRDS", "TOWELS-LINEN", "VASE-BUD"];

/// To an address of its own: equal carts would be attempts at one purchase.
fn one(product: &str, n: usize) -> Value {
    with(cart(product, 1, "pm_sandbox_ok"), "/shipping_address/line1", json!(format!("{n} Market Street")))
}

/// Sends it again for as long as the first of its kind is running. How often is no matter here, so it doesn't wait for
/// `Retry-After`.
async fn decided(send: impl AsyncFn() -> Got) -> Got {
    for _ in 0..500 {
        let got = send().await;
        match got.status {
            409 if matches!(got.code().as_str(), "idempotency_in_flight" | "operation_in_flight") => {}
            _ => return got,
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never decided")
}

fn count(got: &[Got], status: u16) -> usize {
    got.iter().filter(|got| got.status == status).count()
}

/// Those that have it.
fn made(got: &[Got]) -> impl Iterator<Item = &Got> {
    got.iter().filter(|got| got.status < 300)
}

#[track_caller]
fn assert_others(got: &[Got], status: u16, code: &str) {
    for refused in got.iter().filter(|got| got.status >= 300) {
        refused.assert_problem(status, code);
    }
}

/// One of them was carried out, and all have its bytes.
#[track_caller]
fn assert_one_execution(got: &[Got], status: u16) -> Got {
    let executed: Vec<&Got> = got.iter().filter(|got| !got.is_replay()).collect();
    assert_eq!((executed.len(), executed[0].status), (1, status), "{}", executed[0].text());
    got.iter().filter(|got| got.is_replay()).for_each(|got| got.assert_replay_of(executed[0]));
    executed[0].clone()
}

fn confirmation(got: &Got) -> String {
    got.json()["confirmation_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn f24_of_128_buyers_of_50_units_50_have_an_order_and_nobody_else_is_charged() {
    let app = TestApp::with(patient).await;
    app.set_stock("MUG-BLUE", 50);
    let buy = async |n: usize, caller: Caller<'_>| {
        let got = caller.propose(&format!("k{n}"), &one("MUG-BLUE", n)).await;
        if got.status == 201 { caller.confirm(&confirmation(&got)).await } else { got }
    };
    let got = Crowd::of(&app).await.all(buy).await;
    assert_eq!(count(&got, 200), 50);
    assert_others(&got, 409, "insufficient_stock");
    let orders = app.number("SELECT count(*) AS n FROM orders");
    assert_eq!((orders, app.charges()), (50, 50));
    assert_eq!(app.number("SELECT stock + held AS n FROM products WHERE product_id = 'MUG-BLUE'"), 0);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f24_what_the_merchant_counts_meanwhile_loses_no_sale() {
    let app = TestApp::with(patient).await;
    app.set_stock("MUG-BLUE", 10_000);
    let is_merchant = |n: usize| n.is_multiple_of(8);
    let act = async |n: usize, caller: Caller<'_>| {
        let key = format!("k{n}");
        if !is_merchant(n) {
            let id = caller.proposed(&key, &one("MUG-BLUE", n)).await;
            return caller.confirm(&id).await;
        }
        let set = json!({"stock": 10_000 + n, "description": format!("Count {n}.")});
        let updates = json!([{"product_id": "MUG-BLUE", "set": set}]);
        caller.update(&key, &json!({"mode": "atomic", "updates": updates})).await
    };
    let got = Crowd::of(&app).await.all(act).await;
    assert_eq!(count(&got, 200), CLIENTS, "{got:?}");
    assert_eq!(app.charges(), 112);
    assert_eq!(app.number("SELECT version AS n FROM products WHERE product_id = 'MUG-BLUE'"), 1 + 16);
    app.assert_consistent(); // set − sold = stock
}

#[tokio::test(flavor = "multi_thread")]
async fn f29_f11_128_clients_with_one_key_and_one_confirmation_buy_once() {
    let app = TestApp::with(patient).await;
    let crowd = Crowd::of(&app).await;
    let cart = one("MUG-BLUE", 1);
    let proposed = crowd.all_as(SHOPPER, async |_, caller| decided(async || caller.propose("k", &cart).await).await);
    let proposed = assert_one_execution(&proposed.await, 201);
    let id = confirmation(&proposed);
    let confirmed = crowd.all_as(SHOPPER, async |n, caller| {
        let key = format!("c{}", n % 4);
        let confirm =
            async || if n % 2 == 0 { caller.confirm(&id).await } else { caller.confirm_keyed(&id, &key).await };
        decided(confirm).await
    });
    assert_one_execution(&confirmed.await, 200);
    let count = |table: &str| app.number(&format!("SELECT count(*) AS n FROM {table}"));
    assert_eq!((count("confirmations"), count("orders"), app.charges()), (1, 1, 1));
    assert_eq!(number(&app.ledger(), "SELECT max(count) AS n FROM attempts"), 1);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f01_of_128_refunds_of_one_order_those_that_it_covers_are_made() {
    let app = TestApp::with(|config| {
        patient(config);
        without_lookalikes(config);
    })
    .await;
    let order = hundred(&app, "o").await;
    let crowd = Crowd::of(&app).await;
    let part = refund(&order, "2.50", "USD");
    let ask = async |n: usize, caller: Caller<'_>| {
        let key = format!("r{n}");
        decided(async || caller.refund(&key, &part).await).await
    };
    let got = crowd.all(ask).await;
    assert_eq!(count(&got, 201), 40);
    assert_others(&got, 409, "refund_exceeds_remaining");
    for (again, first) in crowd.all(ask).await.iter().zip(&got) {
        again.assert_replay_of(first);
    }
    assert_eq!(app.given_back(), (40, 10_000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f01_of_128_equal_refunds_one_is_made_in_one_step_and_one_in_two() {
    let app = TestApp::with(patient).await;
    let order = hundred(&app, "o").await;
    let crowd = Crowd::of(&app).await;
    let ten = refund(&order, "10.00", "USD");
    let got = crowd.all_as(SUPPORT, async |n, caller| caller.refund(&format!("r{n}"), &ten).await).await;
    assert_eq!((count(&got, 201), count(&got, 202)), (1, 9), "what is offered is reserved");
    assert_others(&got, 409, "refund_exceeds_remaining");
    assert_eq!(app.given_back(), (1, 1_000));

    let offers: Vec<String> = got.iter().filter(|got| got.status == 202).map(confirmation).collect();
    let confirm = async |n: usize, caller: Caller<'_>| {
        let id = &offers[n % offers.len()];
        decided(async || caller.confirm_refund(id).await).await
    };
    let got = crowd.all_as(SUPPORT, confirm).await;
    let made = got.iter().filter(|got| got.status == 200 && !got.is_replay()).count();
    assert_eq!(made, 1, "the others are shown it first");
    for refused in got.iter().filter(|got| got.status != 200) {
        assert!(matches!(refused.code().as_str(), "attempt_pending" | "equal_refund_made"), "{}", refused.text());
    }
    assert_eq!(app.given_back(), (2, 2_000));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f12_a_code_for_20_is_held_20_times_and_what_is_cancelled_is_had_again() {
    let app = TestApp::with(patient).await;
    app.set_stock("%", 10_000);
    app.execute("UPDATE discounts SET use_limit = 20 WHERE code = 'FIRST3'");
    let crowd = Crowd::of(&app).await;
    let propose = async |round: usize| {
        let propose = async |n: usize, caller: Caller<'_>| {
            let cart = with(one(PRODUCTS[n % 8], n), "/discount_codes", json!(["FIRST3"]));
            caller.propose(&format!("{round}-{n}"), &cart).await
        };
        let got = crowd.all(propose).await;
        assert_others(&got, 409, "discount_unavailable");
        got
    };
    let code = |what: &str| app.number(&format!("SELECT {what} AS n FROM discounts WHERE code = 'FIRST3'"));

    let first = propose(1).await;
    assert_eq!((count(&first, 201), code("held"), code("used")), (20, 20, 0));
    // Half of the holders cancel, each twice at once; the others confirm.
    let holders: Vec<usize> = (0..CLIENTS).filter(|&n| first[n].status == 201).collect();
    let ends = join_all(holders.iter().enumerate().map(async |(i, &n)| {
        let (caller, id) = (crowd.client(n), confirmation(&first[n]));
        let path = format!("/confirmations/{id}");
        match i % 2 {
            0 => <[Got; 2]>::from(tokio::join!(caller.delete(&path), caller.delete(&path))).map(|got| got.status),
            _ => [caller.confirm(&id).await.status; 2],
        }
    }));
    for mut ends in ends.await {
        ends.sort_unstable();
        assert!(matches!(ends, [204, 404] | [200, 200]), "{ends:?}");
    }
    assert_eq!((code("held"), code("used")), (0, 10));

    let second = propose(2).await;
    assert_eq!((made(&second).count(), code("held"), code("used")), (10, 10, 10));
    assert_eq!(made(&propose(3).await).count(), 0);
    assert_eq!((app.charges(), app.number("SELECT count(*) AS n FROM orders")), (10, 10));
    app.assert_consistent();
}
