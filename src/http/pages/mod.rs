//! What people and models read: the start page, the OpenAPI document and its pages (Scalar, from assets in the binary), a
//! page for each problem, and `llms.txt`. All are made from the document, the effect catalogue and the error table.

mod asset;
mod llms;
mod problems;
mod start;

use super::State;
use super::openapi::{Samples, exchanges};
use crate::domain::error::{Code, Problem};
use crate::effects::Retention;
use crate::operations::authenticate::DemoActors;
use actix_web::http::header::{Accept, Header, Quality, QualityItem};
use actix_web::mime::{self, Mime};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use asset::{Asset, Body, Policy};
use maud::{DOCTYPE, Markup, html};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Megabytes, which whoever never opens the pages doesn't need.
static SCALAR: LazyLock<Bytes> =
    LazyLock::new(|| scalar_api_reference::get_asset("scalar.js").unwrap_or_default().into());

/// Each path with its representations; the first is for whoever doesn't care, or asks for what there isn't.
pub struct Pages(BTreeMap<String, Vec<Asset>>);

impl Pages {
    pub fn new(retention: Retention, demo: DemoActors) -> serde_json::Result<Self> {
        let document = super::document(retention)?;
        let plain = |content_type, body: Bytes| vec![Asset::new(content_type, Policy::Plain, body)];
        let text = |content_type, text: &'static str| plain(content_type, text.into());
        let markup = |policy, markup: Markup| vec![Asset::new(HTML, policy, markup.into_string())];
        let json = |value: &Value| vec![Asset::new(JSON, Policy::Plain, format!("{value:#}"))];
        let samples = Samples::of(&exchanges::all()?)?;
        let mut pages = BTreeMap::from([
            ("/".to_owned(), markup(Policy::Plain, start::page(demo))),
            ("/docs".to_owned(), markup(Policy::Scripted, docs(demo))),
            ("/docs/docs.js".to_owned(), text(SCRIPT, include_str!("docs.js"))),
            ("/docs/docs.css".to_owned(), text(STYLE, include_str!("docs.css"))),
            ("/style.css".to_owned(), text(STYLE, include_str!("style.css"))),
            ("/favicon.ico".to_owned(), text("image/svg+xml", include_str!("favicon.svg"))),
            ("/favicon.svg".to_owned(), text("image/svg+xml", include_str!("favicon.svg"))),
            ("/openapi.json".to_owned(), json(&document)),
            ("/schemas/x-ai-metadata.json".to_owned(), text(JSON, crate::effects::METADATA_SCHEMA)),
            (
                "/problems".to_owned(),
                [markup(Policy::Plain, problems::index()), json(&problems::list())].into_iter().flatten().collect(),
            ),
            ("/llms.txt".to_owned(), plain("text/markdown; charset=utf-8", llms::text(&document).into())),
            ("/docs/scalar.js".to_owned(), vec![Asset::new(SCRIPT, Policy::Plain, Body::Later(&SCALAR))]),
        ]);
        for code in Code::ALL {
            let mut representations = markup(Policy::Plain, problems::page(*code, &samples));
            representations.extend(json(&problems::facts(*code, &samples)));
            pages.insert(format!("/problems/{}", code.as_str()), representations);
        }
        Ok(Self(pages))
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }
}

/// Every page, for GET and HEAD.
pub fn routes(config: &mut web::ServiceConfig, pages: &Pages) {
    for path in pages.0.keys() {
        config.route(path, web::get().to(page)).route(path, web::head().to(page));
    }
}

async fn page(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, Problem> {
    let representations = state.pages.0.get(request.path()).map(Vec::as_slice).unwrap_or_default();
    let accept = Accept::parse(&request).map(|Accept(ranges)| ranges).unwrap_or_default();
    // The last of equals, so that the first of the page's own order wins.
    let best = representations.iter().rev().max_by_key(|asset| quality(&accept, asset));
    Ok(best.ok_or_else(Problem::no_such_route)?.answer(&request))
}

/// What a client gives for a representation: the most specific range that takes it in counts (RFC 9110, 12.5.1).
fn quality(accept: &[QualityItem<Mime>], asset: &Asset) -> Quality {
    let Ok(is) = asset.content_type.parse::<Mime>() else { return Quality::ZERO };
    let specific = |range: &Mime| match (range.type_(), range.subtype()) {
        (mime::STAR, _) => Some(0),
        (main, mime::STAR) => (main == is.type_()).then_some(1),
        (main, sub) => (main == is.type_() && sub == is.subtype()).then_some(2),
    };
    let suiting = accept.iter().filter_map(|range| Some((specific(&range.item)?, range.quality)));
    suiting.max_by_key(|(specific, _)| *specific).map_or(Quality::ZERO, |(_, quality)| quality)
}

/// A page with our style and no script.
fn layout(title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (meta(title)) link rel="stylesheet" href="/style.css"; }
            body {
                header { nav {
                    a href="/" { "Countersign" }
                    a href="/docs" { "API" }
                    a href="/problems" { "Problems" }
                    a href="/llms.txt" { "llms.txt" }
                } }
                main { (body) }
            }
        }
    }
}

fn meta(title: &str) -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (title) }
        link rel="icon" href="/favicon.svg" type="image/svg+xml";
    }
}

/// The API's pages. `docs.js` mounts them.
fn docs(demo: DemoActors) -> Markup {
    let key = match demo {
        DemoActors::Admitted => Some("csk_demo_all"),
        DemoActors::Refused => None,
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head { (meta("Countersign API")) link rel="stylesheet" href="/docs/docs.css"; }
            body {
                div id="api" data-demo-key=[key] {}
                noscript { main { p {
                    "These pages need JavaScript. Without it: " a href="/openapi.json" { "the OpenAPI document" } ", or "
                    a href="/llms.txt" { "the API in a page of Markdown" } "."
                } } }
                script src="/docs/scalar.js" {}
                script src="/docs/docs.js" type="module" {}
            }
        }
    }
}
