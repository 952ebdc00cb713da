//! The routes. One table has all of them: the router, the scopes and the OpenAPI document are made from it.

mod audit;
mod body;
mod changes;
mod events;
pub(crate) mod files;
mod imports;
mod insight;
mod messages;
mod openapi;
mod plain;
mod push;
mod search;
mod session;
mod sessions;
mod sign_in;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use schemars::{Schema, SchemaGenerator};

pub(crate) use self::body::parameter;
pub(crate) use self::files::Uploads;
pub(crate) use self::imports::Imports;
use crate::app::Shared;
use crate::checks::{Needs, inner};
use crate::credentials::Scope;
use crate::openai as openai_wire;
use crate::page;
use crate::problem::Problem;

/// Makes the handler of a route.
type Handler = fn() -> MethodRouter<Shared>;

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
    /// Query parameters, with their help.
    pub(crate) query: &'static [(&'static str, &'static str)],
    /// Status code of success.
    pub(crate) status: &'static str,
    handler: Handler,
}

impl Route {
    /// Returns the content type of the answer.
    fn kind(&self) -> &'static str {
        match self.path {
            path if path.ends_with("/events") => "text/event-stream",
            "/s/{id}/plain" => "text/html",
            "/api/files/content" => "application/octet-stream",
            "/metrics" => "text/plain",
            _ => "application/json",
        }
    }
}

/// The schema of a value whose form another document describes.
fn any(_: &mut SchemaGenerator) -> Schema {
    Schema::default()
}

fn schema<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Largest body of a request, in bytes; uploads have a limit of their own.
const BODY: usize = 1 << 20;

const NO_QUERY: &[(&str, &str)] = &[];
const READ: Needs = Needs::Scope(Scope::Read);
const WRITE: Needs = Needs::Scope(Scope::Write);
const APPROVE: Needs = Needs::Scope(Scope::Approve);
const ADMIN: Needs = Needs::Scope(Scope::Admin);

