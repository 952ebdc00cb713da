//! From a channel's key to the one session that has it.

use windlass_api::{ClientError, Label, SessionId};
use windlass_core::clock::Timestamp;
use windlass_core::log::{NewSession, Opened, SessionKey, SessionQuery};

use crate::{Inner, refused};

/// Where a key leads.
pub(crate) enum Routed {
    /// A session that was made for it.
    New(Box<Opened>),
    /// The one that has it.
    Known(SessionId),
}

/// Finds the session that has a key, or makes one. Two processes that do this at once find the same one.
pub(crate) async fn route(
    inner: &Inner,
    key: &SessionKey,
    place: String,
    now: Timestamp,
) -> Result<Routed, ClientError> {
    let key = key.to_string();
    if let Some(known) = holder(inner, &key).await? {
        return Ok(Routed::Known(known));
    }
    let new = NewSession {
        label: Label {
            key: Some(key.clone()),
            ..Label::default()
        },
        place,
        time: now,
        ..NewSession::default()
    };
    match inner.store.create(new, &inner.owner).await {
        Ok(opened) => Ok(Routed::New(Box::new(opened))),
        // A key is given once: somebody else may have been faster.
        Err(error) => match holder(inner, &key).await? {
            Some(known) => Ok(Routed::Known(known)),
            None => Err(refused(error)),
        },
    }
}

async fn holder(inner: &Inner, key: &str) -> Result<Option<SessionId>, ClientError> {
    let query = SessionQuery {
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
