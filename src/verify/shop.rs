//! The contract's calls, as questions make them, and what has to hold before any question can be asked.

use super::answer::{Answer, money_of};
use super::client::{Call, Client, Credential};
use super::document::Document;
use super::{Stop, VerifyArgs, ensure};
use crate::domain::ids::ProductId;
use crate::domain::money::{Currency, Money};
use reqwest::Method;
use serde_json::{Value, json};

/// Cheap, in minor units of any currency: 20.00 USD, 2,000 JPY, 2.000 KWD. Small refunds of it stay small.
const CHEAP: i64 = 2000;
/// What an order has to come to, in minor units, for parts of it to be refunded.
const PARTS: i64 = 100;
/// Units that all questions together may take.
const ENOUGH: i64 = 20;
const COUNTRIES: &[&str] = &["US", "DE", "FR", "GB", "JP", "KW", "CA"];
/// How often something may move under a call that changes nothing: other customers buy, too.
const LOOKS: usize = 3;

pub struct Shop {
    pub client: Client,
    document: Result<Document, String>,
    pub product: String,
    title: String,
    payment_method: String,
    country: &'static str,
}

/// A pending checkout.
pub struct Proposal {
    pub id: String,
    pub total: Money,
    pub cart: Value,
    pub key: String,
    pub answer: Answer,
}

pub struct Order {
    pub id: String,
    pub total: Money,
}

/// Nobody has ever used it.
pub fn new_key() -> String {
    format!("verify-{}", uuid::Uuid::new_v4().simple())
}

/// So many minor units.
pub fn minor(units: i64, currency: Currency) -> Result<Money, Stop> {
    Money::from_minor(units, currency).map_err(|_| Stop::Failed("an amount out of range".into()))
}

/// A value of `--product`.
pub fn product_id(text: &str) -> Result<String, String> {
    ProductId::parse(text).map(|id| id.to_string()).ok_or_else(|| "expected a product's id".into())
}

impl Shop {
    /// Finds something to buy, and sees to it that the key may do what questions do. Nothing is written.
    pub async fn open(args: &VerifyArgs) -> Result<Self, Stop> {
        let client = Client::new(&args.url, &args.key)?;
        let (product, title) = choose(&client, args.product.as_deref()).await?;
        let payment_method = args.payment_method.clone();
        let document = Document::read(&client).await.map_err(Stop::why);
        let mut shop = Self { client, document, product, title, payment_method, country: "" };
        shop.country = shop.place_to_ship_to().await?;
        shop.require_scopes(args.other_key.as_deref()).await?;
        Ok(shop)
    }

    async fn place_to_ship_to(&self) -> Result<&'static str, Stop> {
        let mut refusal = String::new();
        for &country in COUNTRIES {
            let cart = self.cart_to(country);
            let answer = permitted("--key", self.client.send(Call::post("/checkout-dry-run").json(&cart)).await?)?;
            if answer.status == 200 {
                let enough = answer.money("/plan/total")?.minor() >= PARTS;
                ensure(enough, || format!("{} costs too little to refund parts of it", self.product))?;
                return Ok(country);
            }
            refusal = format!("{} ({})", answer.says(), answer.json["detail"].as_str().unwrap_or("no detail"));
            if answer.json["code"] != "shipping_unavailable" {
                break;
            }
        }
        Err(Stop::Unable(format!("{} can't be bought: {refusal}", self.product)))
    }

    /// Calls that can't do anything (no such thing, or no body to speak of): authorisation is what comes first.
    async fn require_scopes(&self, other_key: Option<&str>) -> Result<(), Stop> {
        let nothing = "00000000000000000000000000000000";
        let posts = ["/checkout", "/refunds-dry-run", "/refunds", "/products-batch-update"];
        let posts = posts.map(|path| Call::post(path).key(&new_key()).json(&json!({})));
        let confirm = Self::confirm(&format!("cnf_{nothing}"));
        for call in posts.into_iter().chain([confirm.clone(), Call::get(format!("/orders/ord_{nothing}"))]) {
            permitted("--key", self.client.send(call).await?)?;
        }
        if let Some(key) = other_key {
            for call in [Call::get(format!("/confirmations/cnf_{nothing}")), confirm] {
                permitted("--other-key", self.client.send(call.by(Credential::Of(key.to_owned()))).await?)?;
            }
        }
        Ok(())
    }

    pub fn document(&self) -> Result<&Document, Stop> {
        self.document.as_ref().map_err(|why| Stop::Failed(why.clone()))
    }

    /// One unit, to an address that no other cart has: it looks like no other purchase.
    pub fn cart(&self) -> Value {
        self.cart_to(self.country)
    }

    fn cart_to(&self, country: &str) -> Value {
        let address = json!({
            "name": "Countersign Verify",
            "line1": format!("{} Market Street", uuid::Uuid::new_v4().simple()),
            "city": "Springfield",
            "postal_code": "94105",
            "country": country,
        });
        let items = json!([{"product_id": self.product, "quantity": 1}]);
        json!({"items": items, "shipping_address": address, "payment_method": self.payment_method})
    }

    /// A write of the catalogue that leaves everything as it is.
    pub fn update(&self) -> Value {
        json!({"mode": "per_item", "updates": [{"product_id": self.product, "set": {"title": self.title}}]})
    }

    pub async fn get(&self, path: impl Into<String>) -> Result<Answer, Stop> {
        self.client.send(Call::get(path)).await?.expect_fresh(&[200])
    }

    pub async fn propose(&self, key: &str, cart: &Value) -> Result<Answer, Stop> {
        self.client.send(Call::post("/checkout").key(key).json(cart)).await
    }

    pub async fn proposed(&self) -> Result<Proposal, Stop> {
        let (key, cart) = (new_key(), self.cart());
        let answer = for_sale(self.propose(&key, &cart).await?)?.expect_fresh(&[201])?;
        let (id, total) = (answer.text("/confirmation_id")?.to_owned(), answer.money("/total")?);
        Ok(Proposal { id, total, cart, key, answer })
    }

    pub fn confirm(id: &str) -> Call {
        Call::post(format!("/confirm-checkout/{id}"))
    }

    pub async fn ordered(&self) -> Result<Order, Stop> {
        let id = self.proposed().await?.id;
        let confirmed = for_sale(self.client.send(Self::confirm(&id)).await?)?.expect_fresh(&[200])?;
        Ok(Order { id: confirmed.text("/order_id")?.to_owned(), total: confirmed.money("/total")? })
    }

    pub async fn refund(&self, key: &str, refund: &Value) -> Result<Answer, Stop> {
        self.client.send(Call::post("/refunds").key(key).json(refund)).await
    }

    /// What can still be refunded of an order, as it says itself.
    pub async fn remaining(&self, order: &Order) -> Result<Money, Stop> {
        self.get(format!("/orders/{}", order.id)).await?.money("/remaining_refundable")
    }

    /// What these calls can move: own confirmations, orders, the product.
    async fn standing(&self) -> Result<[Value; 3], Stop> {
        let product = format!("/products/{}", self.product);
        let (confirmations, orders) = (self.get("/confirmations").await?, self.get("/orders").await?);
        Ok([confirmations.json, orders.json, self.get(product).await?.json])
    }

    /// Makes calls that have to leave everything as it is; `what` names them.
    pub async fn without_effect<T>(
        &self,
        what: &str,
        mut call: impl AsyncFnMut() -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        for _ in 0..LOOKS {
            let before = self.standing().await?;
            let done = call().await?;
            if self.standing().await? == before {
                return Ok(done);
            }
        }
        Err(Stop::Failed(format!("{what}: confirmations, orders or the product changed, {LOOKS} times of {LOOKS}")))
    }

    /// Cancels what was proposed and not confirmed. What can't be cancelled expires.
    pub async fn tidy(&self) {
        let open = std::mem::take(&mut self.client.watch.borrow_mut().open);
        for id in open {
            let _ = self.client.send(Call::new(Method::DELETE, format!("/confirmations/{id}"))).await;
        }
    }
}

