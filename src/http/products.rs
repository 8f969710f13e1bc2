//! Products.

use super::State;
use super::checked::{Body, Checked, NoBody};
use super::json::Faults;
use crate::domain::error::Problem;
use crate::domain::ids::ProductId;
use crate::domain::product::Product;
use crate::operations::Context;
use crate::operations::get_products::{self, MAX_PRODUCTS, Products};
use actix_web::{Responder, get, post, web};
use serde::Deserialize;

/// Read a product.
#[utoipa::path(
    operation_id = "get_product",
    tag = "products",
    params(("product_id" = ProductId, Path)),
    responses((status = 200, description = "The product, and how much of it is available", body = Product)),
)]
#[get("/products/{product_id}")]
pub async fn get_product(state: web::Data<State>, request: Checked<NoBody>) -> Result<impl Responder, Problem> {
    let id = request.id(ProductId::parse, "product")?;
    get_products::get_product(&state.context, id).await.map(web::Json)
}

/// Read many products in one call: detail and availability together.
#[utoipa::path(
    operation_id = "batch_get_products",
    tag = "products",
    request_body = ProductIdsBody,
    responses((status = 200, description = "In request order, duplicates once", body = Products)),
)]
#[post("/products-batch-get")]
pub async fn batch_get_products(
    state: web::Data<State>,
    request: Checked<Vec<ProductId>>,
) -> Result<impl Responder, Problem> {
    get_products::batch_get_products(&state.context, request.body).await.map(web::Json)
}

/// Which products to read.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BatchGetProductsRequest)]
pub struct ProductIdsBody {
    #[schema(value_type = Vec<ProductId>, min_items = 1, max_items = 100)]
    product_ids: Vec<String>,
}

impl Body for Vec<ProductId> {
    type Json = ProductIdsBody;

    fn absent() -> Option<Self> {
        None
    }

    fn validate(body: ProductIdsBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let listed = faults.list("/product_ids", body.product_ids, 1, MAX_PRODUCTS).unwrap_or_default();
        let ids = listed.iter().enumerate();
        let ids: Vec<Option<ProductId>> = ids
            .map(|(i, id)| faults.parsed(&format!("/product_ids/{i}"), ProductId::parse(id), "[A-Za-z0-9_-]{1,64}"))
            .collect();
        faults.finish(ids.into_iter().collect())
    }
}
