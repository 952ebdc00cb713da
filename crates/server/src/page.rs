//! The web page: files in the program, packed by `build.rs`.
//!
//! The files hold no data and need no credential. The names of the script and the styles contain a hash of their
//! content, so a browser keeps them for ever; everything else is checked by its tag.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

/// A file of the page.
struct File {
    /// Name in the address; empty for the page itself.
    name: &'static str,
    kind: &'static str,
    /// Changes with the content.
    tag: &'static str,
    plain: &'static [u8],
    packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// Returns the routes of the page. They need no credential.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new().route("/approve/{call}", get(approve));
    for file in FILES {
        let path = format!("/{}", file.name);
        router = router.route(
            &path,
            get(move |headers: HeaderMap| async move { file.answer(&headers) }),
        );
    }
    router
}

/// WEB-6: a link to a permission request opens the page at it. The page finds the session.
async fn approve(Path(call): Path<String>) -> Response {
    let mut address = String::from("../#/approve/");
    for byte in call.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => address.push(char::from(byte)),
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    Redirect::to(&address).into_response()
}

impl File {
    fn answer(&self, request: &HeaderMap) -> Response {
        let has = |name: header::HeaderName, text: &str| {
            let value = request.get(name).and_then(|value| value.to_str().ok());
            value.is_some_and(|value| value.contains(text))
        };
        let mut response = Response::new(Body::empty());
        if has(header::IF_NONE_MATCH, self.tag) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else if has(header::ACCEPT_ENCODING, "gzip") {
            *response.body_mut() = Body::from(Bytes::from_static(self.packed));
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        } else {
            *response.body_mut() = Body::from(Bytes::from_static(self.plain));
        }
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        let keep = if self.name.starts_with("app-") {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keep));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", self.tag)) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WEB-1: the whole page has less than 60 kB, compressed.
    #[test]
    fn the_page_is_small() {
        let size: usize = FILES.iter().map(|file| file.packed.len()).sum();
        assert!(size < 60_000, "{size} bytes");
        let names: Vec<&str> = FILES.iter().map(|file| file.name).collect();
        assert!(
            names
                .iter()
                .any(|name| name.starts_with("app-") && name.ends_with(".js")),
            "{names:?}"
        );
    }

    /// WEB-3: no source of the page parses HTML or builds code from text.
    #[test]
    fn no_text_becomes_markup_or_code() {
        for file in FILES.iter().filter(|file| file.kind.contains("javascript")) {
            let text = String::from_utf8_lossy(file.plain);
            for sink in [
                "innerHTML",
                "insertAdjacentHTML",
                "document.write",
                "DOMParser",
                "eval(",
                "new Function",
            ] {
                assert!(!text.contains(sink), "{} uses {sink}", file.name);
            }
        }
    }
}
