//! Liveness and readiness.

use super::State;
use crate::domain::error::Problem;
use actix_web::{HttpResponse, Responder, get, web};

/// The process answers.
#[get("/healthz")]
pub async fn healthz() -> impl Responder {
    HttpResponse::Ok().json(serde_json::json!({"status": "ok"}))
}

/// The database takes a write and a read.
#[get("/readyz")]
pub async fn readyz(state: web::Data<State>) -> Result<HttpResponse, Problem> {
    state.context.store.write(|_, _| Ok(())).await?;
    state.context.store.read(|_, _| Ok(())).await?;
    Ok(HttpResponse::Ok().json(serde_json::json!({"status": "ready"})))
}
