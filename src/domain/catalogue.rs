//! The catalogue, as one request sees it at one time.

use super::discount::Discount;
use super::ids::ProductId;
use super::money::Money;
use super::product::{Product, TaxClass};
use std::collections::BTreeMap;

/// What the catalogue says about one request at one time: the second input of [`plan`].
#[derive(Clone, Debug)]
pub struct Catalogue {
    pub products: BTreeMap<ProductId, Product>,
    pub shipping: Vec<ShippingOption>,
    pub tax_rates: Vec<TaxRate>,
    pub discounts: BTreeMap<String, Discount>,
}

/// One shipping option in one currency.
#[derive(Clone, Debug)]
pub struct ShippingOption {
    pub option: String,
    pub price: Money,
    pub countries: Vec<String>,
    pub min_business_days: i64,
    pub max_business_days: i64,
}

#[derive(Clone, Debug)]
pub struct TaxRate {
    pub country: String,
    /// None: the country's rate where no region has its own.
    pub region: Option<String>,
    pub class: TaxClass,
    pub parts_per_million: i64,
}
