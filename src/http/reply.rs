//! Answers on the wire. A replay has the status, body and `Location` of the first answer, and says that it is one; no
//! other header is carried over.

use crate::domain::answer::{Answer, Delivery};
use crate::domain::time::Timestamp;
use crate::operations::Reply;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use actix_web::{HttpRequest, HttpResponse, Responder};

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const IDEMPOTENCY_KEY_EXPIRES: HeaderName = HeaderName::from_static("idempotency-key-expires");

impl Responder for Reply {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut response = response(&self.answer);
        response.extensions_mut().insert(self.delivery);
        let headers = response.headers_mut();
        if self.delivery == Delivery::Replayed {
            headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        }
        say_when_key_expires(headers, self.key_expires_at);
        response
    }
}

impl Responder for Answer {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        response(&self)
    }
}

pub fn say_when_key_expires(headers: &mut HeaderMap, at: Option<Timestamp>) {
    if let Some(at) = at.and_then(|at| HeaderValue::from_str(&at.to_string()).ok()) {
        headers.insert(IDEMPOTENCY_KEY_EXPIRES, at);
    }
}

pub fn response(answer: &Answer) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if status == StatusCode::NO_CONTENT {
        return HttpResponse::new(status);
    }
    let content_type = if status.is_success() { "application/json" } else { "application/problem+json" };
    let mut response = HttpResponse::with_body(status, BoxBody::new(answer.body.clone()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(location) = answer.location.as_deref().and_then(|location| HeaderValue::from_str(location).ok()) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}
