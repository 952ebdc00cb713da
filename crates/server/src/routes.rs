//! The routes. One table has all of them: the router, the scopes and the OpenAPI document are made from it.

mod body;
mod events;
mod messages;
mod session;
mod sessions;
mod sign_in;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::routing::{MethodRouter, delete, get, patch, post};
use schemars::{Schema, SchemaGenerator};

use crate::app::Shared;
use crate::checks::{Needs, inner};
use crate::credentials::Scope;
use crate::page;
use crate::problem::Problem;

/// Makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// One route.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    pub(crate) help: &'static str,
    pub(crate) body: Option<SchemaOf>,
    pub(crate) answer: Option<SchemaOf>,
    handler: fn() -> MethodRouter<Shared>,
}

fn schema<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const READ: Needs = Needs::Scope(Scope::Read);
const WRITE: Needs = Needs::Scope(Scope::Write);
const APPROVE: Needs = Needs::Scope(Scope::Approve);
const ADMIN: Needs = Needs::Scope(Scope::Admin);

/// Returns all routes.
#[rustfmt::skip]
pub(crate) fn all() -> Vec<Route> {
    use Needs::Nothing;
    let route = |method, path, needs, help, body, answer, handler| Route { method, path, needs, help, body, answer, handler };
    vec![
        route(Method::GET, "/api/health", Nothing, "Version of the server", None, Some(schema::<sign_in::Health> as SchemaOf), (|| get(sign_in::health)) as fn() -> MethodRouter<Shared>),
        route(Method::POST, "/api/login", Nothing, "Exchange a login link for the cookie of a browser", Some(schema::<sign_in::Login>), Some(schema::<sign_in::SignedIn>), || post(sign_in::login)),
        route(Method::POST, "/api/logout", READ, "Sign this browser out", None, None, || post(sign_in::logout)),
        route(Method::GET, "/api/credentials", ADMIN, "Browsers that are signed in, tokens and login links", None, Some(schema::<sign_in::CredentialList>), || get(sign_in::list)),
        route(Method::DELETE, "/api/credentials/{id}", ADMIN, "Revoke a browser, token or link", None, None, || delete(sign_in::revoke)),
        route(Method::GET, "/api/sessions", READ, "List or search sessions", None, Some(schema::<sessions::SessionList>), || get(sessions::list)),
        route(Method::POST, "/api/sessions", WRITE, "Create, fork or open a session, also by key", Some(schema::<sessions::BeginBody>), Some(schema::<sessions::Begun>), || post(sessions::begin)),
        route(Method::GET, "/api/sessions/{id}", READ, "One session", None, Some(schema::<crate::coarse::SessionRow>), || get(sessions::one)),
        route(Method::PATCH, "/api/sessions/{id}", WRITE, "Rename a session", Some(schema::<sessions::Rename>), Some(schema::<crate::coarse::SessionRow>), || patch(sessions::rename)),
        route(Method::DELETE, "/api/sessions/{id}", WRITE, "Delete a session", None, None, || delete(sessions::delete)),
        route(Method::GET, "/api/sessions/{id}/state", READ, "Everything a client needs to show a session", None, Some(schema::<crate::snapshot::Snapshot>), || get(session::state)),
        route(Method::GET, "/api/sessions/{id}/entries", READ, "Older entries, page by page", None, Some(schema::<session::Entries>), || get(session::entries)),
        route(Method::GET, "/api/sessions/{id}/events", READ, "Events of one session (server-sent events)", None, None, || get(events::one)),
        route(Method::GET, "/api/events", READ, "Changes of all sessions, and events of those named (server-sent events)", None, None, || get(events::all)),
        route(Method::POST, "/api/sessions/{id}/messages", WRITE, "Send a message; a repeated id is accepted once", Some(schema::<messages::Message>), Some(schema::<crate::sends::Sent>), || post(messages::send)),
        route(Method::POST, "/api/sessions/{id}/cancel", WRITE, "Stop the running turn", None, Some(schema::<messages::Canceled>), || post(messages::cancel)),
        route(Method::POST, "/api/sessions/{id}/replies/{call}", APPROVE, "Answer a permission request or a question", Some(schema::<messages::Reply>), None, || post(messages::reply)),
        route(Method::DELETE, "/api/sessions/{id}/queue/{message}", WRITE, "Take a message back from the queue", None, Some(schema::<messages::TakenBack>), || delete(messages::take_back)),
        route(Method::POST, "/api/sessions/{id}/queue", WRITE, "Start a turn with the queued messages of a paused queue", None, None, || post(messages::go_on)),
        route(Method::GET, "/api/sessions/{id}/commands", READ, "Slash commands, or completions of a line", None, Some(schema::<messages::CommandList>), || get(messages::commands)),
        route(Method::POST, "/api/sessions/{id}/commands", WRITE, "Run a slash command", Some(schema::<messages::CommandBody>), Some(schema::<messages::CommandAnswer>), || post(messages::command)),
    ]
}

/// Builds the router from the table.
pub(crate) fn router(app: &Shared) -> Router<Shared> {
    let mut router = Router::new();
    for route in all() {
        let (app, needs) = (Arc::clone(app), route.needs);
        let check = move |request: Request, next: Next| inner(Arc::clone(&app), needs, request, next);
        router = router.route(route.path, (route.handler)().layer(from_fn(check)));
    }
    let (app, needs) = (Arc::clone(app), READ);
    let check = move |request: Request, next: Next| inner(Arc::clone(&app), needs, request, next);
    let unknown = Router::new()
        .fallback(|| async { Problem::not_found("there is no such route; /api/openapi.json lists all") })
        .layer(from_fn(check));
    router
        .merge(page::router())
        .method_not_allowed_fallback(|| async {
            let text = "this route does not have this method; /api/openapi.json lists all";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text)
        })
        .fallback_service(unknown)
}
