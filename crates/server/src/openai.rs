//! SRV-5: sessions behind the wire formats of OpenAI's Chat Completions and Responses, for programs that know only those.
//!
//! The agent uses its own tools; a request that brings tools is refused. Nobody can answer a question here, so every
//! question means no, and the answer says what was refused.

mod answer;
mod request;
mod responses;

use axum::Json;
use axum::extract::{Extension, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use windlass_api::{
    Backend, Begin, EventStream, Label, MessageId, OnBusy, Part, SessionId, SessionKey, Submission,
};

use self::answer::{Turn, stream, whole};
use self::request::ChatRequest;
pub(crate) use self::responses::responses;
use crate::app::Shared;
use crate::checks::Who;
use crate::credentials::{Credential, hash};
use crate::problem::Problem;

/// Header that names the session, in requests and answers.
pub(crate) const SESSION: &str = "x-windlass-session";
/// Header that keeps the turn running after the client disconnects.
const DETACH: &str = "x-windlass-detach";
/// Name of the only model.
const MODEL: &str = "windlass";

/// Lists the model.
pub(crate) async fn models(State(app): State<Shared>) -> Json<Value> {
    let created = app.ports.clock.now().0 / 1000;
    Json(json!({
        "object": "list",
        "data": [{ "id": MODEL, "object": "model", "created": created, "owned_by": "windlass" }],
    }))
}

/// Runs a turn.
pub(crate) async fn chat(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let shows_reasoning =
        query.is_some_and(|query| query.split('&').any(|pair| pair == "progress=reasoning"));
    let asked = match ChatRequest::parse(&body) {
        Ok(asked) => asked,
        Err(problem) => return refused(&problem),
    };
    let opened = match opening(&app, &who.id, &headers, asked.user.as_deref()) {
        Ok(begin) => submit((&app, &who), begin, asked.parts.clone(), asked.before.as_deref()).await,
        Err(problem) => Err(problem),
    };
    let turn = match opened {
        Ok((session, events)) => Turn {
            ports: app.ports.clone(),
            id: format!("chatcmpl-{}", MessageId::generate()),
            created: app.ports.clock.now().0 / 1000,
            model: asked.model.clone(),
            session,
            events,
            is_detached: headers.get(DETACH).is_some_and(|value| value == "1"),
            shows_reasoning,
        },
        Err(problem) => return refused(&problem),
    };
    let session = turn.session.clone();
    let mut response = match asked.is_stream {
        true => stream(turn, asked.with_usage),
        false => Json(whole(turn).await).into_response(),
    };
    if let Ok(session) = HeaderValue::from_str(session.as_str()) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// Formats a problem as OpenAI's clients expect it.
fn refused(problem: &Problem) -> Response {
    let kind = if problem.status < 500 {
        "invalid_request_error"
    } else {
        "server_error"
    };
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
    let body = json!({
        "error": { "message": problem.detail, "type": kind, "param": problem.field, "code": problem.title },
    });
    (status, Json(body)).into_response()
}

/// Chooses the session: the one that the header names, the one of the user, or a new one.
fn opening(app: &Shared, who: &str, headers: &HeaderMap, user: Option<&str>) -> Result<Begin, Problem> {
    let named = headers
        .get(SESSION)
        .map(|session| session.to_str().unwrap_or_default());
    Ok(match (named, user) {
        (Some(session), _) => Begin::Resume(SessionId::from(session)),
        (None, Some(user)) => {
            let sender: String = hash(&format!("{who}\n{user}")).chars().take(32).collect();
            // The id of a proxy's user may contain what a key cannot.
            let account = match who.chars().all(|sign| sign.is_ascii_alphanumeric()) {
                true => who.to_owned(),
                false => hash(who).chars().take(12).collect(),
            };
            let key = format!("windlass:{account}:openai:dm:{sender}").parse::<SessionKey>();
            Begin::Keyed {
                key: key.map_err(|error| Problem::field("user", error.to_string()))?,
                place: app.config.place.clone(),
            }
        }
        (None, None) => Begin::New {
            id: None,
            place: app.config.place.clone(),
            label: Label::default(),
            parent: None,
        },
    })
}

/// Opens the session and submits the message. `before` is told to a session that has no history.
async fn submit(
    (app, who): (&Shared, &Credential),
    begin: Begin,
    mut parts: Vec<Part>,
    before: Option<&str>,
) -> Result<(SessionId, EventStream), Problem> {
    let backend: &dyn Backend = &*app.ports.backend;
    if !matches!(begin, Begin::Resume(_)) {
        let checked = app.ports.files.check(&app.config.place).await;
        checked.map_err(|why| Problem::field("session", why))?;
    }
    let session = app.begin(who, begin).await?;
    if session.last_seq == 0
        && let Some(before) = before
    {
        parts.insert(0, Part::text(before));
    }
    let submission = Submission {
        session: session.id.clone(),
        parts,
        on_busy: OnBusy::Queue,
        id: None,
    };
    app.hubs.hub(&session.id).await?;
    let events = backend.submit(submission).await?;
    Ok((session.id, events))
}
