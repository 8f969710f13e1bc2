//! The order of checks that every operation passes before it runs: authenticate → scope → headers → media type → size
//! → JSON → values. Nothing is stored and no claim is looked up before all of them hold.

use super::State;
use super::envelope::{IDEMPOTENCY_KEY, RequestId, Requested, Seen};
use super::{json, query};
use crate::domain::error::Problem;
use crate::domain::ids::TaskId;
use crate::domain::key::IdempotencyKey;
use crate::effects::{EffectProfile, KeyRule};
use crate::operations::authenticate::{authenticate, authorize};
use crate::operations::{Call, Context};
use actix_web::dev::Payload;
use actix_web::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName};
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::StreamExt;
use std::pin::Pin;
use std::time::Duration;

/// Bytes of a body.
pub const MAX_BODY: usize = 256 * 1024;
/// A client that sends its head and no more doesn't keep a place for ever.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const AGENT_TASK_ID: HeaderName = HeaderName::from_static("agent-task-id");

/// A call that has passed every check, with its input parsed.
pub struct Checked<I> {
    pub call: Call,
    pub input: I,
    request: HttpRequest,
}

impl<I> Checked<I> {
    /// The id in the path. One that can't exist isn't found.
    pub fn id<T>(&self, parse: fn(&str) -> Option<T>, what: &str) -> Result<T, Problem> {
        let segment = web::Path::<String>::extract(&self.request).into_inner().ok();
        segment.and_then(|segment| parse(&segment)).ok_or_else(|| Problem::not_found(what))
    }

    /// The key that the header names as a parameter, where it doesn't make this call's repeat harmless.
    pub fn named_key(&self) -> Result<IdempotencyKey, Problem> {
        let key = sent_key(self.request.headers())?.ok_or_else(Problem::key_required)?;
        remember(&self.request, |seen| seen.key = Some(key.clone()));
        Ok(key)
    }
}

/// Where an operation's input stands. The other place has to be empty: a parameter that nobody reads could be one that
/// somebody relies on (`?dry_run=true`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Body,
    Query,
}

/// What an operation is given: how it reads, and whether it may be left out.
pub trait Input: Sized {
    const SOURCE: Source = Source::Body;
    type Raw: serde::de::DeserializeOwned;

    /// What a call without a body means. None: a body is required.
    fn absent() -> Option<Self> {
        None
    }

    /// All values at once: each that is out of range or notation is a fault.
    fn validate(raw: Self::Raw, context: &Context) -> Result<Self, Problem>;
}

/// Neither query nor body. An empty object as the body is let pass, since some clients send one with everything.
pub struct Nothing;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmptyObject {}

impl Input for Nothing {
    const SOURCE: Source = Source::Query;
    type Raw = EmptyObject;

    fn validate(_: EmptyObject, _: &Context) -> Result<Self, Problem> {
        Ok(Nothing)
    }
}

impl<I: Input + 'static> FromRequest for Checked<I> {
    type Error = Problem;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Problem>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        Box::pin(check(request.clone(), payload.take()))
    }
}

async fn check<I: Input>(request: HttpRequest, payload: Payload) -> Result<Checked<I>, Problem> {
    let state = request.app_data::<web::Data<State>>().ok_or_else(|| Problem::internal("no state"))?.clone();
    let profile = profile(&request)?;
    let caller = authenticate(&state.context, &bearer(request.headers())?, state.demo).await?;
    remember(&request, |seen| {
        seen.actor = Some(caller.actor.clone());
        seen.task = task(request.headers()).ok().flatten(); // also of a call that is refused next
    });
    authorize(&caller, profile)?;

    let task = task(request.headers())?;
    let key = key(request.headers(), profile)?;
    remember(&request, |seen| seen.key = key.clone());

    let body = read_body(&request, payload).await?;
    let input = match I::SOURCE {
        Source::Query => from_query(&request, &body, &state.context)?,
        Source::Body => from_body(&request, &body, &state.context)?,
    };
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    let request_id = request_id.ok_or_else(|| Problem::internal("no request id"))?;
    Ok(Checked { call: Call { caller, key, task, request_id }, input, request })
}

fn from_query<I: Input>(request: &HttpRequest, body: &[u8], context: &Context) -> Result<I, Problem> {
    if !is_nothing(body) {
        json::parse::<EmptyObject>(body)?;
    }
    I::validate(query::parse(request.query_string())?, context)
}

