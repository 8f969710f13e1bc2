//! Reads products: one, or many in one call with detail and availability together.

use super::Context;
use crate::domain::error::Problem;
use crate::domain::ids::ProductId;
use crate::domain::product::Product;
use crate::store::{Db, products};
use serde::Serialize;

/// Products in one call.
pub const MAX_PRODUCTS: usize = 100;

/// Many products, all of one moment.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Products {
    /// In the order of the request, each once.
    pub products: Vec<Product>,
    /// The ids that name no product.
    #[schema(example = json!(["NO-SUCH"]))]
    pub not_found: Vec<ProductId>,
}

pub async fn get_product(context: &Context, id: ProductId) -> Result<Product, Problem> {
    let mut found = batch_get_products(context, vec![id]).await?;
    found.products.pop().ok_or_else(|| Problem::not_found("product"))
}

pub async fn batch_get_products(context: &Context, ids: Vec<ProductId>) -> Result<Products, Problem> {
    let show = move |db: &mut Db, now| {
        let mut found = products::find(db, &ids, now)?;
        let mut answer = Products { products: Vec::new(), not_found: Vec::new() };
        for id in in_order(ids) {
            match found.remove(&id) {
                Some(product) => answer.products.push(product),
                None => answer.not_found.push(id),
            }
        }
        Ok(answer)
    };
    context.store.read(show).await
}

/// Each once, in order of first appearance.
fn in_order(ids: Vec<ProductId>) -> Vec<ProductId> {
    let mut seen = std::collections::HashSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}
