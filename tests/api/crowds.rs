//! Many buyers at once, each an actor of its own: what there is goes to as many of them as it is enough for.

use crate::support::*;
use countersign::config::Config;
use countersign::domain::actor::{Scope, Scopes};
use countersign::operations::{actors, expire};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::time::Duration;

struct Buyers {
    http: reqwest::Client,
    url: String,
    keys: Vec<String>,
}

impl Buyers {
    async fn of(app: &TestApp, count: usize) -> Self {
        let made = (0..count).map(async |n| {
            let (account, name, scopes) = (format!("account-{n}"), format!("buyer-{n}"), Scopes::new(Scope::ALL));
            actors::create(&app.context.store, account, name, scopes).await.unwrap().1
        });
        Self { http: reqwest::Client::new(), url: app.url.clone(), keys: join_all(made).await }
    }

    fn buyer(&self, n: usize) -> Caller<'_> {
        Caller::new(&self.http, &self.url, &self.keys[n])
    }

    /// Each buys the cart of its number, all at once: the answer to the confirm, or else to the proposal.
    async fn buy(&self, key: &str, cart: impl Fn(usize) -> Value) -> Vec<Got> {
        let buy = async |n: usize| {
            let got = self.buyer(n).propose(&format!("{key}-{n}"), &cart(n)).await;
            match got.status {
                201 => self.buyer(n).confirm(got.json()["confirmation_id"].as_str().unwrap()).await,
                _ => got,
            }
        };
        join_all((0..self.keys.len()).map(buy)).await
    }
}

/// The queue for a row can be long on a slow machine. No provider is slow here.
fn patient(config: &mut Config) {
    config.settings.provider_timeout = Duration::from_secs(30);
    config.settings.lease = Duration::from_secs(60);
}

fn asked(app: &TestApp) -> i64 {
    number(&app.ledger(), "SELECT sum(count) AS n FROM attempts")
}

