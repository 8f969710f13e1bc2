//! What the shop sells, and how much of it can still be promised.

use super::ids::ProductId;
use super::money::Money;
use super::time::Timestamp;
use super::words::{text_newtype, words};
use serde::Serialize;

words! {
    /// Which of a country's tax rates applies.
    pub enum TaxClass {
        Standard = "standard",
        Reduced = "reduced",
        Exempt = "exempt",
    }
}

/// A group of products, as a slug: `[a-z0-9-]{1,64}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[derive(Serialize, diesel::AsExpression, diesel::FromSqlRow, utoipa::ToSchema)]
#[diesel(sql_type = diesel::sql_types::Text)]
#[schema(value_type = String, pattern = "^[a-z0-9-]{1,64}$", example = "mugs")]
pub struct Category(String);

impl Category {
    pub const NOTATION: &str = "[a-z0-9-]{1,64}";

    pub fn parse(text: &str) -> Option<Self> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let well_formed = (1..=64).contains(&text.len()) && text.bytes().all(allowed);
        well_formed.then(|| Self(text.to_owned()))
    }

    /// Where a new product goes that names none.
    pub fn other() -> Self {
        Self("other".to_owned())
    }
}

text_newtype!(Category);

/// A product as callers see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Product {
    pub product_id: ProductId,
    #[schema(example = "Blue stoneware mug")]
    pub title: String,
    pub description: String,
    pub category: Category,
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
