//! The HTTP client of every question. Whatever comes back is watched as it goes by.

use super::Stop;
use super::answer::Answer;
use super::watch::Watch;
use reqwest::header::HeaderName;
use reqwest::redirect::Policy;
use reqwest::{Method, Url};
use serde_json::Value;
use std::cell::RefCell;
use std::time::Duration;

/// Of one request. Longer than a server lets a call to its payment provider take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a call is sent, while it is turned away (429).
const ATTEMPTS: u32 = 5;
/// Seconds: the longest `Retry-After` that is followed.
const LONGEST_WAIT: u64 = 10;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Who calls.
#[derive(Clone, Debug)]
pub enum Credential {
    Own,
    Of(String),
    Nobody,
}

#[derive(Clone, Debug)]
pub struct Call {
    method: Method,
    path: String,
    credential: Credential,
    key: Option<String>,
    body: Option<String>,
}

impl Call {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), credential: Credential::Own, key: None, body: None }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path)
    }

    pub fn by(self, credential: Credential) -> Self {
        Self { credential, ..self }
    }

    pub fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    /// A body as it stands, to the byte.
    pub fn text(self, body: String) -> Self {
        Self { body: Some(body), ..self }
    }

    /// `POST /confirm-checkout/…`: ids and queries say nothing to a reader.
    fn label(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        let segments: Vec<&str> =
            path.split('/').map(|segment| if segment.len() > 30 { "…" } else { segment }).collect();
        format!("{} {}", self.method, segments.join("/"))
    }
}

pub struct Client {
    http: reqwest::Client,
    url: String,
    key: String,
    pub watch: RefCell<Watch>,
}

impl Client {
    pub fn new(url: &str, key: &str) -> Result<Self, Stop> {
        let http = reqwest::Client::builder().timeout(TIMEOUT).redirect(Policy::none()).build();
        let http = http.map_err(|error| Stop::Unable(format!("no HTTP client: {}", cause(&error))))?;
        Ok(Self { http, url: url.to_owned(), key: key.to_owned(), watch: RefCell::default() })
    }

    /// The answer, whatever it says. One that wasn't looked at for want of room (429) is asked for again.
    pub async fn send(&self, call: Call) -> Result<Answer, Stop> {
        let mut answer = self.send_once(&call).await?;
        for _ in 1..ATTEMPTS {
            if answer.status != 429 {
                break;
            }
            let asked = answer.header("Retry-After").and_then(|seconds| seconds.parse().ok()).unwrap_or(1);
            tokio::time::sleep(Duration::from_secs(asked.min(LONGEST_WAIT))).await;
            answer = self.send_once(&call).await?;
        }
        self.watch.borrow_mut().see(&answer);
        Ok(answer)
    }

    /// What isn't the API's to answer: documents, whose examples aren't amounts of anything.
    pub async fn page(&self, path: &str) -> Result<Answer, Stop> {
        self.send_once(&Call::get(path).by(Credential::Nobody)).await
    }

    async fn send_once(&self, call: &Call) -> Result<Answer, Stop> {
        let mut request = self.http.request(call.method.clone(), format!("{}{}", self.url, call.path));
        match &call.credential {
            Credential::Own => request = request.bearer_auth(&self.key),
            Credential::Of(key) => request = request.bearer_auth(key),
            Credential::Nobody => {}
        }
        if let Some(key) = &call.key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(body) = &call.body {
            request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body.clone());
        }
        let label = call.label();
        let response = request.send().await.map_err(|error| unanswered(&label, &error))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.map_err(|error| unanswered(&label, &error))?.to_vec();
        let json = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Answer { label, status, headers, body, json })
    }
}

fn unanswered(label: &str, error: &reqwest::Error) -> Stop {
    let why = format!("{label}: {}", cause(error));
    if error.is_connect() { Stop::Unable(format!("the server can't be reached: {why}")) } else { Stop::Failed(why) }
}

/// The innermost cause: "Connection refused" rather than "error sending request".
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer in {} s", TIMEOUT.as_secs());
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// A value of `--url`.
pub fn base_url(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" => {}
        "https" if cfg!(feature = "https") => {}
        "https" => return Err("this build speaks http alone; https wants the cargo feature https".into()),
        _ => return Err("expected http:// or https://".into()),
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A value of `--key`.
pub fn credential(text: &str) -> Result<String, String> {
    let fit = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    fit.then(|| text.to_owned()).ok_or_else(|| "expected visible ASCII characters".into())
}
