//! What surrounds every call: its request id, its problem as RFC 9457 wants it, the echo of its key, and one log span.

use crate::domain::answer::Delivery;
use crate::domain::error::Problem;
use crate::domain::ids::{ActorId, TaskId};
use crate::domain::key::IdempotencyKey;
use crate::domain::operation::Operation;
use crate::domain::task::{Calls, Counted, Outcome};
use crate::http::{State, reply};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use actix_web::middleware::Next;
use actix_web::web;
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, ResponseError};
use tracing::Instrument;
use tracing::field::Empty;

pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of this request: the caller's, if it is fit for a URI reference and a log line, else a new one.
#[derive(Clone)]
pub struct RequestId(pub String);

/// The operation behind the request's route, looked up once.
#[derive(Clone, Copy)]
pub struct Requested(pub Operation);

/// What the checks learned of a call, for the log and the echo.
#[derive(Clone, Default)]
pub struct Seen {
    pub actor: Option<ActorId>,
    pub task: Option<TaskId>,
    pub key: Option<IdempotencyKey>,
}

/// Rendered by [`envelope`], which knows the request id. This is what is left without it.
impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code.row().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse<BoxBody> {
        HttpResponse::new(self.status_code())
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

pub async fn envelope(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let id = request_id(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    let operation = request.match_pattern().and_then(|path| Operation::at(request.method().as_str(), &path));
    if let Some(operation) = operation {
        request.extensions_mut().insert(Requested(operation));
    }
    let span = tracing::info_span!(
        "request",
        id,
        operation = operation.map(|operation| operation.as_str()),
        actor = Empty,
        task = Empty,
        key = Empty,
        status = Empty,
        outcome = Empty,
        code = Empty,
    );
    async move {
        let called = next.call(request).await?;
        let (http, response) = called.into_parts();
        let problem = response.error().map(as_problem);
        let mut response = match &problem {
            Some(problem) => render(problem, &id),
            None => response.map_into_boxed_body(),
        };
        let seen = http.extensions().get::<Seen>().cloned().unwrap_or_default();
        let outcome = outcome(&response, problem.as_ref());
        record(&seen, outcome, &response, problem.as_ref());
        if let Some(operation) = operation {
            count(&http, operation, &seen, outcome);
        }
        if let Some(key) = seen.key.and_then(|key| HeaderValue::from_str(key.as_str()).ok()) {
            response.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(X_REQUEST_ID, id);
        }
        Ok(ServiceResponse::new(http, response))
    }
    .instrument(span)
    .await
}

/// Where no route matches: another method of a known path is 405, everything else 404.
pub async fn no_such_route(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    if state.pages.has(request.path()) {
        return Err(Problem::method_not_allowed(vec!["GET", "HEAD"]));
    }
    if ["/healthz", "/readyz"].contains(&request.path()) {
        return Err(Problem::method_not_allowed(vec!["GET"]));
    }
    let methods: Vec<&'static str> = Operation::ALL
        .iter()
        .map(|operation| operation.profile())
        .filter(|profile| profile.takes(request.path()))
        .map(|profile| profile.method)
        .collect();
    match methods.is_empty() {
        true => Err(Problem::no_such_route()),
        false => Err(Problem::method_not_allowed(methods)),
    }
}

fn request_id(headers: &HeaderMap) -> String {
    let fit = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    headers
        .get(X_REQUEST_ID)
        .and_then(|value| value.to_str().ok())
        .filter(|id| (1..=128).contains(&id.len()) && id.bytes().all(fit))
        .map_or_else(|| format!("req_{}", uuid::Uuid::now_v7().simple()), str::to_owned)
}

/// Errors of the framework itself come without a problem of ours.
fn as_problem(error: &Error) -> Problem {
    if let Some(problem) = error.as_error::<Problem>() {
        return problem.clone();
    }
    match error.as_response_error().status_code() {
        status if status.is_client_error() => Problem::malformed(error.to_string()),
        _ => Problem::internal(error),
    }
}

fn render(problem: &Problem, request_id: &str) -> HttpResponse<BoxBody> {
    if let Some(cause) = &problem.cause {
        tracing::error!(cause, code = problem.code.as_str(), "failed");
    }
    let Ok(answer) = problem.answer(request_id) else { return problem.error_response() };
    let mut response = reply::response(&answer);
    let headers = response.headers_mut();
    reply::say_when_key_expires(headers, problem.key_expires_at);
    if let Some(seconds) = problem.facts.retry_after_seconds {
        headers.insert(actix_web::http::header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    match problem.status_code() {
        StatusCode::UNAUTHORIZED => {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"countersign\""));
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            if let Ok(allowed) = HeaderValue::from_str(&problem.facts.allowed_methods.join(", ")) {
                headers.insert(ALLOW, allowed);
            }
        }
        _ => {}
    }
    response
}

fn outcome(response: &HttpResponse, problem: Option<&Problem>) -> Outcome {
    let replayed = response.extensions().get::<Delivery>() == Some(&Delivery::Replayed);
    let undecided = problem.is_some_and(|problem| problem.code.is_undecided());
    match response.status().as_u16() {
        _ if replayed => Outcome::Replayed,
        _ if undecided => Outcome::InFlight,
        500.. => Outcome::Failed,
        400.. => Outcome::Refused,
        _ => Outcome::Executed,
    }
}

fn record(seen: &Seen, outcome: Outcome, response: &HttpResponse, problem: Option<&Problem>) {
    let span = tracing::Span::current();
    span.record("actor", seen.actor.as_ref().map(ActorId::as_str));
    span.record("task", seen.task.as_ref().map(TaskId::as_str));
    span.record("key", seen.key.as_ref().map(IdempotencyKey::log_hash));
    span.record("status", response.status().as_u16());
    span.record("outcome", outcome.as_str());
    span.record("code", problem.map(|problem| problem.code.as_str()));
}

/// Counts a call of a task.
fn count(request: &HttpRequest, operation: Operation, seen: &Seen, outcome: Outcome) {
    let (Some(actor), Some(task)) = (&seen.actor, &seen.task) else { return };
    let Some(state) = request.app_data::<web::Data<State>>() else { return };
    // What can't be an id counts as one subject, whatever it is.
    let is_id = |id: &&str| (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    let in_path = || request.match_info().iter().next().map(|(_, id)| id).filter(is_id).unwrap_or_default().to_owned();
    let subject = seen.key.as_ref().map_or_else(in_path, |key| key.as_str().to_owned());
    let counted = Counted { actor: actor.clone(), task: task.clone(), operation, subject };
    state.context.tally.count(counted, Calls::one(outcome, state.context.store.clock().now()));
}
