//! A reverse proxy that bends requests and answers: in front of a server that does everything right, it is one that does one
//! thing wrong.

use crate::support::Got;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// A request on its way.
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Ask {
    pub fn key(&self) -> Option<String> {
        self.headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned())
    }

    pub fn set_key(&mut self, key: &str) {
        self.headers.insert("idempotency-key", key.parse().unwrap());
    }
}

/// Sets the body to what `bend` makes of it, if it is JSON.
pub fn bend_json(got: &mut Got, bend: impl FnOnce(&mut Value)) {
    if let Ok(mut json) = serde_json::from_slice(&got.body) {
        bend(&mut json);
        got.body = json.to_string().into_bytes();
    }
}

type BendAsk = Box<dyn Fn(&mut Ask) + Send + Sync>;
type BendAnswer = Box<dyn Fn(&Ask, &mut Got) + Send + Sync>;

pub struct Faulty {
    pub url: String,
    state: Arc<State>,
    server: actix_web::dev::ServerHandle,
}

struct State {
    http: reqwest::Client,
    /// Can be exchanged, as a restarted process listens somewhere else.
    upstream: Mutex<String>,
    ask: BendAsk,
    answer: BendAnswer,
}

impl Faulty {
    pub fn new(
        upstream: &str,
        ask: impl Fn(&mut Ask) + Send + Sync + 'static,
        answer: impl Fn(&Ask, &mut Got) + Send + Sync + 'static,
    ) -> Self {
        let (http, upstream) = (reqwest::Client::new(), Mutex::new(upstream.to_owned()));
        let state = Arc::new(State { http, upstream, ask: Box::new(ask), answer: Box::new(answer) });
        let shared = Data::from(state.clone());
        let app = move || App::new().app_data(shared.clone()).default_service(web::to(pass_on));
        let server = HttpServer::new(app).workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.addrs()[0]);
        let server = server.run();
        let handle = server.handle();
        tokio::spawn(server);
        Self { url, state, server: handle }
    }

    /// Bends nothing.
    pub fn faultless(upstream: &str) -> Self {
        Self::new(upstream, |_| (), |_, _| ())
    }

    pub fn set_upstream(&self, url: &str) {
        url.clone_into(&mut self.state.upstream.lock().unwrap());
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

async fn pass_on(request: HttpRequest, body: Bytes, state: Data<State>) -> HttpResponse {
    let headers = request.headers().iter().filter(|(name, _)| !["host", "content-length"].contains(&name.as_str()));
    let mut ask = Ask {
        method: request.method().as_str().parse().unwrap(),
        path: request.uri().to_string(),
        headers: headers.map(|(n, v)| (n.as_str().parse().unwrap(), v.as_bytes().try_into().unwrap())).collect(),
        body,
    };
    (state.ask)(&mut ask);
    let url = format!("{}{}", state.upstream.lock().unwrap(), ask.path);
    let call = state.http.request(ask.method.clone(), url).headers(ask.headers.clone()).body(ask.body.clone());
    let Ok(response) = call.send().await else { return HttpResponse::BadGateway().finish() };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let Ok(body) = response.bytes().await else { return HttpResponse::BadGateway().finish() };
    let mut got = Got { status, headers, body: body.to_vec() };
    (state.answer)(&ask, &mut got);
    let mut answer = HttpResponse::build(got.status.try_into().unwrap());
    for (name, value) in got.headers.iter().filter(|(name, _)| !["content-length", "date"].contains(&name.as_str())) {
        answer.append_header((name.as_str(), value.as_bytes()));
    }
    answer.body(got.body)
}
