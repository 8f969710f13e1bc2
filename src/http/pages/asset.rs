//! What doesn't change while the server runs: sent with an ETag, compressed for whoever takes that (RFC 9110, 8.8.3 and
//! 12.5.3), and with a content security policy.

use crate::domain::digest::sha256_hex;
use actix_web::http::header::{
    self, AcceptEncoding, CacheControl, CacheDirective, ETag, Encoding, EntityTag, Header, IfNoneMatch,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::{LazyLock, OnceLock};

/// What a page may load, and from where: nothing from any other host.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// Text and our style sheet.
    Plain,
    /// Our scripts too, which may call our API. Scalar sets its own style elements and draws with data URLs.
    Scripted,
}

impl Policy {
    const fn header(self) -> &'static str {
        match self {
            Policy::Plain => {
                "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
                 frame-ancestors 'none'"
            }
            Policy::Scripted => {
                "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
                 font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            }
        }
    }
}

pub struct Asset {
    pub content_type: &'static str,
    policy: Policy,
    body: Body,
    /// Made when somebody asks for it first.
    prepared: OnceLock<Prepared>,
}

pub enum Body {
    Ready(Bytes),
    /// Large: read when somebody asks for it first.
    Later(&'static LazyLock<Bytes>),
}

impl Body {
    fn bytes(&self) -> &Bytes {
        match self {
            Body::Ready(bytes) => bytes,
            Body::Later(bytes) => bytes,
        }
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Body::Ready(bytes.into())
    }
}

struct Prepared {
    tag: String,
    /// None where compressing doesn't help.
    gzip: Option<Bytes>,
}

impl Asset {
    pub fn new(content_type: &'static str, policy: Policy, body: impl Into<Body>) -> Self {
        Self { content_type, policy, body: body.into(), prepared: OnceLock::new() }
    }

    pub fn answer(&self, request: &HttpRequest) -> HttpResponse {
        let prepared = self.prepared.get_or_init(|| prepare(self.body.bytes()));
        let gzip = prepared.gzip.as_ref().filter(|_| takes_gzip(request));
        let tag = EntityTag::new_strong(match gzip {
            Some(_) => format!("{}-gzip", prepared.tag),
            None => prepared.tag.clone(),
        });
        let known = client_has(request, &tag);
        let mut response = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
        response
            .insert_header(ETag(tag))
            .insert_header(CacheControl(vec![CacheDirective::NoCache]))
            .insert_header((header::VARY, "Accept, Accept-Encoding"))
            .insert_header((header::CONTENT_SECURITY_POLICY, self.policy.header()))
            .insert_header((header::REFERRER_POLICY, "no-referrer"))
            .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
        if known {
            return response.finish();
        }
        response.content_type(self.content_type);
        match gzip {
            Some(gzip) => response.insert_header((header::CONTENT_ENCODING, "gzip")).body(gzip.clone()),
            None => response.body(self.body.bytes().clone()),
        }
    }
}

/// The tag, and the compressed body where that is shorter.
fn prepare(body: &[u8]) -> Prepared {
    let tag = sha256_hex(body)[..16].to_owned();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let compressed = encoder.write_all(body).and_then(|()| encoder.finish());
    let gzip = compressed.ok().filter(|compressed| compressed.len() < body.len()).map(Bytes::from);
    Prepared { tag, gzip }
}

fn takes_gzip(request: &HttpRequest) -> bool {
    let accepted = AcceptEncoding::parse(request).ok();
    accepted.is_some_and(|accepted| {
        accepted.negotiate([Encoding::gzip(), Encoding::identity()].iter()) == Some(Encoding::gzip())
    })
}

fn client_has(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        // Without the header it reads as Any too.
        Ok(IfNoneMatch::Any) => request.headers().contains_key(header::IF_NONE_MATCH),
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|known| known.weak_eq(tag)),
        Err(_) => false,
    }
}
