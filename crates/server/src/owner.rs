//! DIST-7: a session belongs to a user, and does not exist for other users.
//!
//! The check runs before every handler, for each session that the path or the query of a request names, so a new route
//! has it without doing anything. A session in a body is opened as [`Begin::As`], which checks the same.

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::Method;
use axum::http::request::Parts;
use windlass_api::{Begin, ClientError, SessionId, SessionInfo};

use crate::app::App;
use crate::credentials::{Credential, Scope};
use crate::problem::Problem;

/// Parameter that names a session in a query.
const SESSION: &str = "session";
/// Start of the paths whose `{id}` is not a session.
const CREDENTIALS: &str = "/api/credentials/";

/// Refuses a request that names a session which its credential cannot reach.
pub(crate) async fn check(app: &App, who: &Credential, head: &mut Parts) -> Result<(), Problem> {
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    for session in named(head).await {
        let info = app.ports.store.get(&session).await?;
        let info = info.ok_or_else(|| unknown(&session))?;
        if info.user == who.user {
            continue;
        }
        if !is_read || !who.allows(Scope::Admin) {
            return Err(unknown(&session));
        }
        app.oversee(who, Some(&session), Some(&info.user), head.uri.path())
            .await?;
    }
    Ok(())
}

/// Returns the sessions that a request names.
async fn named(head: &mut Parts) -> Vec<SessionId> {
    let mut sessions: Vec<String> = Vec::new();
    if !head.uri.path().starts_with(CREDENTIALS)
        && let Ok(parameters) = RawPathParams::from_request_parts(head, &()).await
    {
        let ids = parameters.iter().filter(|(name, _)| *name == "id");
        sessions.extend(ids.map(|(_, id)| id.to_owned()));
    }
    // Some handlers decode the query, and some read it as it is.
    let decoded = Query::<Vec<(String, String)>>::try_from_uri(&head.uri);
    let decoded = decoded.map(|Query(pairs)| pairs).unwrap_or_default();
    let plain = head.uri.query().unwrap_or_default().split('&');
    let plain = plain.filter_map(|pair| pair.split_once('='));
    let plain = plain.map(|(name, value)| (name.to_owned(), value.to_owned()));
    for (name, value) in decoded.into_iter().chain(plain) {
        if name == SESSION && !sessions.contains(&value) {
            sessions.push(value);
        }
    }
    sessions.into_iter().map(SessionId::from).collect()
}

/// The same answer whether a session is another user's or does not exist.
fn unknown(session: &SessionId) -> Problem {
    ClientError::Unknown(session.clone()).into()
}

impl App {
    /// Returns a session that a credential may change.
    pub(crate) async fn own(&self, who: &Credential, session: &SessionId) -> Result<SessionInfo, Problem> {
        let info = self.info(session).await?;
        match info.user == who.user {
            true => Ok(info),
            false => Err(unknown(session)),
        }
    }

    /// Creates or opens a session for the user of a credential.
    pub(crate) async fn begin(&self, who: &Credential, begin: Begin) -> Result<SessionInfo, Problem> {
        let (user, begin) = (who.user.clone(), Box::new(begin));
        Ok(self.ports.backend.begin(Begin::As { user, begin }).await?)
    }
}
