//! Changing products: what an update says, and what it does to the product that it finds. [`change`] is pure; writing
//! down what it decides is the store's.

use super::error::{Problem, ProblemBody};
use super::ids::ProductId;
use super::money::Money;
use super::product::{Category, TaxClass};
use super::words::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Updates in one batch.
pub const MAX_UPDATES: usize = 100;
/// Characters of a description.
pub const MAX_DESCRIPTION: usize = 2_000;
/// Units of one product.
pub const MAX_STOCK: i64 = 1_000_000_000;

/// Versions are numbers in JSON: none may lose a digit as a double (2^53 − 1).
pub const MAX_VERSION: i64 = 9_007_199_254_740_991;

words! {
    /// What a refused item means for the others.
    pub enum BatchMode {
        /// All or none are written.
        Atomic = "atomic",
        /// Each is written or refused by itself.
        PerItem = "per_item",
    }
}

/// Checked. Serialized, it is what the fingerprint is taken of.
#[derive(Clone, Debug, Serialize)]
pub struct BatchUpdate {
    pub mode: BatchMode,
    pub updates: Vec<ProductUpdate>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProductUpdate {
    pub product_id: ProductId,
    pub set: NewValues,
    /// The version that the product must have; 0: there must be none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_version: Option<i64>,
}

/// What is replaced. Absent members stay as they are.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NewValues {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tax_class: Option<TaxClass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stock: Option<i64>,
}

/// The merchant's own members of a product.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Listing {
    pub title: String,
    pub description: String,
    pub category: Category,
    pub price: Money,
    pub tax_class: TaxClass,
    /// Unsold units, held ones included.
    pub stock: i64,
}

/// A listing as it stands in the catalogue.
#[derive(Clone, Debug)]
pub struct Listed {
    pub listing: Listing,
    pub held: i64,
    pub version: i64,
}

/// What an update comes to.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    Create(Listing),
    Update(&'a Listed, Listing),
    /// It is as it should be, in this version.
    Unchanged(i64),
}

/// Decides one update by itself: the products of a batch are distinct.
pub fn change<'a>(update: &ProductUpdate, found: Option<&'a Listed>) -> Result<Change<'a>, Problem> {
    let version = found.map_or(0, |found| found.version);
    if update.if_version.is_some_and(|expected| expected != version) {
        return Err(Problem::version_mismatch(&update.product_id, version));
    }
    let set = update.set.clone();
    let Some(found) = found else { return create(&update.product_id, set).map(Change::Create) };
    let before = &found.listing;
    let after = Listing {
        title: set.title.unwrap_or_else(|| before.title.clone()),
        description: set.description.unwrap_or_else(|| before.description.clone()),
        category: set.category.unwrap_or_else(|| before.category.clone()),
        price: set.price.unwrap_or(before.price),
        tax_class: set.tax_class.unwrap_or(before.tax_class),
        stock: set.stock.unwrap_or(before.stock),
    };
    if after.stock < found.held {
        return Err(Problem::stock_below_held(&update.product_id, found.held));
    }
    Ok(if after == *before { Change::Unchanged(version) } else { Change::Update(found, after) })
}

fn create(id: &ProductId, set: NewValues) -> Result<Listing, Problem> {
    let NewValues { title: Some(title), description, category, price: Some(price), tax_class, stock: Some(stock) } =
        set
    else {
        return Err(Problem::product_incomplete(id));
    };
    Ok(Listing {
        title,
        description: description.unwrap_or_default(),
        category: category.unwrap_or_else(Category::other),
        price,
        tax_class: tax_class.unwrap_or(TaxClass::Standard),
        stock,
    })
}

/// What became of one item of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct UpdateResult {
    /// The product that the item named.
    pub product_id: ProductId,
    #[serde(flatten)]
    pub outcome: UpdateOutcome,
}

/// What became of one item. The version is the product's own, now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum UpdateOutcome {
    /// It is new.
    Created {
        /// Of the product, now.
        #[schema(example = 1)]
        version: i64,
    },
    /// It was changed.
    Updated {
        /// Of the product, now.
        #[schema(example = 4)]
        version: i64,
    },
    /// It was as it should be already.
    Unchanged {
        /// Of the product, now.
        #[schema(example = 3)]
        version: i64,
    },
    /// It was not written.
    Refused {
        /// Why, as the whole call's problem would say it.
        #[schema(value_type = ProblemBody, no_recursion)]
        problem: Value,
    },
    /// Nothing is wrong with it, but another item was refused.
    NotWritten,
}

/// What became of a batch.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct BatchUpdated {
    /// As it was asked for.
    pub mode: BatchMode,
    /// One an item, in the order of the request.
    pub results: Vec<UpdateResult>,
}
