//! REST over actix-web: one file a resource, each handler three lines of meaning. What every call passes through lives
//! in `checked` (the order of checks) and `envelope` (request id, problems, log).

pub mod address;
mod checked;
mod checkout;
mod confirmations;
mod envelope;
mod health;
pub mod json;
pub mod openapi;
mod orders;
pub mod pages;
mod products;
pub mod query;
mod refunds;
mod reply;
mod search;
mod tasks;

use crate::effects::Retention;
use crate::operations::Context;
use crate::operations::authenticate::DemoActors;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::{App, Error, body::MessageBody, web};
use serde_json::Value;
use utoipa_actix_web::AppExt;

/// What handlers share.
pub struct State {
    pub context: Context,
    pub demo: DemoActors,
    pub pages: pages::Pages,
}

/// Every documented route.
fn operations(config: &mut utoipa_actix_web::service_config::ServiceConfig) {
    config
        .service(search::search_products)
        .service(products::get_product)
        .service(products::batch_get_products)
        .service(search::batch_search_products)
        .service(products::batch_update_products)
        .service(checkout::dry_run_checkout)
        .service(checkout::propose_checkout)
        .service(checkout::confirm_checkout)
        .service(confirmations::list_confirmations)
        .service(confirmations::get_confirmation)
        .service(confirmations::cancel_confirmation)
        .service(orders::get_order)
        .service(orders::list_orders)
        .service(orders::set_shipping_address)
        .service(refunds::dry_run_refund)
        .service(refunds::issue_refund)
        .service(refunds::confirm_refund)
        .service(refunds::get_refund)
        .service(tasks::get_operation_status)
        .service(tasks::get_task);
}

/// The OpenAPI document: every route as its handler describes it, and what holds for all of them.
pub fn document(retention: Retention) -> serde_json::Result<Value> {
    let (_, collected) = App::new().into_utoipa_app().openapi(openapi::base()).configure(operations).split_for_parts();
    openapi::complete(&collected, retention)
}

/// The application of one worker thread.
pub fn app(
    state: web::Data<State>,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    let pages = state.clone();
    App::new()
        .into_utoipa_app()
        .configure(operations)
        .into_app()
        .configure(|config| pages::routes(config, &pages.pages))
        .app_data(state)
        .service(health::healthz)
        .service(health::readyz)
        .default_service(web::to(envelope::no_such_route))
        .wrap(from_fn(envelope::envelope))
}
