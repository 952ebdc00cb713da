//! Queries of a front end: the stored sessions, and the state of live ones.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::oneshot;
use windlass_api::{
    AgentRow, Checkpoint, ClientError, ContextReport, Entry, FileChange, Find, Message, MessageId, Overview,
    Presence, Records, SessionId, SessionInfo, Wait, WaitOn,
};
use windlass_core::log::{AgentQuery, LogError, SessionQuery};

use crate::actor::SessionRequest;
use crate::commands::Look;
use crate::{Service, refused};

/// Maximum number of search results examined. One session may have many of them.
const PLACES: usize = 200;
/// Maximum number of sub-agents in a chain of waits.
const DEEPEST: usize = 5;
/// Minimum length of a text that is taken as the start of an id.
const TELLING: usize = 4;

#[async_trait]
impl Records for Service {
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError> {
        let words = find.words.trim();
        let store = &self.inner.store;
        let query = SessionQuery {
            user: find.user.clone(),
            place: find.place.clone(),
            limit: if words.is_empty() { find.limit } else { 0 },
            ..SessionQuery::default()
        };
        let all = store.list(&query).await.map_err(refused)?;
        if words.is_empty() {
            return Ok(all);
        }
        let places = store
            .search(words, find.user.as_ref(), PLACES)
            .await
            .map_err(refused)?;
        let said: Vec<SessionId> = places.into_iter().map(|place| place.session).collect();
        Ok(best(all, &said, words, find.limit))
    }

    async fn tail(
        &self,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, ClientError> {
        let store = &self.inner.store;
        let info = store.get(session).await.map_err(refused)?;
        let info = info.ok_or_else(|| ClientError::Unknown(session.clone()))?;
        // Entries are numbered without gaps, so the position of the first one can be computed.
        let end = before.map_or(info.last_seq, |before| {
            before.saturating_sub(1).min(info.last_seq)
        });
        let after = end.saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX));
        let count = usize::try_from(end - after).unwrap_or(usize::MAX);
        store.entries(session, after, count).await.map_err(refused)
    }

    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, ClientError> {
        self.look(session, Look::Checkpoints)
            .await
            .unwrap_or_else(|| Err(not_live(session)))
    }

    async fn changes(&self, session: &SessionId, number: u64) -> Result<Vec<FileChange>, ClientError> {
        self.look(session, |answer| Look::Changes(number, answer))
            .await
            .unwrap_or_else(|| Err(not_live(session)))
    }

    async fn sent(&self, session: &SessionId, message: &MessageId) -> Result<Option<u64>, ClientError> {
        self.inner.store.place(session, message).await.map_err(refused)
    }

    async fn agents(&self, session: &SessionId) -> Result<Vec<AgentRow>, ClientError> {
        let query = AgentQuery::Below(session.clone());
        self.inner.store.agents(&query).await.map_err(refused)
    }
}

#[async_trait]
impl Presence for Service {
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError> {
        self.request(session, |answer| SessionRequest::Look(Look::Overview(answer)))
            .await?
    }

    async fn why(&self, session: &SessionId) -> Vec<Wait> {
        self.chain(session, 0)
    }

    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>> {
        let message = message.clone();
        self.look(session, |answer| Look::TakeBack(message, answer))
            .await
            .flatten()
    }

    async fn go_on(&self, session: &SessionId) -> bool {
        self.look(session, Look::GoOn).await.is_some()
    }

    async fn context(&self, session: &SessionId) -> Result<ContextReport, ClientError> {
        self.request(session, |answer| SessionRequest::Look(Look::Context(answer)))
            .await?
    }

    async fn delete(&self, session: &SessionId) -> Result<(), ClientError> {
        let live = self.lock().get(session).cloned();
        if let Some(live) = &live {
            let _ = live.requests.send(SessionRequest::Close).await;
            live.handle.stop();
        }
        // It gives back its lease when its turn is recorded, within 20 seconds.
        let mut looks = if live.is_some() { 1_000 } else { 0 };
        while let Err(error) = self.inner.store.delete(session).await {
            if looks == 0 || !matches!(error, LogError::Busy { .. }) {
                return Err(refused(error));
            }
            looks -= 1;
            self.inner.clock.sleep(Duration::from_millis(20)).await;
        }
        if let Some(mut env) = live.and_then(|live| live.handle.parked()) {
            env.close().await;
        }
        self.forget(session);
        self.inner.factory.forget(session).await;
        Ok(())
    }
}

impl Service {
    /// OBS-3: returns the waits of a session, and those of the sub-agent that it waits for.
    pub(crate) fn chain(&self, session: &SessionId, depth: usize) -> Vec<Wait> {
        let Some(live) = self.known(session) else {
            return Vec::new();
        };
        let mut chain = live.sink.why();
        let running = live.handle.family.running();
        let child = running.iter().find(|child| !child.background);
        let is_waiting = chain.last().is_some_and(|wait| wait.on == WaitOn::Tool);
        let Some(child) = child.filter(|_| is_waiting && depth < DEEPEST) else {
            return chain;
        };
        let for_ms = chain.last().map_or(0, |wait| wait.for_ms);
        chain.push(Wait {
            on: WaitOn::Child,
            what: child.title.clone(),
            for_ms,
            ends: "when it ends or reaches its deadline, or when you stop the turn".to_owned(),
        });
        chain.extend(self.chain(&child.session, depth + 1));
        chain
    }

    /// Queries a session that is live in this process. Does not make any other session live.
    async fn look<T>(&self, session: &SessionId, look: impl FnOnce(oneshot::Sender<T>) -> Look) -> Option<T> {
        self.lock().get(session)?;
        let live = self.open(session).await.ok()?;
        let (answer, answered) = oneshot::channel();
        let request = SessionRequest::Look(look(answer));
        live.requests.send(request).await.ok()?;
        answered.await.ok()
    }
}

fn not_live(session: &SessionId) -> ClientError {
    ClientError::Setup(format!("session {session} is not open here"))
}

/// Returns the matching sessions, best first: by id or name, then by title, then by content. Equal matches
/// keep the order of `all`, most recently changed first.
fn best(all: Vec<SessionInfo>, said: &[SessionId], words: &str, limit: usize) -> Vec<SessionInfo> {
    let words = words.to_lowercase();
    let rank = |info: &SessionInfo| -> Option<(u8, usize)> {
        let name = info.label.name.as_deref().unwrap_or_default().to_lowercase();
        let title = info.label.title.as_deref().unwrap_or_default().to_lowercase();
        let has = |word: &str| name.contains(word) || title.contains(word);
        let is_id = info.id.as_str().to_lowercase().starts_with(&words);
        if name == words || (is_id && words.chars().count() >= TELLING) {
            return Some((0, 0));
        }
        if words.split_whitespace().all(has) {
            return Some((1, 0));
        }
        let place = said.iter().position(|session| *session == info.id);
        place.map(|place| (2, place)).or(is_id.then_some((3, 0)))
    };
    let ranked = all
        .into_iter()
        .filter_map(|info| rank(&info).map(|rank| (rank, info)));
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let most = if limit == 0 { usize::MAX } else { limit };
    ranked.into_iter().map(|(_, info)| info).take(most).collect()
}
