//! Lookup of the session that has a channel's key.

use windlass_api::{ClientError, Label, SessionId};
use windlass_core::clock::Timestamp;
use windlass_core::log::{NewSession, Opened, SessionKey, SessionQuery, UserName};

use crate::{Inner, refused};

/// Result of a lookup.
pub(crate) enum Routed {
    /// A session created for the key.
    New(Box<Opened>),
    /// The existing session with the key.
    Known(SessionId),
}

/// Finds the session that has a key, or creates one. If two processes do this at the same time, both get the
/// same session.
pub(crate) async fn route(
    inner: &Inner,
    key: &SessionKey,
    (user, place): (&UserName, String),
    now: Timestamp,
) -> Result<Routed, ClientError> {
    // A key is assigned only once, and may be known to several users.
    let key = user.scoped(&key.to_string());
    if let Some(known) = holder(inner, user, &key).await? {
        return Ok(Routed::Known(known));
    }
    let new = NewSession {
        label: Label {
            key: Some(key.clone()),
            ..Label::default()
        },
        place,
        time: now,
        user: user.clone(),
        ..NewSession::default()
    };
    match inner.store.create(new, &inner.owner).await {
        Ok(opened) => Ok(Routed::New(Box::new(opened))),
        // A key is assigned only once: another process may have been faster.
        Err(error) => match holder(inner, user, &key).await? {
            Some(known) => Ok(Routed::Known(known)),
            None => Err(refused(error)),
        },
    }
}

async fn holder(inner: &Inner, user: &UserName, key: &str) -> Result<Option<SessionId>, ClientError> {
    let query = SessionQuery {
        user: Some(user.clone()),
        called: Some(key.to_owned()),
        children: true,
        ..SessionQuery::default()
    };
    let found = inner.store.list(&query).await.map_err(refused)?;
    let own = found
        .into_iter()
        .find(|info| info.label.key.as_deref() == Some(key));
    Ok(own.map(|info| info.id))
}
