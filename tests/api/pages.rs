//! What people and models read: they need no other host, are cached and compressed, and say what the catalogue says.

use crate::support::*;
use countersign::domain::error::Code;
use countersign::domain::operation::Operation;
use countersign::operations::authenticate::DemoActors;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

fn ask(app: &TestApp, method: Method, path: &str) -> RequestBuilder {
    reqwest::Client::new().request(method, format!("{}{path}", app.url))
}

async fn get(app: &TestApp, path: &str) -> Response {
    ask(app, Method::GET, path).send().await.unwrap()
}

fn header<'r>(response: &'r Response, name: &str) -> Option<&'r str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

const PAGES: [&str; 9] = [
    "/",
    "/docs",
    "/docs/docs.js",
    "/docs/scalar.js",
    "/style.css",
    "/openapi.json",
    "/schemas/x-ai-metadata.json",
    "/problems",
    "/llms.txt",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_page_has_a_policy_an_etag_and_is_compressed_for_whoever_takes_that() {
    let app = TestApp::start().await;
    for path in PAGES {
        let plain = get(&app, path).await;
        assert_eq!(plain.status(), 200, "{path}");
        let policy = header(&plain, "Content-Security-Policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{path}");
        assert!(!policy.contains('*') && !policy.contains("unsafe-eval"), "{path}: {policy}");
        assert!(
            policy.split(';').all(|part| !part.contains("script") || part.trim() == "script-src 'self'"),
            "{policy}"
        );
        assert_eq!(header(&plain, "Cache-Control"), Some("no-cache"));
        let tag = header(&plain, "ETag").unwrap().to_owned();
        let body = plain.bytes().await.unwrap();

        let zipped = ask(&app, Method::GET, path).header("Accept-Encoding", "br, gzip").send().await.unwrap();
        assert_eq!(header(&zipped, "Content-Encoding"), Some("gzip"), "{path}");
        assert_ne!(header(&zipped, "ETag"), Some(tag.as_str()), "another representation");
        assert!(header(&zipped, "Vary").unwrap().contains("Accept-Encoding"));
        let mut unzipped = Vec::new();
        let compressed = zipped.bytes().await.unwrap();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&compressed[..]), &mut unzipped).unwrap();
        assert!(unzipped == body && compressed.len() < body.len(), "{path}");

        let known = ask(&app, Method::GET, path).header("If-None-Match", &tag).send().await.unwrap();
        assert_eq!((known.status().as_u16(), known.bytes().await.unwrap().len()), (304, 0), "{path}");
        let changed = ask(&app, Method::GET, path).header("If-None-Match", "\"older\"").send().await.unwrap();
        assert_eq!(changed.status(), 200);
        let head = ask(&app, Method::HEAD, path).send().await.unwrap();
        assert_eq!((head.status().as_u16(), header(&head, "ETag")), (200, Some(tag.as_str())), "{path}");
        let refused = send(ask(&app, Method::POST, path)).await;
        refused.assert_problem(405, "method_not_allowed");
        assert_eq!(refused.header("Allow"), Some("GET, HEAD"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_load_nothing_from_another_host() {
    let app = TestApp::start().await;
    for path in ["/", "/docs", "/problems", "/problems/outcome_unknown", "/style.css", "/docs/docs.js"] {
        let text = get(&app, path).await.text().await.unwrap();
        assert!(!text.contains("=\"//") && !text.contains("https://") && !text.contains("http://"), "{path}");
    }
    let page = get(&app, "/docs").await.text().await.unwrap();
    assert!(page.contains("src=\"/docs/scalar.js\"") && page.contains("src=\"/docs/docs.js\""));
    assert!(get(&app, "/docs/scalar.js").await.bytes().await.unwrap().len() > 1_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_problem_has_a_page_for_people_and_for_machines() {
    let app = TestApp::start().await;
    let index = get(&app, "/problems").await.text().await.unwrap();
    for code in Code::ALL {
        let path = format!("/problems/{}", code.as_str());
        assert!(index.contains(&format!("href=\"{path}\"")));
        let page = get(&app, &path).await;
        assert_eq!(header(&page, "Content-Type"), Some("text/html; charset=utf-8"));
        let page = page.text().await.unwrap();
        assert!(page.contains(code.row().recovery.as_str()) && page.contains("What happened"));

        for accept in ["application/json", "text/plain, application/*;q=0.5"] {
            let facts = ask(&app, Method::GET, &path).header("Accept", accept).send().await.unwrap();
            assert_eq!(header(&facts, "Content-Type"), Some("application/json"));
            let facts: Value = facts.json().await.unwrap();
            assert_eq!(facts["code"], code.as_str());
            assert_eq!(facts["status"], code.row().status);
            assert_eq!(facts["example"]["type"], path);
        }
        let picky = ask(&app, Method::GET, &path).header("Accept", "text/html;q=0, */*").send().await.unwrap();
        assert_eq!(header(&picky, "Content-Type"), Some("application/json"));
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let page = ask(&app, Method::GET, &path).header("Accept", browser).send().await.unwrap();
        assert_eq!(header(&page, "Content-Type"), Some("text/html; charset=utf-8"));
    }
    app.shopper().get("/problems/none").await.assert_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn llms_txt_names_every_operation_and_every_problem() {
    let app = TestApp::start().await;
    let text = get(&app, "/llms.txt").await.text().await.unwrap();
    for operation in Operation::ALL {
        let profile = operation.profile();
        let line = format!("- `{}`: `{} {}`. ", operation.as_str(), profile.method, profile.path);
        assert!(text.contains(&line), "{line}");
    }
    for code in Code::ALL {
        assert!(text.contains(&format!("`{}`", code.as_str())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_keys_are_shown_in_a_demo_and_nowhere_else() {
    let demo = TestApp::start().await;
    assert!(get(&demo, "/").await.text().await.unwrap().contains("csk_demo_shopper"));
    assert!(get(&demo, "/docs").await.text().await.unwrap().contains("csk_demo_all"));
    let real = TestApp::with(|config| config.demo = DemoActors::Refused).await;
    for path in ["/", "/docs", "/llms.txt", "/openapi.json"] {
        assert!(!get(&real, path).await.text().await.unwrap().contains("csk_demo"), "{path}");
    }
}
