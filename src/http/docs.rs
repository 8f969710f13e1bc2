//! What people browse: the OpenAPI document, its pages (Scalar, from assets in the binary), and a page for each problem.

use super::State;
use crate::domain::error::{Code, Problem, Stored};
use actix_web::{HttpResponse, get, web};

#[get("/openapi.json")]
pub async fn openapi_json(state: web::Data<State>) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(state.document.clone())
}

#[get("/docs")]
pub async fn docs() -> HttpResponse {
    let config = serde_json::json!({"url": "/openapi.json", "telemetry": false, "withDefaultFonts": false, "agent": {"disabled": true}});
    let page = scalar_api_reference::scalar_html(&config, Some("/docs/scalar.js"));
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page)
}

#[get("/docs/scalar.js")]
pub async fn scalar_js() -> Result<HttpResponse, Problem> {
    let script = scalar_api_reference::get_asset("scalar.js").ok_or_else(|| Problem::not_found("asset"))?;
    Ok(HttpResponse::Ok().content_type("text/javascript; charset=utf-8").body(script))
}

#[get("/problems/{code}")]
pub async fn problem(code: web::Path<String>) -> Result<HttpResponse, Problem> {
    let code = Code::parse(&code).ok_or_else(|| Problem::not_found("problem"))?;
    Ok(HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page(code)))
}

fn page(code: Code) -> String {
    let row = code.row();
    let (word, title, status, recovery) = (code.as_str(), row.title, row.status, row.recovery.as_str());
    let stored = match row.stored {
        Stored::Yes => "It is the stored answer of its key: a repeat with the same key gets it again.",
        Stored::No => "This refusal is not stored: the next call with the key is judged anew.",
    };
    let advice = row.recovery.advice();
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{word}</title>\
         <h1><code>{word}</code></h1><p>{title}.</p><dl><dt>Status</dt><dd>{status}</dd>\
         <dt>Recovery</dt><dd><code>{recovery}</code>: {advice}</dd></dl><p>{stored}</p></html>\n"
    )
}
