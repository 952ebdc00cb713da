//! The web page: static files in the program.

use axum::Router;
use axum::response::Html;
use axum::routing::get;

/// Returns the routes of the page. They need no credential: the files hold no data.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/", get(|| async { Html(INDEX) }))
}

/// Shown until there is a page.
const INDEX: &str = "<!doctype html><meta charset=\"utf-8\"><title>Windlass</title><h1>Windlass</h1>\
    <p>The server is running. Its API is described at <a href=\"api/openapi.json\">api/openapi.json</a>.</p>";