/// Returns all routes.
#[rustfmt::skip]
pub(crate) fn all() -> Vec<Route> {
    use Needs::Nothing;
    vec![
        Route { method: Method::GET, path: "/api/health", needs: Nothing, help: "Version of the server", body: None, answer: Some(schema::<sign_in::Health>), query: NO_QUERY, status: "200", handler: || get(sign_in::health) },
        Route { method: Method::POST, path: "/api/login", needs: Nothing, help: "Exchange a login link for the cookie of a browser", body: Some(schema::<sign_in::Login>), answer: Some(schema::<sign_in::SignedIn>), query: NO_QUERY, status: "200", handler: || post(sign_in::login) },
        Route { method: Method::POST, path: "/api/logout", needs: READ, help: "Sign this browser out", body: None, answer: None, query: NO_QUERY, status: "204", handler: || post(sign_in::logout) },
        Route { method: Method::GET, path: "/api/credentials", needs: ADMIN, help: "Browsers that are signed in, tokens and login links", body: None, answer: Some(schema::<sign_in::CredentialList>), query: NO_QUERY, status: "200", handler: || get(sign_in::list) },
        Route { method: Method::DELETE, path: "/api/credentials/{id}", needs: ADMIN, help: "Revoke a browser, token or link", body: None, answer: None, query: NO_QUERY, status: "204", handler: || delete(sign_in::revoke) },
        Route { method: Method::GET, path: "/api/me", needs: READ, help: "User of the credential, and what is left of today's limits", body: None, answer: Some(schema::<audit::Me>), query: NO_QUERY, status: "200", handler: || get(audit::me) },
        Route { method: Method::GET, path: "/api/audit", needs: ADMIN, help: "Audit log of approvals, effects and sign-ins", body: None, answer: Some(schema::<audit::AuditRows>), query: &[("user", "Only this user"), ("of_session", "Only this session"), ("action", "Only this kind, such as `approval_answered`"), ("since", "Only from this time on, in milliseconds since 1970"), ("after", "Only rows after this number; the last rows if absent"), ("limit", "Number of rows, at most 1000")], status: "200", handler: || get(audit::list) },
        Route { method: Method::GET, path: "/api/sessions", needs: READ, help: "List or search sessions", body: None, answer: Some(schema::<sessions::SessionList>), query: &[("q", "Words of a title, a name, an id or a message"), ("place", "Only sessions of this folder"), ("user", "With the scope `admin`: sessions of this user, or of all users with `*`"), ("limit", "Number of sessions, at most 500"), ("cursor", "`next` of the previous page")], status: "200", handler: || get(sessions::list) },
        Route { method: Method::POST, path: "/api/sessions", needs: WRITE, help: "Create, fork or open a session, also by key", body: Some(schema::<sessions::BeginBody>), answer: Some(schema::<sessions::Begun>), query: NO_QUERY, status: "201", handler: || post(sessions::begin) },
        Route { method: Method::POST, path: "/api/sessions/import", needs: APPROVE, help: "Import a session file of Windlass, Claude Code, Codex or pi", body: Some(schema::<imports::ImportBody>), answer: Some(schema::<crate::app::ImportedSession>), query: NO_QUERY, status: "201", handler: || post(imports::import).layer(DefaultBodyLimit::max(imports::LARGEST)) },
        Route { method: Method::GET, path: "/api/sessions/{id}", needs: READ, help: "One session", body: None, answer: Some(schema::<crate::coarse::SessionRow>), query: NO_QUERY, status: "200", handler: || get(sessions::one) },
        Route { method: Method::PATCH, path: "/api/sessions/{id}", needs: WRITE, help: "Rename a session", body: Some(schema::<sessions::Rename>), answer: Some(schema::<crate::coarse::SessionRow>), query: NO_QUERY, status: "200", handler: || patch(sessions::rename) },
        Route { method: Method::DELETE, path: "/api/sessions/{id}", needs: WRITE, help: "Delete a session; its turn is canceled first", body: None, answer: None, query: NO_QUERY, status: "204", handler: || delete(sessions::delete) },
        Route { method: Method::GET, path: "/api/sessions/{id}/state", needs: READ, help: "Everything a client needs to show a session", body: None, answer: Some(schema::<crate::snapshot::Snapshot>), query: NO_QUERY, status: "200", handler: || get(session::state) },
        Route { method: Method::GET, path: "/api/sessions/{id}/entries", needs: READ, help: "Older entries, page by page", body: None, answer: Some(schema::<session::Entries>), query: &[("before", "Only entries before this number"), ("limit", "Number of entries, at most 1000")], status: "200", handler: || get(session::entries) },
        Route { method: Method::GET, path: "/api/sessions/{id}/search", needs: READ, help: "Find text within a session", body: None, answer: Some(schema::<search::FoundPlaces>), query: &[("q", "Text to find, in any case"), ("limit", "Number of places, at most 200")], status: "200", handler: || get(search::search) },
        Route { method: Method::GET, path: "/api/sessions/{id}/events", needs: READ, help: "Events of one session (server-sent events)", body: None, answer: None, query: &[("after", "Number of the last event that is known"), ("epoch", "Run of the server that the number belongs to")], status: "200", handler: || get(events::one) },
        Route { method: Method::GET, path: "/api/events", needs: READ, help: "Changes of all sessions, and events of those named (server-sent events)", body: None, answer: None, query: &[("session", "Session to follow; may be repeated"), ("after", "Number of the last event that is known of the session before it"), ("epoch", "Run of the server that the numbers belong to")], status: "200", handler: || get(events::all) },
        Route { method: Method::POST, path: "/api/sessions/{id}/messages", needs: WRITE, help: "Send a message; a repeated id is accepted once", body: Some(schema::<messages::Message>), answer: Some(schema::<crate::sends::Sent>), query: NO_QUERY, status: "202", handler: || post(messages::send) },
        Route { method: Method::POST, path: "/api/sessions/{id}/cancel", needs: WRITE, help: "Stop the running turn", body: None, answer: Some(schema::<messages::Canceled>), query: NO_QUERY, status: "200", handler: || post(messages::cancel) },
        Route { method: Method::POST, path: "/api/sessions/{id}/replies/{call}", needs: APPROVE, help: "Answer a permission request or a question", body: Some(schema::<messages::Reply>), answer: None, query: NO_QUERY, status: "204", handler: || post(messages::reply) },
        Route { method: Method::DELETE, path: "/api/sessions/{id}/queue/{message}", needs: WRITE, help: "Take a message back from the queue", body: None, answer: Some(schema::<messages::TakenBack>), query: NO_QUERY, status: "200", handler: || delete(messages::take_back) },
        Route { method: Method::POST, path: "/api/sessions/{id}/queue", needs: WRITE, help: "Start a turn with the queued messages of a paused queue", body: None, answer: None, query: NO_QUERY, status: "202", handler: || post(messages::go_on) },
        Route { method: Method::GET, path: "/api/sessions/{id}/commands", needs: READ, help: "Slash commands, or completions of a line", body: None, answer: Some(schema::<messages::CommandList>), query: &[("complete", "Line to complete")], status: "200", handler: || get(messages::commands) },
        Route { method: Method::POST, path: "/api/sessions/{id}/commands", needs: APPROVE, help: "Run a slash command, which may change the mode and permissions", body: Some(schema::<messages::CommandBody>), answer: Some(schema::<messages::CommandAnswer>), query: NO_QUERY, status: "200", handler: || post(messages::command) },
        Route { method: Method::GET, path: "/api/sessions/{id}/checkpoints", needs: READ, help: "Checkpoints of file changes", body: None, answer: Some(schema::<changes::Checkpoints>), query: NO_QUERY, status: "200", handler: || get(changes::checkpoints) },
        Route { method: Method::GET, path: "/api/sessions/{id}/changes/{number}", needs: READ, help: "File changes of one checkpoint, as diffs; with 0, of all turns together that were not undone", body: None, answer: Some(schema::<changes::Changes>), query: NO_QUERY, status: "200", handler: || get(changes::changes) },
        Route { method: Method::POST, path: "/api/sessions/{id}/undo", needs: WRITE, help: "Undo file changes", body: Some(schema::<changes::Back>), answer: Some(schema::<messages::CommandAnswer>), query: NO_QUERY, status: "200", handler: || post(changes::undo) },
        Route { method: Method::POST, path: "/api/sessions/{id}/redo", needs: WRITE, help: "Redo the last undo", body: Some(schema::<changes::Back>), answer: Some(schema::<messages::CommandAnswer>), query: NO_QUERY, status: "200", handler: || post(changes::redo) },
        Route { method: Method::GET, path: "/api/sessions/{id}/context", needs: READ, help: "Spans of the next request", body: None, answer: Some(schema::<insight::Context>), query: NO_QUERY, status: "200", handler: || get(insight::context) },
        Route { method: Method::GET, path: "/api/sessions/{id}/cost", needs: READ, help: "Costs, in groups", body: None, answer: Some(schema::<insight::Cost>), query: &[("by", "session, model, cause or day")], status: "200", handler: || get(insight::cost) },
        Route { method: Method::GET, path: "/api/sessions/{id}/why", needs: READ, help: "What the running turn waits for", body: None, answer: Some(schema::<insight::Why>), query: NO_QUERY, status: "200", handler: || get(insight::why) },
        Route { method: Method::GET, path: "/api/sessions/{id}/agents", needs: READ, help: "Sub-agents below a session", body: None, answer: Some(schema::<insight::Agents>), query: NO_QUERY, status: "200", handler: || get(insight::agents) },
        Route { method: Method::GET, path: "/api/sessions/{id}/plan", needs: READ, help: "Plan of a session", body: None, answer: Some(schema::<insight::PlanAnswer>), query: NO_QUERY, status: "200", handler: || get(insight::plan) },
        Route { method: Method::GET, path: "/api/agents", needs: READ, help: "Sub-agents of the sessions that changed last", body: None, answer: Some(schema::<insight::Agents>), query: NO_QUERY, status: "200", handler: || get(insight::fleet) },
        Route { method: Method::GET, path: "/api/questions", needs: READ, help: "Questions and permission requests of all sessions", body: None, answer: Some(schema::<insight::Questions>), query: NO_QUERY, status: "200", handler: || get(insight::questions) },
        Route { method: Method::GET, path: "/api/files", needs: READ, help: "Find files by name", body: None, answer: Some(schema::<files::FileNames>), query: &[("session", "Session whose folder is meant"), ("q", "Letters of the name"), ("limit", "Number of names, at most 100")], status: "200", handler: || get(files::find) },
        Route { method: Method::GET, path: "/api/files/content", needs: READ, help: "Content of a file, under the limits of the file tools", body: None, answer: None, query: &[("session", "Session whose folder is meant"), ("path", "Path of the file")], status: "200", handler: || get(files::content) },
        Route { method: Method::POST, path: "/api/uploads", needs: WRITE, help: "Upload an image for a message", body: Some(schema::<files::Upload>), answer: Some(schema::<files::Uploaded>), query: NO_QUERY, status: "201", handler: || post(files::upload).layer(DefaultBodyLimit::max(files::UPLOAD)) },
        Route { method: Method::GET, path: "/api/push/key", needs: READ, help: "Public key with which a browser subscribes to web push", body: None, answer: Some(schema::<push::PushKey>), query: NO_QUERY, status: "200", handler: || get(push::key) },
        Route { method: Method::PUT, path: "/api/push/subscriptions", needs: READ, help: "Subscribe this browser to web push", body: Some(schema::<crate::push::PushSubscription>), answer: None, query: NO_QUERY, status: "204", handler: || put(push::subscribe) },
        Route { method: Method::DELETE, path: "/api/push/subscriptions", needs: READ, help: "End a subscription to web push", body: Some(schema::<push::Unsubscribe>), answer: None, query: NO_QUERY, status: "204", handler: || delete(push::unsubscribe) },
        Route { method: Method::GET, path: "/api/openapi.json", needs: READ, help: "This description", body: None, answer: None, query: NO_QUERY, status: "200", handler: || get(openapi::openapi) },
        Route { method: Method::GET, path: "/s/{id}/plain", needs: READ, help: "A session as a plain page without scripts", body: None, answer: None, query: NO_QUERY, status: "200", handler: || get(plain::plain) },
        Route { method: Method::GET, path: "/metrics", needs: READ, help: "Counts in the text format of Prometheus", body: None, answer: None, query: NO_QUERY, status: "200", handler: || get(sign_in::metrics) },
        Route { method: Method::GET, path: "/v1/models", needs: READ, help: "With --openai: the model, as OpenAI lists models", body: None, answer: Some(any), query: NO_QUERY, status: "200", handler: || get(openai_wire::models) },
        Route { method: Method::POST, path: "/v1/chat/completions", needs: WRITE, help: "With --openai: a turn of a session, as OpenAI's Chat Completions", body: Some(any), answer: Some(any), query: &[("progress", "`reasoning` sends reasoning and tools as `reasoning_content`")], status: "200", handler: || post(openai_wire::chat).layer(DefaultBodyLimit::max(files::UPLOAD)) },
        Route { method: Method::POST, path: "/v1/responses", needs: WRITE, help: "With --openai: a turn of a session, as OpenAI's Responses", body: Some(any), answer: Some(any), query: NO_QUERY, status: "200", handler: || post(openai_wire::responses).layer(DefaultBodyLimit::max(files::UPLOAD)) },
    ]
}

/// Builds the router from the table.
pub(crate) fn router(app: &Shared) -> Router<Shared> {
    let mut router = Router::new();
    for route in all() {
        if route.path.starts_with("/v1/") && !app.config.openai {
            continue;
        }
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
        .layer(DefaultBodyLimit::max(BODY))
        .method_not_allowed_fallback(|| async {
            let text = "this route does not have this method; /api/openapi.json lists all";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", text)
        })
        .fallback_service(unknown)
}