#[tokio::test(flavor = "multi_thread")]
async fn f24_of_fifty_buyers_of_the_last_unit_one_has_it_and_no_other_is_charged() {
    let app = TestApp::with(patient).await;
    let buyers = Buyers::of(&app, 50).await;
    let got = buyers.buy("k", |_| cart("LAST-ONE", 1, "pm_sandbox_ok")).await;
    assert_eq!(got.iter().filter(|got| got.status == 200).count(), 1);
    for refused in got.iter().filter(|got| got.status != 200) {
        refused.assert_problem(409, "insufficient_stock");
    }
    assert_eq!((app.charges(), asked(&app)), (1, 1));
    assert_eq!(app.number("SELECT stock + held AS n FROM products WHERE product_id = 'LAST-ONE'"), 0);
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f24_carts_of_many_sizes_never_sell_more_than_there_is() {
    let app = TestApp::with(patient).await;
    app.set_stock("MUG-BLUE", 10);
    let buyers = Buyers::of(&app, 50).await;
    let sizes: Vec<i64> = (0..50).map(|_| 1 + i64::try_from(uuid::Uuid::new_v4().as_u128() % 4).unwrap()).collect();
    let got = buyers.buy("k", |n| cart("MUG-BLUE", sizes[n], "pm_sandbox_ok")).await;
    let mut sold = 0;
    for (got, size) in got.iter().zip(&sizes) {
        match got.status {
            200 => sold += size,
            _ => drop(got.assert_problem(409, "insufficient_stock")),
        }
    }
    let orders = got.iter().filter(|got| got.status == 200).count() as i64;
    let of_mugs = |what: &str| app.number(&format!("SELECT {what} AS n FROM products WHERE product_id = 'MUG-BLUE'"));
    assert_eq!((of_mugs("stock"), of_mugs("held")), (10 - sold, 0), "{sizes:?}");
    assert!(sizes.iter().zip(&got).all(|(size, got)| got.status == 200 || *size > 10 - sold), "{sizes:?}");
    assert_eq!((app.charges(), asked(&app)), (orders, orders));
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f12_a_code_for_one_goes_to_one_of_twenty_buyers_and_comes_back_once() {
    let app = TestApp::with(patient).await;
    app.execute("UPDATE discounts SET use_limit = 1 WHERE code = 'FIRST3'");
    let buyers = Buyers::of(&app, 20).await;
    let coded = |method: &str| with(cart("MUG-BLUE", 1, method), "/discount_codes", json!(["FIRST3"]));
    let got = buyers.buy("k", |_| coded("pm_sandbox_ok")).await;
    assert_eq!(got.iter().filter(|got| got.status == 200).count(), 1);
    for refused in got.iter().filter(|got| got.status != 200) {
        assert_eq!(refused.assert_problem(409, "discount_unavailable")["reason"], "used_up");
    }
    let code = |what: &str| app.number(&format!("SELECT {what} AS n FROM discounts WHERE code = 'FIRST3'"));
    assert_eq!((code("held"), code("used"), app.charges()), (0, 1, 1));

    app.execute("UPDATE discounts SET use_limit = 2 WHERE code = 'FIRST3'");
    for (n, end) in ["cancel", "decline", "expire"].into_iter().enumerate() {
        let buyer = buyers.buyer(n);
        let method = if end == "decline" { "pm_sandbox_declined" } else { "pm_sandbox_ok" };
        let id = buyer.proposed(end, &coded(method)).await;
        assert_eq!((code("held"), code("used")), (1, 1), "{end}");
        let path = format!("/confirmations/{id}");
        match end {
            "cancel" => drop(join_all((0..5).map(|_| buyer.delete(&path))).await),
            "decline" => drop(join_all((0..5).map(|_| buyer.confirm(&id))).await),
            _ => {
                app.clock.advance(TTL);
                for expired in join_all((0..5).map(|_| expire::expire_due(&app.context))).await {
                    expired.unwrap();
                }
            }
        }
        assert_eq!((code("held"), code("used")), (0, 1), "{end}");
    }
    app.assert_consistent();
}

#[tokio::test(flavor = "multi_thread")]
async fn f28_fifty_at_once_on_one_product_and_then_on_fifty_all_buy() {
    let app = TestApp::with(patient).await;
    let set = json!({"title": "New", "price": {"amount": 1, "currency": "USD"}, "stock": 51});
    let updates: Vec<Value> = (0..50).map(|n| json!({"product_id": format!("NEW-{n}"), "set": set})).collect();
    let batch = json!({"mode": "atomic", "updates": updates});
    assert_eq!(app.caller(MERCHANT).update("new", &batch).await.status, 200);
    let buyers = Buyers::of(&app, 50).await;
    let on_one = buyers.buy("one", |_| cart("NEW-0", 1, "pm_sandbox_ok")).await;
    let on_fifty = buyers.buy("fifty", |n| cart(&format!("NEW-{n}"), 1, "pm_sandbox_ok")).await;
    for got in on_one.iter().chain(&on_fifty) {
        assert_eq!(got.status, 200, "{}", got.text());
    }
    assert_eq!(
        (app.charges(), asked(&app)),
        (100, 100),
        "the provider is asked once, however often the rows are tried"
    );
    app.assert_consistent();
}

/// Undoes four of five transactions that make one of these rows. None makes two of them.
const UNDO: &str = "CREATE SEQUENCE tries; \
    CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    IF nextval('tries') % 5 <> 0 THEN RAISE serialization_failure; END IF; RETURN NEW; END $$; \
    CREATE TRIGGER undo BEFORE INSERT ON claims FOR EACH ROW EXECUTE FUNCTION undo(); \
    CREATE TRIGGER undo BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION undo(); \
    CREATE TRIGGER undo BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION undo()";

/// Undoes every one of this key's.
const ALWAYS: &str = "CREATE OR REPLACE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    IF TG_TABLE_NAME = 'claims' THEN IF NEW.idempotency_key = 'unlucky' THEN RAISE serialization_failure; END IF; END IF; \
    RETURN NEW; END $$";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn f28_what_postgresql_undoes_is_run_again_and_the_provider_is_not_asked_again() {
    let app = TestApp::with(patient).await;
    app.execute(UNDO);
    for n in 0..5 {
        let id = app.shopper().proposed(&format!("k{n}"), &mugs()).await;
        let got = app.shopper().confirm(&id).await;
        assert_eq!((got.status, got.is_replay()), (200, false), "{}", got.text());
    }
    assert_eq!((app.charges(), asked(&app)), (5, 5));
    assert_eq!(
        app.number("SELECT last_value AS n FROM tries"),
        5 * 3 * 5,
        "three transactions a purchase, each at the fifth"
    );

    app.execute(ALWAYS);
    let (cart, others) = (mugs(), (0..20).map(|n| format!("other{n}")).collect::<Vec<_>>());
    let (unlucky, lucky) = tokio::join!(
        app.shopper().propose("unlucky", &cart),
        join_all(others.iter().map(|key| app.shopper().propose(key, &cart))),
    );
    unlucky.assert_problem(503, "overloaded");
    assert!(lucky.iter().all(|got| got.status == 201), "other keys don't notice: {lucky:?}");
    assert_eq!(app.number("SELECT count(*) AS n FROM claims WHERE idempotency_key = 'unlucky'"), 0);
    app.execute("DROP TRIGGER undo ON claims");
    let got = app.shopper().propose("unlucky", &cart).await;
    assert_eq!((got.status, got.is_replay()), (201, false), "nothing of it was there");
    app.assert_consistent();
}
