//! SRV-2: changes of all sessions in one line each, for lists, badges and notifications.
//!
//! Other processes change sessions too, so the list is read from the store: at once when something changed here,
//! and otherwise every second, as long as somebody watches.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;
use windlass_api::{Find, SessionId, SessionInfo, SessionStatus, Timestamp, UserName};

use crate::app::{ServerPorts, lock};
use crate::hub::Hubs;
use crate::push::{Push, PushNews};
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
    /// True if a turn runs.
    pub(crate) is_busy: bool,
    /// Number of questions and permission requests that wait for a person.
    pub(crate) asks: usize,
}

/// Rows of a user's sessions.
type Rows = HashMap<SessionId, SessionRow>;

/// Connections that follow the list.
pub(crate) struct Coarse {
    ports: ServerPorts,
    hubs: Arc<Hubs>,
    changed: Arc<Notify>,
    push: Arc<Push>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Connections, with the user whose sessions each follows.
    queues: Vec<(UserName, Weak<Queue>)>,
    is_looking: bool,
}

impl Coarse {
    pub(crate) fn new(ports: ServerPorts, hubs: Arc<Hubs>, changed: Arc<Notify>, push: Arc<Push>) -> Self {
        Self {
            ports,
            hubs,
            changed,
            push,
            state: Mutex::default(),
        }
    }

    /// Adds a connection that follows the sessions of a user.
    pub(crate) fn join(self: &Arc<Self>, queue: &SharedQueue, user: &UserName) {
        let follower = (user.clone(), Arc::downgrade(queue));
        lock(&self.state).queues.push(follower);
        self.start();
    }

    /// Starts to look, if a browser is subscribed to web push.
    pub(crate) fn wake(self: &Arc<Self>) {
        if self.push.is_wanted() {
            self.start();
        }
    }

    fn start(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.is_looking, true) {
            tokio::spawn(Arc::clone(self).look());
        }
    }

    /// Returns the row of a session.
    pub(crate) async fn row(&self, info: SessionInfo) -> SessionRow {
        SessionRow {
            asks: self.questions(&info).await.len(),
            is_busy: self.is_busy(&info),
            info,
        }
    }

    /// Returns true if a turn runs here, or was running in another process when it was last heard of.
    fn is_busy(&self, info: &SessionInfo) -> bool {
        let known = self.hubs.is_busy(&info.id);
        known.unwrap_or(info.standing == SessionStatus::Working)
    }

    /// Returns the open questions of a session.
    pub(crate) async fn questions(&self, info: &SessionInfo) -> Vec<OpenQuestion> {
        // A session whose turn has ended asks nothing, unless the turn was interrupted or a sub-agent asks.
        if info.standing == SessionStatus::New {
            return Vec::new();
        }
        let tail = self
            .ports
            .backend
            .tail(&info.id, None, TAIL)
            .await
            .unwrap_or_default();
        without_refused(&*self.ports.store, &info.id, open_questions(&tail)).await
    }

    async fn look(self: Arc<Self>) {
        let mut known: HashMap<UserName, Rows> = HashMap::new();
        loop {
            let mut now = HashMap::new();
            for user in self.watched() {
                let before = known.get(&user);
                let rows = self.rows(&user, before).await;
                if let Some(before) = before {
                    self.tell(&user, before, &rows);
                    self.notify(before, &rows).await;
                }
                now.insert(user, rows);
            }
            known = now;
            self.ports.clock.sleep(LEAST).await;
            tokio::select! {
                () = self.changed.notified() => {}
                () = self.ports.clock.sleep(LOOK) => {}
            }
            let mut state = lock(&self.state);
            state.queues.retain(|(_, queue)| queue.strong_count() > 0);
            if state.queues.is_empty() && !self.push.is_wanted() {
                state.is_looking = false;
                return;
            }
        }
    }

    /// Returns the users whose sessions somebody follows.
    fn watched(&self) -> HashSet<UserName> {
        let mut users: HashSet<UserName> = self.push.users().into_iter().collect();
        users.extend(lock(&self.state).queues.iter().map(|(user, _)| user.clone()));
        users
    }

    async fn rows(&self, user: &UserName, known: Option<&Rows>) -> Rows {
        let find = Find {
            user: Some(user.clone()),
            limit: MOST,
            ..Find::default()
        };
        let Ok(sessions) = self.ports.backend.sessions(&find).await else {
            return known.cloned().unwrap_or_default();
        };
        let mut rows = HashMap::with_capacity(sessions.len());
        for info in sessions {
            let same = known
                .and_then(|known| known.get(&info.id))
                .filter(|row| row.info == info);
            let row = match same {
                Some(row) => SessionRow {
                    is_busy: self.is_busy(&info),
                    ..row.clone()
                },
                None => self.row(info).await,
            };
            rows.insert(row.info.id.clone(), row);
        }
        rows
    }

    fn tell(&self, user: &UserName, known: &Rows, rows: &Rows) {
        let changed = rows.iter().filter(|(id, row)| known.get(id) != Some(row));
        let mut frames: Vec<_> = changed.map(|(_, row)| event("session", row)).collect();
        // A session that fell out of a full list was not deleted.
        if rows.len() < MOST {
            let gone = known.keys().filter(|id| !rows.contains_key(id));
            frames.extend(gone.map(|id| event("deleted", &json!({ "session": id }))));
        }
        let state = lock(&self.state);
        let own = state.queues.iter().filter(|(of, _)| of == user);
        for queue in own.filter_map(|(_, queue)| queue.upgrade()) {
            frames.iter().for_each(|frame| queue.push(Kind::State, frame));
        }
    }

    /// WEB-6: tells browsers whose page is closed.
    async fn notify(&self, known: &Rows, rows: &Rows) {
        let found = rows.iter().filter_map(|(id, row)| {
            let news = news(known.get(id), row, self.ports.clock.now())?;
            Some((row, news))
        });
        let found: Vec<_> = found.collect();
        for (row, news) in found {
            let call = match news {
                PushNews::Asks => self
                    .questions(&row.info)
                    .await
                    .pop()
                    .map(|question| question.call),
                PushNews::Finished | PushNews::Failed => None,
            };
            tokio::spawn(Arc::clone(&self.push).tell(news, row.info.clone(), call));
        }
    }
}

/// Returns what happened in a session between two looks.
fn news(before: Option<&SessionRow>, now: &SessionRow, time: Timestamp) -> Option<PushNews> {
    /// A session that is older was not created between the looks: it came into the list for another reason.
    const YOUNG: u64 = 60_000;
    if now.info.parent.is_some() {
        return None;
    }
    if before.is_none() && time.0.saturating_sub(now.info.created_at.0) > YOUNG {
        return None;
    }
    if now.asks > before.map_or(0, |before| before.asks) {
        return Some(PushNews::Asks);
    }
    let messages = before.map_or(0, |before| before.info.totals.messages);
    // A short turn starts and ends between two looks.
    let has_ended = before.is_some_and(|before| before.is_busy) || now.info.totals.messages > messages;
    match now.info.standing {
        _ if now.is_busy || !has_ended => None,
        SessionStatus::Answered => Some(PushNews::Finished),
        SessionStatus::Failed => Some(PushNews::Failed),
        SessionStatus::New | SessionStatus::Working | SessionStatus::Canceled => None,
    }
}
