//! Products: read, and written by their merchant.

use super::State;
use super::checked::{Checked, Input, Nothing};
use super::json::{Faults, Integer, MoneyBody, Object};
use crate::domain::error::{FaultCode, Problem};
use crate::domain::ids::ProductId;
use crate::domain::product::{Category, Product, TaxClass};
use crate::domain::product_update::{
    BatchMode, BatchUpdate, BatchUpdated, MAX_DESCRIPTION, MAX_STOCK, MAX_UPDATES, MAX_VERSION, NewValues,
    ProductUpdate,
};
use crate::operations::batch_update_products as update;
use crate::operations::get_products::{self, MAX_PRODUCTS, Products};
use crate::operations::{Context, Reply};
use actix_web::{Responder, get, post, web};
use serde::Deserialize;
use std::collections::HashSet;

/// Read a product
///
/// Read a product: detail, price and availability. Use it when the product's id is known. `available` is what can still
/// be promised: unsold, and not held by somebody's confirmation. For many products use `batch_get_products`; to buy, go
/// on with `dry_run_checkout`.
#[utoipa::path(
    operation_id = "get_product",
    tag = "products",
    params(("product_id" = ProductId, Path, description = "The merchant's SKU")),
    responses((status = 200, description = "The product, and how much of it is available", body = Product)),
)]
#[get("/products/{product_id}")]
pub async fn get_product(state: web::Data<State>, request: Checked<Nothing>) -> Result<impl Responder, Problem> {
    let id = request.id(ProductId::parse, "product")?;
    get_products::get_product(&state.context, id).await.map(web::Json)
}

/// Read many products
///
/// Read many products in one call: detail and availability together. Use it instead of one call a product, for example
/// to look at a whole cart again. Products come in the order of the request, each once; ids that name none are in
/// `not_found`, and are no error. All are of one moment.
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
    get_products::batch_get_products(&state.context, request.input).await.map(web::Json)
}

/// Write many products
///
/// Make and change many products. For merchants. `atomic` writes all or none: 409 `batch_stopped` says which items
/// stopped it. `per_item` writes each or refuses it by itself, so look at each result's `status`; but unacceptable
/// values (422) are found in the whole batch before any write. `set` replaces and never adds: sent again late, under a
/// new key or when its own isn't kept any more, it overwrites what came in between. With `if_version` an item is
/// refused if the product changed since it was read (sales don't raise the version). A product that doesn't exist yet
/// is made when `set` has `title`, `price` and `stock`. To undo it, set the old values.
#[utoipa::path(
    operation_id = "batch_update_products",
    tag = "products",
    request_body = BatchUpdateBody,
    responses((status = 200, description = "One result an item, in the order of the request", body = BatchUpdated)),
)]
#[post("/products-batch-update")]
pub async fn batch_update_products(state: web::Data<State>, request: Checked<BatchUpdate>) -> Result<Reply, Problem> {
    update::batch_update_products(&state.context, request.call, request.input).await
}

/// Which products to read.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BatchGetProductsRequest)]
pub struct ProductIdsBody {
    /// Each answered once, however often it is named.
    #[schema(value_type = Vec<ProductId>, min_items = 1, max_items = 100, example = json!(["MUG-BLUE", "NO-SUCH"]))]
    product_ids: Vec<String>,
}

impl Input for Vec<ProductId> {
    type Raw = ProductIdsBody;

    fn validate(body: ProductIdsBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let listed = faults.list("/product_ids", body.product_ids, 1, MAX_PRODUCTS).unwrap_or_default();
        let ids = listed.iter().enumerate();
        let ids: Vec<Option<ProductId>> =
            ids.map(|(i, id)| faults.product_id(&format!("/product_ids/{i}"), id)).collect();
        faults.finish(ids.into_iter().collect())
    }
}

/// What to write. The same product twice is refused.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BatchUpdateRequest)]
pub struct BatchUpdateBody {
    /// What a refused item means for the others.
    mode: BatchMode,
    /// The products to write, each once.
    #[schema(value_type = Vec<UpdateBody>, min_items = 1, max_items = 100)]
    updates: Vec<Object<UpdateBody>>,
}

