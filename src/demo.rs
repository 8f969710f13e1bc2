//! The demo: a sample shop and actors whose keys everybody knows. Loading it twice changes nothing.

use crate::domain::actor::{Scope, Scopes};
use crate::domain::digest::sha256_hex;
use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, ProductId};
use crate::domain::money::{Currency, Money};
use crate::domain::product::TaxClass;
use crate::domain::product_update::Listing;
use crate::domain::time::Timestamp;
use crate::store::actors::{self, Actor};
use crate::store::catalogue::{self, DiscountRow, ShippingRow, TaxRow};
use crate::store::{Db, Store, products};
use serde::Deserialize;
use serde::de::DeserializeOwned;

const SHOPPER: &[Scope] =
    &[Scope::CatalogRead, Scope::CheckoutPropose, Scope::CheckoutConfirm, Scope::OrdersRead, Scope::OrdersWrite];

/// Key, account, scopes. The last part of the key is the actor's name.
pub const ACTORS: &[(&str, &str, &[Scope])] = &[
    ("csk_demo_shopper", "demo", SHOPPER),
    ("csk_demo_second", "demo", SHOPPER),
    ("csk_demo_stranger", "elsewhere", SHOPPER),
    (
        "csk_demo_support",
        "support",
        &[Scope::OrdersAny, Scope::OrdersRead, Scope::RefundsCreate, Scope::RefundsConfirm],
    ),
    ("csk_demo_approver", "support", &[Scope::OrdersAny, Scope::OrdersRead, Scope::RefundsConfirm]),
    ("csk_demo_merchant", "store", &[Scope::CatalogRead, Scope::CatalogWrite]),
    ("csk_demo_readonly", "elsewhere", &[Scope::CatalogRead]),
    ("csk_demo_all", "demo", Scope::ALL),
];

#[derive(Deserialize)]
struct SeedProduct {
    product_id: ProductId,
    #[serde(flatten)]
    listing: Listing,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedShipping {
    option: String,
    countries: Vec<String>,
    business_days: (i64, i64),
    prices: Vec<Money>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedTax {
    country: String,
    region: Option<String>,
    tax_class: TaxClass,
    parts_per_million: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedDiscount {
    code: String,
    parts_per_million: Option<i64>,
    amount: Option<Money>,
    minimum: Option<Money>,
    expires_at: Option<Timestamp>,
    use_limit: Option<i64>,
}

/// Adds what is missing; a product that was sold or changed since keeps its state.
pub async fn load(store: &Store) -> Result<(), Problem> {
    store
        .write(|db, now| {
            for (key, account, scopes) in ACTORS {
                add_actor(db, key, account, scopes, now)?;
            }
            add_products(db, now)?;
            add_shipping(db)?;
            add_taxes(db)?;
            add_discounts(db)
        })
        .await
}

fn read<T: DeserializeOwned>(json: &str) -> Result<Vec<T>, Problem> {
    serde_json::from_str(json).map_err(Problem::internal)
}

fn add_actor(db: &mut Db, key: &str, account: &str, scopes: &[Scope], now: Timestamp) -> Result<(), Problem> {
    let actor = Actor {
        actor_id: ActorId::generate(),
        account_id: actors::account_named(db, account, now)?,
        name: key.trim_start_matches("csk_demo_").to_owned(),
        key_sha256: sha256_hex(key.as_bytes()),
        scopes: Scopes::new(scopes),
        demo: true,
        created_at: now,
        disabled_at: None,
    };
    actors::insert(db, &actor)?;
    Ok(())
}

fn add_products(db: &mut Db, now: Timestamp) -> Result<(), Problem> {
    for SeedProduct { product_id, listing } in read(include_str!("../seed/products.json"))? {
        let made = products::create(db, &product_id, &listing, None, now)?;
        if made.is_none() && !products::is_indexed(db, &product_id)? {
            products::index_again(db, &product_id)?;
        }
    }
    Ok(())
}

fn add_shipping(db: &mut Db) -> Result<(), Problem> {
    for seed in read::<SeedShipping>(include_str!("../seed/shipping.json"))? {
        for price in &seed.prices {
            let row = ShippingRow {
                option_id: seed.option.clone(),
                currency: price.currency(),
                price_minor: price.minor(),
                countries: seed.countries.join(" "),
                min_business_days: seed.business_days.0,
                max_business_days: seed.business_days.1,
            };
            catalogue::insert_shipping(db, &row)?;
        }
    }
    Ok(())
}

fn add_taxes(db: &mut Db) -> Result<(), Problem> {
    for seed in read::<SeedTax>(include_str!("../seed/taxes.json"))? {
        let place = seed.region.as_ref().map_or(seed.country.clone(), |region| format!("{}-{region}", seed.country));
        let row = TaxRow {
            tax_rate_id: format!("{place}/{}", seed.tax_class.as_str()),
            country: seed.country,
            region: seed.region,
            tax_class: seed.tax_class,
            parts_per_million: seed.parts_per_million,
        };
        catalogue::insert_tax_rate(db, &row)?;
    }
    Ok(())
}

fn add_discounts(db: &mut Db) -> Result<(), Problem> {
    for seed in read::<SeedDiscount>(include_str!("../seed/discounts.json"))? {
        let currency: Option<Currency> = seed.amount.or(seed.minimum).map(Money::currency);
        let row = DiscountRow {
            code: seed.code,
            parts_per_million: seed.parts_per_million,
            amount_minor: seed.amount.map(Money::minor),
            minimum_minor: seed.minimum.map(Money::minor),
            currency,
            expires_at: seed.expires_at,
            use_limit: seed.use_limit,
            held: 0,
            used: 0,
        };
        catalogue::insert_discount(db, &row)?;
    }
    Ok(())
}
