//! A real server in this process, on a free port, with databases of its own and a clock that the test moves.

pub use crate::contract::assert_documented;
pub use crate::home::*;
use countersign::app::App;
use countersign::clock::Clock;
use countersign::config::Config;
use countersign::database::DatabaseUrl;
use countersign::database::postgres::PostgresSettings;
use countersign::domain::refund::{Approver, RefundPolicy, Thresholds};
use countersign::domain::time::Timestamp;
use countersign::effects::Retention;
use countersign::operations::authenticate::DemoActors;
use countersign::operations::check::{self, Finding};
use countersign::operations::{Context, Settings};
use countersign::payments::sandbox;
use countersign::store::StoreConfig;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

pub const SHOPPER: &str = "csk_demo_shopper";
pub const SECOND: &str = "csk_demo_second";
pub const STRANGER: &str = "csk_demo_stranger";
pub const SUPPORT: &str = "csk_demo_support";
pub const APPROVER: &str = "csk_demo_approver";
pub const MERCHANT: &str = "csk_demo_merchant";
pub const READONLY: &str = "csk_demo_readonly";
pub const TTL: Duration = Duration::from_secs(15 * 60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub struct TestApp {
    pub url: String,
    pub clock: Clock,
    pub context: Context,
    pub home: Home,
    http: reqwest::Client,
    server: actix_web::dev::ServerHandle,
}

impl TestApp {
    pub async fn start() -> Self {
        Self::with(|_| ()).await
    }

    /// Workers look once at the start and then not for an hour, so that a test decides what happens when.
    pub async fn with(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::at(Home::new(), adjust).await
    }

    /// For what only the embedded database does.
    pub async fn on_sqlite(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::at(Home::on_sqlite(), adjust).await
    }

    async fn at(home: Home, adjust: impl FnOnce(&mut Config)) -> Self {
        let clock = Clock::manual(Timestamp::from_unix_millis(1_796_117_400_000).unwrap());
        let mut config = Config {
            bind: "127.0.0.1:0".parse().unwrap(),
            demo: DemoActors::Admitted,
            store: store_config(&home.database),
            sandbox: home.ledger.clone(),
            sandbox_delay: Duration::from_millis(300),
            settings: Settings {
                confirmation_ttl: TTL,
                max_pending: 100,
                retention: Retention::DEFAULT,
                provider_timeout: Duration::from_secs(1),
                lease: Duration::from_secs(30),
                refunds: RefundPolicy {
                    thresholds: Thresholds::parse(Thresholds::DEFAULT).unwrap(),
                    lookalike_window: Duration::from_secs(600),
                    approver: Approver::Same,
                },
                worker_interval: Duration::from_secs(3600),
            },
            shutdown_grace: Duration::from_secs(1),
            clock: clock.clone(),
        };
        adjust(&mut config);
        let app = App::build(config).await.unwrap();
        let (url, context, server) = (format!("http://{}", app.address), app.context.clone(), app.handle());
        tokio::spawn(app.run());
        Self { url, clock, context, home, http: reqwest::Client::new(), server }
    }

    pub fn shopper(&self) -> Caller<'_> {
        self.caller(SHOPPER)
    }

    pub fn caller(&self, key: &'static str) -> Caller<'_> {
        Caller { http: &self.http, url: &self.url, credential: key }
    }

    pub fn database(&self) -> DatabaseUrl {
        self.home.database.clone()
    }

    pub fn ledger(&self) -> DatabaseUrl {
        self.home.ledger.clone()
    }

    pub fn number(&self, sql: &str) -> i64 {
        number(&self.database(), sql)
    }

    pub fn execute(&self, sql: &str) {
        batch(&self.database(), sql);
    }

    /// Sets the stock of products, as a batch update would.
    pub fn set_stock(&self, products: &str, stock: i64) {
        let random = if self.home.is_postgres() { "md5(random()::text)" } else { "lower(hex(randomblob(16)))" };
        self.execute(&format!(
            "INSERT INTO stock_changes SELECT 'stc_' || {random}, product_id, stock, {stock}, NULL, updated_at \
             FROM products WHERE product_id LIKE '{products}'; \
             UPDATE products SET stock = {stock} WHERE product_id LIKE '{products}'"
        ));
    }

    /// Every row of every table, as text.
    pub fn dump(&self) -> String {
        dump(&self.database())
    }

    /// Successful charges in the provider's own books.
    pub fn charges(&self) -> i64 {
        charges(&self.ledger())
    }

    /// Successful refunds in the provider's own books, and their sum in minor units.
    pub fn given_back(&self) -> (i64, i64) {
        let of = |what: &str| {
            let sql = format!("SELECT {what} AS n FROM ledger WHERE outcome = 'succeeded' AND refund_of IS NOT NULL");
            number(&self.ledger(), &sql)
        };
        (of("count(*)"), of("coalesce(sum(amount_minor), 0)"))
    }

    /// What has to hold at the end of every story.
    pub fn assert_consistent(&self) {
        assert_consistent_at(&self.database(), &self.ledger(), self.clock.now());
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

pub const POSTGRES: PostgresSettings = PostgresSettings {
    connections: 8,
    lock_timeout: Duration::from_secs(2),
    statement_timeout: Duration::from_secs(10),
};

pub fn store_config(url: &DatabaseUrl) -> StoreConfig {
    StoreConfig { url: url.clone(), write_batch: 64, postgres: POSTGRES }
}

pub fn charges(ledger: &DatabaseUrl) -> i64 {
    number(ledger, "SELECT count(*) AS n FROM ledger WHERE outcome = 'succeeded' AND refund_of IS NULL")
}

/// `countersign check` finds nothing wrong, whatever is undecided.
pub fn assert_consistent(database: &DatabaseUrl, ledger: &DatabaseUrl) {
    assert_consistent_at(database, ledger, Clock::System.now());
}

fn assert_consistent_at(database: &DatabaseUrl, ledger: &DatabaseUrl, now: Timestamp) {
    let wrong = findings(database, ledger, now);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What `countersign check` finds wrong.
pub fn findings(database: &DatabaseUrl, ledger: &DatabaseUrl, now: Timestamp) -> Vec<Finding> {
    let mut found = all_findings(database, ledger, now);
    found.retain(|finding| matches!(finding, Finding::Wrong(_)));
    found
}

/// And what it finds undecided.
pub fn all_findings(database: &DatabaseUrl, ledger: &DatabaseUrl, now: Timestamp) -> Vec<Finding> {
    check::check(&store_config(database), || sandbox::books(ledger, POSTGRES), now).unwrap().findings
}

#[derive(Clone, Copy)]
pub struct Caller<'a> {
    http: &'a reqwest::Client,
    url: &'a str,
    credential: &'a str,
}

impl<'a> Caller<'a> {
    pub fn new(http: &'a reqwest::Client, url: &'a str, credential: &'a str) -> Self {
        Self { http, url, credential }
    }

    pub fn request(self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url)).bearer_auth(self.credential)
    }

    pub async fn get(self, path: &str) -> Got {
        send(self.request(Method::GET, path)).await
    }

    pub async fn delete(self, path: &str) -> Got {
        send(self.request(Method::DELETE, path)).await
    }

    pub async fn post(self, path: &str, body: &Value) -> Got {
        send(self.request(Method::POST, path).json(body)).await
    }

    pub async fn post_keyed(self, path: &str, key: &str, body: &Value) -> Got {
        send(self.request(Method::POST, path).header("Idempotency-Key", key).json(body)).await
    }

    /// A body as it stands, to the byte.
    pub async fn post_raw(self, path: &str, key: &str, body: impl Into<reqwest::Body>) -> Got {
        let request = self.request(Method::POST, path).header("Idempotency-Key", key);
        send(request.header("Content-Type", "application/json").body(body)).await
    }

    pub async fn propose(self, key: &str, cart: &Value) -> Got {
        self.post_keyed("/checkout", key, cart).await
    }

    /// Proposes and returns the confirmation's id.
    pub async fn proposed(self, key: &str, cart: &Value) -> String {
        let got = self.propose(key, cart).await;
        assert_eq!(got.status, 201, "{}", got.text());
        got.json()["confirmation_id"].as_str().unwrap().to_owned()
    }

    /// Proposes and confirms, and returns the order's id.
    pub async fn ordered(self, key: &str, cart: &Value) -> String {
        let id = self.proposed(key, cart).await;
        let got = self.confirm(&id).await;
        assert_eq!(got.status, 200, "{}", got.text());
        got.json()["order_id"].as_str().unwrap().to_owned()
    }

    pub async fn update(self, key: &str, batch: &Value) -> Got {
        self.post_keyed("/products-batch-update", key, batch).await
    }

    pub async fn set_address(self, order: &str, address: &Value) -> Got {
        send(self.request(Method::PUT, &format!("/orders/{order}/shipping-address")).json(address)).await
    }

    pub async fn refund(self, key: &str, refund: &Value) -> Got {
        self.post_keyed("/refunds", key, refund).await
    }

    pub async fn confirm_refund(self, id: &str) -> Got {
        send(self.request(Method::POST, &format!("/confirm-refund/{id}"))).await
    }

    pub async fn confirm(self, id: &str) -> Got {
        send(self.request(Method::POST, &format!("/confirm-checkout/{id}"))).await
    }

    pub async fn confirm_keyed(self, id: &str, key: &str) -> Got {
        let request = self.request(Method::POST, &format!("/confirm-checkout/{id}"));
        send(request.header("Idempotency-Key", key)).await
    }
}

/// Sends it, and holds the answer against the document.
pub async fn send(request: reqwest::RequestBuilder) -> Got {
    try_send(request).await.unwrap()
}

/// Fails where the server dies meanwhile.
pub async fn try_send(request: reqwest::RequestBuilder) -> reqwest::Result<Got> {
    let (http, request) = request.build_split();
    let request = request.unwrap();
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let response = http.execute(request).await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let got = Got { status: status.as_u16(), headers, body: response.bytes().await?.to_vec() };
    assert_documented(&method, &path, &got);
    Ok(got)
}

#[derive(Debug, Clone)]
pub struct Got {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: Vec<u8>,
}

impl Got {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{} {}", self.status, self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn is_replay(&self) -> bool {
        self.header("Idempotent-Replayed") == Some("true")
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn assert_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text());
        assert_eq!(self.header("Content-Type"), Some("application/problem+json"));
        let retries = self.json()["recovery"] == "retry_same_key";
        if retries || status == 503 {
            let seconds: u64 = self.header("Retry-After").expect("Retry-After").parse().unwrap();
            assert_eq!(self.json()["retry_after_seconds"], seconds);
        }
        assert_ne!(StatusCode::from_u16(status).unwrap(), 500, "{}", self.text());
        self.json()
    }

    #[track_caller]
    pub fn assert_replay_of(&self, first: &Got) {
        assert!(self.is_replay(), "{} {}", self.status, self.text());
        assert_eq!(self.status, first.status);
        assert_eq!(self.body, first.body, "{}\n{}", self.text(), first.text());
        assert_eq!(self.header("Location"), first.header("Location"));
        assert_eq!(self.header("Content-Type"), first.header("Content-Type"));
    }
}

/// A cart of one product, paid with a method of the sandbox.
pub fn cart(product: &str, quantity: i64, method: &str) -> Value {
    json!({
        "items": [{"product_id": product, "quantity": quantity}],
        "shipping_address": address("US"),
        "payment_method": method,
    })
}

pub fn mugs() -> Value {
    cart("MUG-BLUE", 2, "pm_sandbox_ok")
}

pub fn address(country: &str) -> Value {
    json!({"name": "Ada Lovelace", "line1": "1 Market Street", "city": "Springfield", "postal_code": "94105", "country": country})
}

/// A refund of an amount in decimal notation.
pub fn refund(order: &str, amount: &str, currency: &str) -> Value {
    json!({"order_id": order, "amount": {"amount": amount, "currency": currency}, "reason": "damaged"})
}

/// The same value with one member set; null takes it away.
pub fn with(mut value: Value, pointer: &str, new: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    let parent = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match new {
        Value::Null => drop(parent.remove(member)),
        new => drop(parent.insert(member.to_owned(), new)),
    }
    value
}

/// Polls until it holds; fails after ten seconds.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}