/// What to write of one product.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProductUpdate)]
pub struct UpdateBody {
    /// The merchant's SKU.
    #[schema(value_type = ProductId)]
    product_id: String,
    /// The members to replace.
    #[schema(value_type = SetBody)]
    set: Object<SetBody>,
    /// Refuse (`version_mismatch`) unless the product has this version; 0: unless there is none yet.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 9_007_199_254_740_991_i64, example = 3)]
    if_version: Option<Integer>,
}

/// At least one member. What is left out or null stays as it is.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewValues, min_properties = 1)]
pub struct SetBody {
    /// Its name. A new product needs it.
    #[schema(min_length = 1, max_length = 500, pattern = r"\S", example = "Blue stoneware mug")]
    title: Option<String>,
    /// What it is; `""` clears it. A new product starts without one.
    #[schema(max_length = 2000, example = "Holds 350 ml. Dishwasher-safe.")]
    description: Option<String>,
    /// The group that it is in. A new product starts in `other`.
    #[schema(value_type = Option<Category>)]
    category: Option<String>,
    /// Before tax, for one unit. A new product needs it.
    #[schema(value_type = Option<MoneyBody>)]
    price: Option<Object<MoneyBody>>,
    /// Which of a country's tax rates applies. A new product starts as `standard`.
    tax_class: Option<TaxClass>,
    /// Units at hand, those that confirmations hold included: `available` plus held. A count, never a difference; sales
    /// lower it without raising `version`. A new product needs it.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1_000_000_000, example = 120)]
    stock: Option<Integer>,
}

impl SetBody {
    fn is_empty(&self) -> bool {
        let Self { title, description, category, price, tax_class, stock } = self;
        let texts = title.is_none() && description.is_none() && category.is_none();
        texts && price.is_none() && tax_class.is_none() && stock.is_none()
    }
}

impl Input for BatchUpdate {
    type Raw = BatchUpdateBody;

    fn validate(body: BatchUpdateBody, _: &Context) -> Result<Self, Problem> {
        let mut faults = Faults::default();
        let bodies = faults.list("/updates", body.updates, 1, MAX_UPDATES).unwrap_or_default();
        let mut named = HashSet::new();
        let mut updates = Vec::new();
        for (i, Object(update)) in bodies.into_iter().enumerate() {
            let at = format!("/updates/{i}");
            let id = faults.product_id(&format!("{at}/product_id"), &update.product_id);
            if !named.insert(update.product_id) {
                let detail = "The same product twice: put all that is set into one update.";
                faults.add(format!("{at}/product_id"), FaultCode::Duplicate, detail);
            }
            let set = new_values(&mut faults, &format!("{at}/set"), update.set.0);
            let version = format!("{at}/if_version");
            let if_version = update.if_version.and_then(|Integer(n)| faults.integer(&version, n, 0, MAX_VERSION));
            updates.push(id.map(|product_id| ProductUpdate { product_id, set, if_version }));
        }
        let updates: Option<Vec<ProductUpdate>> = updates.into_iter().collect();
        faults.finish(updates.map(|updates| BatchUpdate { mode: body.mode, updates }))
    }
}

fn new_values(faults: &mut Faults, at: &str, body: SetBody) -> NewValues {
    if body.is_empty() {
        faults.add(at, FaultCode::WrongLength, "Expected at least one member to set.");
    }
    NewValues {
        title: body.title.and_then(|title| faults.text(&format!("{at}/title"), title)),
        description: body
            .description
            .and_then(|text| faults.prose(&format!("{at}/description"), text, MAX_DESCRIPTION)),
        category: body.category.and_then(|category| faults.category(&format!("{at}/category"), &category)),
        price: body.price.and_then(|Object(price)| faults.money(&format!("{at}/price"), price)),
        tax_class: body.tax_class,
        stock: body.stock.and_then(|Integer(n)| faults.integer(&format!("{at}/stock"), n, 0, MAX_STOCK)),
    }
}
