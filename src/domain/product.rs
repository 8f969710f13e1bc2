//! What the shop sells, and how much of it can still be promised.

use super::ids::ProductId;
use super::money::Money;
use super::time::Timestamp;
use super::words::words;
use serde::Serialize;

words! {
    /// Which of a country's tax rates applies.
    pub enum TaxClass {
        Standard = "standard",
        Reduced = "reduced",
        Exempt = "exempt",
    }
}

/// A product as callers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Product {
    pub product_id: ProductId,
    #[schema(example = "Blue stoneware mug")]
    pub title: String,
    pub description: String,
    #[schema(example = "mugs")]
    pub category: String,
    /// Before tax, for one unit.
    pub price: Money,
    /// Units that can still be promised: unsold and not held by a live confirmation.
    #[schema(minimum = 0)]
    pub available: i64,
    /// Raised by every change of the product's own members.
    pub version: i64,
    pub tax_class: TaxClass,
    pub updated_at: Timestamp,
}
