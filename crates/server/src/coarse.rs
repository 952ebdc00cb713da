//! SRV-2: changes of all sessions in one line each, for lists, badges and notifications.
//!
//! Other processes change sessions too, so the list is read from the store: at once when something changed here,
//! and otherwise every second, as long as somebody watches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;
use windlass_api::{Backend, Find, SessionId, SessionInfo, SessionStatus};
use windlass_core::log::Store;

use crate::app::lock;
use crate::questions::{OpenQuestion, TAIL, open_questions, without_refused};
use crate::queue::{Kind, Queue, SharedQueue, event};

/// Sessions that are watched: the most recent ones.
const MOST: usize = 200;
/// Time between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest time between two looks.
const LEAST: Duration = Duration::from_millis(100);

/// A session in the list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SessionRow {
    /// The session.
    #[serde(flatten)]
    pub(crate) info: SessionInfo,
    /// Number of questions and permission requests that wait for a person.
    pub(crate) asks: usize,
}

/// Connections that follow the list.
pub(crate) struct Coarse {
    backend: Arc<dyn Backend>,
    store: Arc<dyn Store>,
    changed: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queues: Vec<Weak<Queue>>,
    is_looking: bool,
}

impl Coarse {
    pub(crate) fn new(backend: Arc<dyn Backend>, store: Arc<dyn Store>, changed: Arc<Notify>) -> Self {
        Self {
            backend,
            store,
            changed,
            state: Mutex::default(),
        }
    }

    /// Adds a connection.
    pub(crate) fn join(self: &Arc<Self>, queue: &SharedQueue) {
        let mut state = lock(&self.state);
        state.queues.push(Arc::downgrade(queue));
        if !std::mem::replace(&mut state.is_looking, true) {
            tokio::spawn(Arc::clone(self).look());
        }
    }

    /// Returns the row of a session.
    pub(crate) async fn row(&self, info: SessionInfo) -> SessionRow {
        SessionRow {
            asks: self.questions(&info).await.len(),
            info,
        }
    }

    /// Returns the open questions of a session.
    pub(crate) async fn questions(&self, info: &SessionInfo) -> Vec<OpenQuestion> {
        // A session whose turn has ended asks nothing, unless the turn was interrupted or a sub-agent asks.
        if info.standing == SessionStatus::New {
            return Vec::new();
        }
        let tail = self.backend.tail(&info.id, None, TAIL).await.unwrap_or_default();
        without_refused(&*self.store, &info.id, open_questions(&tail)).await
    }

    async fn look(self: Arc<Self>) {
        let mut known: Option<HashMap<SessionId, SessionRow>> = None;
        loop {
            let rows = self.rows(known.as_ref()).await;
            if let Some(known) = &known {
                self.tell(known, &rows);
            }
            known = Some(rows);
            tokio::time::sleep(LEAST).await;
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
            let mut state = lock(&self.state);
            state.queues.retain(|queue| queue.strong_count() > 0);
            if state.queues.is_empty() {
                state.is_looking = false;
                return;
            }
        }
    }

    async fn rows(&self, known: Option<&HashMap<SessionId, SessionRow>>) -> HashMap<SessionId, SessionRow> {
        let find = Find {
            limit: MOST,
            ..Find::default()
        };
        let Ok(sessions) = self.backend.sessions(&find).await else {
            return known.cloned().unwrap_or_default();
        };
        let mut rows = HashMap::with_capacity(sessions.len());
        for info in sessions {
            let same = known
                .and_then(|known| known.get(&info.id))
                .filter(|row| row.info == info);
            let row = match same {
                Some(row) => row.clone(),
                None => self.row(info).await,
            };
            rows.insert(row.info.id.clone(), row);
        }
        rows
    }

    fn tell(&self, known: &HashMap<SessionId, SessionRow>, rows: &HashMap<SessionId, SessionRow>) {
        let changed = rows.iter().filter(|(id, row)| known.get(id) != Some(row));
        let mut frames: Vec<_> = changed.map(|(_, row)| event("session", row)).collect();
        // A session that fell out of a full list was not deleted.
        if rows.len() < MOST {
            let gone = known.keys().filter(|id| !rows.contains_key(id));
            frames.extend(gone.map(|id| event("deleted", &json!({ "session": id }))));
        }
        let state = lock(&self.state);
        for queue in state.queues.iter().filter_map(Weak::upgrade) {
            frames.iter().for_each(|frame| queue.push(Kind::State, frame));
        }
    }
}
