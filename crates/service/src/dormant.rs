//! SRV-4: feeds of sessions that are not live here. A reader may subscribe before the session is opened, and
//! gets the events of its next life, or of another process that works in it, without opening it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use windlass_api::{ClientError, EventStream, SessionId};

use crate::feed::Feed;
use crate::{Inner, Service};

/// Time between two looks at the records of watched sessions, which other processes may write.
const LOOK: Duration = Duration::from_millis(500);

/// Feeds by session, and the task that looks at their records.
#[derive(Default)]
pub(crate) struct Dormant {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    feeds: HashMap<SessionId, Feed>,
    is_looking: bool,
}

impl Dormant {
    /// Returns the feed for a session that is opened. Readers that wait for it continue with what was stored.
    pub(crate) fn wake(&self, session: &SessionId, last: u64, buffer: usize) -> Feed {
        let mut state = self.lock();
        let feed = state.feeds.entry(session.clone());
        let feed = feed.or_insert_with(|| Feed::new(last, buffer)).clone();
        drop(state);
        feed.continue_at(last);
        feed
    }

    /// Removes the feed of a session that is live now and known as such.
    pub(crate) fn remove(&self, session: &SessionId) {
        self.lock().feeds.remove(session);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Follows a session that is not live here.
    pub(crate) async fn follow_dormant(
        &self,
        session: &SessionId,
        after: u64,
    ) -> Result<EventStream, ClientError> {
        let info = self.info(session).await?;
        let info = info.ok_or_else(|| ClientError::Unknown(session.clone()))?;
        let store = Arc::clone(&self.inner.store);
        let mut state = self.inner.dormant.lock();
        // It may have been opened meanwhile.
        if let Some(live) = self.known(session) {
            return Ok(live.sink.feed().follow(session.clone(), after, store));
        }
        let buffer = self.inner.options.buffer;
        let feed = state.feeds.entry(session.clone());
        let feed = feed.or_insert_with(|| Feed::new(info.last_seq, buffer));
        let events = feed.follow(session.clone(), after, store);
        if !std::mem::replace(&mut state.is_looking, true) {
            tokio::spawn(look(Arc::clone(&self.inner)));
        }
        Ok(events)
    }
}

/// Passes on what other processes write, as long as there are readers.
async fn look(inner: Arc<Inner>) {
    loop {
        tokio::select! {
            () = inner.closing.cancelled() => return,
            () = inner.clock.sleep(LOOK) => {}
        }
        let watched: Vec<SessionId> = {
            let mut state = inner.dormant.lock();
            state.feeds.retain(|_, feed| feed.has_readers());
            if state.feeds.is_empty() {
                state.is_looking = false;
                return;
            }
            state.feeds.keys().cloned().collect()
        };
        for session in watched {
            let found = inner.store.get(&session).await;
            // A session that became live meanwhile is told by its own task.
            let state = inner.dormant.lock();
            match (found, state.feeds.get(&session)) {
                (Ok(Some(info)), Some(feed)) => feed.continue_at(info.last_seq),
                (Ok(None), Some(feed)) => feed.end(),
                // The next look may be luckier.
                (_, None) | (Err(_), Some(_)) => {}
            }
        }
    }
}
