//! Read access to stored sessions: the full record, the last state, Markdown, and export files.

mod markdown;
mod stood;

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_api::{Event, Message, MessageId, SessionId, SessionInfo};
use windlass_core::log::{Entry, LogError, SessionQuery, Sessions, UserName};

pub use self::markdown::markdown;
pub use self::stood::Stood;

/// Maximum length of a session's name, in characters.
const LONGEST_NAME: usize = 100;

/// The version of an exported session. It changes when a reader of the old form would misread the new one.
pub const EXPORT_VERSION: u32 = 2;

/// A complete session in the format of an export file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Exported {
    /// [`EXPORT_VERSION`].
    pub windlass: u32,
    /// Metadata of the session.
    pub session: SessionInfo,
    /// All entries.
    pub entries: Vec<Entry>,
}

impl Exported {
    /// Creates the export of a session.
    pub fn new(session: SessionInfo, entries: Vec<Entry>) -> Self {
        Self {
            windlass: EXPORT_VERSION,
            session,
            entries,
        }
    }
}

/// Returns all messages in the order they were first recorded, each in its last version, including those
/// replaced by a summary.
pub fn messages<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Arc<Message>> {
    let mut messages: Vec<Arc<Message>> = Vec::new();
    let mut places: HashMap<MessageId, usize> = HashMap::new();
    for event in events {
        let Event::Message { message } = event else {
            continue;
        };
        let place = *places.entry(message.id.clone()).or_insert(messages.len());
        match messages.get_mut(place) {
            Some(known) => *known = Arc::clone(message),
            None => messages.push(Arc::clone(message)),
        }
    }
    messages
}

/// Returns the sessions of a user, or of all users, that may be meant: the one with this id, else those with this name or key, else those
/// whose id starts with the text.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn find(
    store: &(impl Sessions + ?Sized),
    user: Option<&UserName>,
    called: &str,
) -> Result<Vec<SessionInfo>, LogError> {
    if let Some(whole) = store.get(&called.into()).await?
        && user.is_none_or(|user| whole.user == *user)
    {
        return Ok(vec![whole]);
    }
    // Every id starts with the empty text.
    if called.is_empty() {
        return Ok(Vec::new());
    }
    let query = SessionQuery {
        user: user.cloned(),
        called: Some(called.to_owned()),
        children: true,
        ..SessionQuery::default()
    };
    let mut found = store.list(&query).await?;
    // A full name takes precedence over the start of an id.
    if found.iter().any(|info| is_called(info, called)) {
        found.retain(|info| is_called(info, called));
    }
    Ok(found)
}

/// Returns true if this is the name or the key of a session.
pub fn is_called(info: &SessionInfo, name: &str) -> bool {
    [&info.label.name, &info.label.key]
        .into_iter()
        .any(|own| own.as_deref() == Some(name))
}

/// Returns the reason a session cannot have this name, if there is one. `own` is the session to be named.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn name_problem(
    store: &(impl Sessions + ?Sized),
    (user, own): (&UserName, Option<&SessionId>),
    name: &str,
) -> Result<Option<String>, LogError> {
    if name.trim().is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Ok(Some(format!(
            "a name must be one line of at most {LONGEST_NAME} characters"
        )));
    }
    let found = find(store, Some(user), name).await?;
    let other = found
        .iter()
        .find(|info| is_called(info, name) && Some(&info.id) != own);
    Ok(other.map(|other| format!("another session has this name: {}", other.id)))
}