impl Order {
    /// A refund in minor units.
    pub fn refund(&self, units: i64) -> Result<Value, Stop> {
        Ok(json!({"order_id": self.id, "amount": minor(units, self.total.currency())?, "reason": "other"}))
    }

    /// What is left after so many minor units.
    pub fn less(&self, units: i64) -> Result<Money, Stop> {
        minor(self.total.minor() - units, self.total.currency())
    }
}

/// The id and title of the product that was asked for, or of a cheap one.
async fn choose(client: &Client, wanted: Option<&str>) -> Result<(String, String), Stop> {
    let path = wanted.map_or_else(|| "/products?in_stock=true&limit=100".into(), |id| format!("/products/{id}"));
    let answer = permitted("--key", client.send(Call::get(path)).await?)?;
    ensure(answer.status == 200, || format!("{}: no product to buy", answer.says()))?;
    let cheap = |product: &&Value| {
        let price = money_of(&product["price"]);
        let enough = product["available"].as_i64().is_some_and(|available| available >= ENOUGH);
        enough && price.is_some_and(|price| (PARTS..=CHEAP).contains(&price.minor()))
    };
    let found = match wanted {
        Some(_) => Some(&answer.json),
        None => answer.json["products"].as_array().and_then(|products| products.iter().find(cheap)),
    };
    let texts = found.and_then(|found| found["product_id"].as_str().zip(found["title"].as_str()));
    let (id, title) =
        texts.ok_or_else(|| Stop::Unable(format!("no cheap product has {ENOUGH} units: name one with --product")))?;
    Ok((id.to_owned(), title.to_owned()))
}

/// A purchase that a shop may well refuse says nothing about how it deals with keys.
fn for_sale(answer: Answer) -> Result<Answer, Stop> {
    const NOT_NOW: [&str; 3] = ["insufficient_stock", "payment_declined", "too_many_pending"];
    let refused = NOT_NOW.iter().any(|code| answer.json["code"] == *code);
    if refused { Err(Stop::Unable(format!("nothing can be bought: {}", answer.says()))) } else { Ok(answer) }
}

/// Where the key of a flag isn't known, or lacks a scope, nobody can be asked.
pub fn permitted(flag: &str, answer: Answer) -> Result<Answer, Stop> {
    let detail = answer.json["detail"].as_str().unwrap_or_default();
    match answer.status {
        401 => Err(Stop::Unable(format!("the server doesn't know {flag}: {}", answer.says()))),
        403 => Err(Stop::Unable(format!("{flag} may not do what is asked: {}: {detail}", answer.says()))),
        _ => Ok(answer),
    }
}
