//! One call over HTTP. What comes back is an answer, or nothing; and nothing isn't "no".

use crate::domain::error::{Code, Recovery};
use crate::domain::key::IdempotencyKey;
use crate::domain::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// What is sent, to the byte, on every attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub body: Option<String>,
    pub key: Option<IdempotencyKey>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    /// `Retry-After` (RFC 9110, 10.2.3).
    pub retry_after: Option<Duration>,
    pub replayed: bool,
    pub key_expires: Option<Timestamp>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// What a problem says to do next. None where it isn't a problem of this API.
    pub fn recovery(&self) -> Option<Recovery> {
        if self.status < 400 { None } else { Recovery::parse(self.json()["recovery"].as_str()?) }
    }

    pub fn code(&self) -> Option<Code> {
        if self.status < 400 { None } else { Code::parse(self.json()["code"].as_str()?) }
    }

    /// Whether the API did what was asked: 2xx, with an object, or with nothing to say.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status) && (self.status == 204 || self.json().is_object())
    }

    /// Whether it decides the call for good: it succeeded, or it is a no that doesn't change. Any other refusal says nothing
    /// of an earlier attempt that wasn't heard of.
    pub fn is_final(&self) -> bool {
        self.is_success() || self.code().is_some_and(Code::is_final)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// There was no connection: nothing was sent.
    NotSent(String),
    /// It was sent, and may have happened.
    NoAnswer(String),
}

/// How a request gets to the server. It sends once, and waits for an answer for a limited time.
pub trait Transport: Send + Sync {
    fn send(&self, request: &Request) -> impl Future<Output = Result<Answer, Lost>> + Send;
}

/// A server, as one actor, for one task.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    url: String,
    credential: String,
    task: String,
}

impl Http {
    /// `patience` is how long an answer is waited for.
    pub fn new(url: &str, credential: &str, task: &str, patience: Duration) -> Result<Self, String> {
        let client = reqwest::Client::builder()
            .timeout(patience)
            // Followed, a redirected POST becomes a GET, and a login page an answer.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|e| e.to_string())?;
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { client, url, credential: credential.to_owned(), task: task.to_owned() })
    }
}

impl Transport for Http {
    async fn send(&self, request: &Request) -> Result<Answer, Lost> {
        let method =
            reqwest::Method::from_bytes(request.method.as_bytes()).map_err(|e| Lost::NotSent(e.to_string()))?;
        let mut call = self.client.request(method, format!("{}{}", self.url, request.path));
        call = call.bearer_auth(&self.credential).header("Agent-Task-Id", &self.task);
        if let Some(key) = &request.key {
            call = call.header("Idempotency-Key", key.as_str());
        }
        if let Some(body) = &request.body {
            call = call.header("Content-Type", "application/json").body(body.clone());
        }
        let response = call.send().await.map_err(lost)?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let answer = Answer {
            status: response.status().as_u16(),
            body: String::new(),
            retry_after: header("Retry-After").and_then(|wait| retry_after(wait, std::time::SystemTime::now())),
            replayed: header("Idempotent-Replayed") == Some("true"),
            key_expires: header("Idempotency-Key-Expires").and_then(timestamp),
        };
        // Half an answer is none.
        let body = response.text().await.map_err(lost)?;
        Ok(Answer { body, ..answer })
    }
}

/// Whole seconds, or a date.
fn retry_after(text: &str, now: std::time::SystemTime) -> Option<Duration> {
    let until = |date: std::time::SystemTime| date.duration_since(now).unwrap_or_default();
    let seconds = text.parse().ok().map(Duration::from_secs);
    seconds.or_else(|| httpdate::parse_http_date(text).ok().map(until))
}

fn timestamp(text: &str) -> Option<Timestamp> {
    Timestamp::deserialize(serde::de::value::StrDeserializer::<serde::de::value::Error>::new(text)).ok()
}

fn lost(error: reqwest::Error) -> Lost {
    let why = if error.is_timeout() { "no answer in time".to_owned() } else { reason(&error) };
    if error.is_connect() { Lost::NotSent(why) } else { Lost::NoAnswer(why) }
}

/// The innermost cause says what happened.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Tue, 01 Dec 2026 09:30:00 GMT").unwrap();
        for (text, seconds) in [
            ("7", Some(7)),
            ("Tue, 01 Dec 2026 09:30:07 GMT", Some(7)),
            ("Tue, 01 Dec 2026 09:29:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(retry_after(text, now), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