fn from_body<I: Input>(request: &HttpRequest, body: &[u8], context: &Context) -> Result<I, Problem> {
    query::parse::<EmptyObject>(request.query_string())?;
    match I::absent() {
        Some(absent) if is_nothing(body) => Ok(absent),
        None if body.is_empty() && !is_json(request) => Err(Problem::unsupported_media_type()),
        _ => I::validate(json::parse(body)?, context),
    }
}

fn is_nothing(body: &[u8]) -> bool {
    body.is_empty() || body == b"null"
}

fn profile(request: &HttpRequest) -> Result<&'static EffectProfile, Problem> {
    let requested = request.extensions().get::<Requested>().copied();
    requested
        .map(|Requested(operation)| operation.profile())
        .ok_or_else(|| Problem::internal("a route without an operation"))
}

fn remember(request: &HttpRequest, what: impl FnOnce(&mut Seen)) {
    let mut extensions = request.extensions_mut();
    let mut seen = extensions.remove::<Seen>().unwrap_or_default();
    what(&mut seen);
    extensions.insert(seen);
}

/// RFC 6750: the scheme's letter case doesn't matter.
fn bearer(headers: &HeaderMap) -> Result<String, Problem> {
    let value = one(headers, &AUTHORIZATION).map_err(|TwoLines| Problem::unauthenticated())?;
    let (scheme, token) = value
        .and_then(|value| std::str::from_utf8(value).ok())
        .and_then(|value| value.split_once(' '))
        .ok_or_else(Problem::unauthenticated)?;
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Err(Problem::unauthenticated());
    }
    Ok(token.trim().to_owned())
}

fn key(headers: &HeaderMap, profile: &EffectProfile) -> Result<Option<IdempotencyKey>, Problem> {
    match profile.key {
        KeyRule::None => Ok(None),
        KeyRule::Natural => sent_key(headers),
        KeyRule::Required => sent_key(headers)?.ok_or_else(Problem::key_required).map(Some),
    }
}

fn sent_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Problem> {
    let value = one(headers, &IDEMPOTENCY_KEY).map_err(|TwoLines| Problem::key_invalid())?;
    value.map(|value| IdempotencyKey::from_header(value).ok_or_else(Problem::key_invalid)).transpose()
}

fn task(headers: &HeaderMap) -> Result<Option<TaskId>, Problem> {
    let malformed = || Problem::malformed("Agent-Task-Id takes 1 to 128 visible ASCII characters, once.");
    let Some(value) = one(headers, &AGENT_TASK_ID).map_err(|TwoLines| malformed())? else { return Ok(None) };
    std::str::from_utf8(value).ok().and_then(TaskId::parse).map(Some).ok_or_else(malformed)
}

struct TwoLines;

fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h [u8]>, TwoLines> {
    let mut lines = headers.get_all(name);
    let first = lines.next().map(|value| value.as_bytes());
    if lines.next().is_some() { Err(TwoLines) } else { Ok(first) }
}

async fn read_body(request: &HttpRequest, mut payload: Payload) -> Result<Vec<u8>, Problem> {
    let declared = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let json = is_json(request);
    if !json && declared.unwrap_or(0) > 0 {
        return Err(Problem::unsupported_media_type());
    }
    if declared.is_some_and(|length| length > MAX_BODY as u64) {
        return Err(Problem::payload_too_large(MAX_BODY));
    }
    let bytes = tokio::time::timeout(BODY_TIMEOUT, collect(&mut payload)).await.map_err(Problem::request_timeout)??;
    // A chunked body shows only now whether it is one.
    if !json && !bytes.is_empty() {
        return Err(Problem::unsupported_media_type());
    }
    Ok(bytes)
}

async fn collect(payload: &mut Payload) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(Problem::request_timeout)?;
        if bytes.len() + chunk.len() > MAX_BODY {
            return Err(Problem::payload_too_large(MAX_BODY));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// `application/json`, in UTF-8 and not compressed.
fn is_json(request: &HttpRequest) -> bool {
    let utf8 = |mime: &actix_web::mime::Mime| mime.get_param("charset").is_none_or(|charset| charset == "utf-8");
    let mime = request.mime_type().ok().flatten();
    mime.is_some_and(|mime| mime.essence_str() == "application/json" && utf8(&mime))
        && request.headers().get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity")
}
