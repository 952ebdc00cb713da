//! Stores an imported session.

use std::path::Path;
use std::sync::Arc;

use windlass_api::{Event, Label, SessionId, UserName};
use windlass_core::log::{Batch, Durability, Lease, LogError, NewSession, Store};
use windlass_service::past::name_problem;

use super::Imported;

/// Stores all events as a session that can be resumed. If that fails, nothing is stored. `here` is the folder of a
/// session whose own does not exist, and `user` owns it.
///
/// # Errors
/// If the store fails.
pub async fn keep(
    store: &dyn Store,
    imported: &Imported,
    here: &Path,
    user: UserName,
) -> Result<SessionId, LogError> {
    let known = match &imported.id {
        Some(id) => store.get(id).await?.is_some(),
        None => false,
    };
    let id = imported.id.clone().filter(|_| !known);
    let id = id.unwrap_or_else(SessionId::generate);
    let name = match &imported.label.name {
        Some(name) => {
            let wrong = name_problem(store, (&user, None), name).await?;
            wrong.is_none().then(|| name.clone())
        }
        None => None,
    };
    let place = imported.place.as_deref();
    let place = place.filter(|place| Path::new(place).is_dir());
    let new = NewSession {
        id: Some(id.clone()),
        parent: None,
        label: Label {
            // The key of a session that was exported may be another user's here.
            key: imported.label.key.as_deref().map(|key| user.scoped(key)),
            // Two sessions never have the same name.
            name,
            ..imported.label.clone()
        },
        place: place.map_or_else(|| here.display().to_string(), str::to_owned),
        time: imported.created_at.unwrap_or_default(),
        user,
    };
    let opened = store.create(new, &windlass_store::owner()).await?;
    let written = append(store, &opened.lease, imported, &id).await;
    store.release(&opened.lease).await?;
    if let Err(error) = written {
        store.delete(&id).await?;
        return Err(error);
    }
    Ok(id)
}

async fn append(
    store: &dyn Store,
    lease: &Lease,
    imported: &Imported,
    id: &SessionId,
) -> Result<(), LogError> {
    let mut first_seq = 1;
    // Events with the same time are written together.
    for group in imported.events.chunk_by(|one, next| one.0 == next.0) {
        let batch = Batch {
            first_seq,
            events: group.iter().map(|(_, event)| moved(event, id)).collect(),
            time: group.first().map(|(time, _)| *time).unwrap_or_default(),
            durability: Durability::Process,
            ..Batch::default()
        };
        first_seq += batch.events.len() as u64;
        store.append(lease, batch).await?;
    }
    store.sync().await
}

/// Converts the event to one of this session.
fn moved(event: &Event, session: &SessionId) -> Event {
    match event {
        Event::Message { message } => {
            let mut message = (**message).clone();
            message.session_id = session.clone();
            Event::Message {
                message: Arc::new(message),
            }
        }
        other => other.clone(),
    }
}
