//! SRV-5: OpenAI's Responses. `previous_response_id` continues the session after that response; after an older one, in a
//! copy of the session, so that a conversation can branch.

mod answer;
mod request;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use windlass_api::{Backend, Begin, Event, MessageId, SessionId};

use self::answer::{stream, whole};
use self::request::ResponseRequest;
use super::answer::Turn;
use super::{DETACH, SESSION, opening, refused, submit};
use crate::app::Shared;
use crate::checks::Who;
use crate::credentials::Credential;
use crate::problem::Problem;

/// Entries read at a time.
const PAGE: u64 = 256;
/// Entries of one turn that are looked through for its end.
const LONGEST: u64 = 100_000;

/// Runs a turn.
pub(crate) async fn responses(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let begun = async {
        let asked = ResponseRequest::parse(&body)?;
        let begin = match &asked.previous {
            Some(previous) => after(&app, &who, previous).await?,
            None => opening(&app, &who.id, &headers, asked.user.as_deref())?,
        };
        let opened = submit((&app, &who), begin, asked.parts.clone(), asked.before.as_deref()).await?;
        Ok::<_, Problem>((asked, opened))
    };
    let (asked, (session, events)) = match begun.await {
        Ok(begun) => begun,
        Err(problem) => return refused(&problem),
    };
    let turn = Turn {
        ports: app.ports.clone(),
        id: format!("msg_{}", MessageId::generate()),
        created: app.ports.clock.now().0 / 1000,
        model: asked.model.clone(),
        session: session.clone(),
        events,
        is_detached: headers.get(DETACH).is_some_and(|value| value == "1"),
        shows_reasoning: false,
    };
    let mut response = match asked.is_stream {
        true => stream(turn, asked.echo),
        false => Json(whole(turn, asked.echo).await).into_response(),
    };
    if let Ok(session) = HeaderValue::from_str(session.as_str()) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// Id of a response: the session, and the number of the entry that started the turn.
fn response_id(session: &SessionId, start: u64) -> String {
    format!("resp_{session}_{start}")
}

/// Opens the session after a response.
async fn after(app: &Shared, who: &Credential, previous: &str) -> Result<Begin, Problem> {
    let unknown = || {
        let text = format!("there is no response `{previous}`");
        Problem::field("previous_response_id", text)
    };
    let parsed = previous
        .strip_prefix("resp_")
        .and_then(|rest| rest.rsplit_once('_'))
        .and_then(|(session, start)| Some((SessionId::from(session), start.parse::<u64>().ok()?)));
    let (session, start) = parsed.ok_or_else(unknown)?;
    app.own(who, &session).await?;
    let backend: &dyn Backend = &*app.ports.backend;
    let mut end = None;
    let mut from = start;
    while from < start.saturating_add(LONGEST) {
        let before = from.saturating_add(PAGE);
        // Entries from `from` on, or fewer at the end of the record.
        let page = backend.tail(&session, Some(before), PAGE as usize).await;
        let page: Vec<_> = page?.into_iter().filter(|entry| entry.seq >= from).collect();
        if from == start
            && !page
                .first()
                .is_some_and(|first| matches!(first.event, Event::Start { .. }))
        {
            return Err(unknown());
        }
        for entry in &page {
            match (&entry.event, end) {
                (event, None) if event.is_terminal() => end = Some(entry.seq),
                // The session went on after this response.
                (Event::Start { .. }, Some(end)) => {
                    return Ok(Begin::Fork {
                        of: session,
                        after: Some(end),
                        id: None,
                        place: None,
                    });
                }
                _ => {}
            }
        }
        if page.len() < PAGE as usize {
            break;
        }
        from = before;
    }
    Ok(Begin::Resume(session))
}
