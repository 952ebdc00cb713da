//! SRV-2: one reader per watched session, whose events go to all connections.
//!
//! A hub puts the state events into the order of their numbers, formats each event once, and keeps what is
//! being written right now, so that somebody who joins in the middle of a reply sees its beginning.

mod partial;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::Notify;
use windlass_api::{ClientError, Envelope, Event, EventStream, SessionEvent, SessionId, Waiting};

pub(crate) use self::partial::Partial;
use crate::app::{BySession, ServerPorts, lock};
use crate::carried::Carried;
use crate::queue::{Kind, Queue, SharedQueue, event};

/// State events kept for connections that come back, in number and in bytes.
const RING: usize = 256;
const RING_BYTES: usize = 256 << 10;
/// Events ahead of a missing number before the missing one is given up.
const AHEAD: usize = 256;
/// Time between two checks whether a hub is still needed.
const REST: Duration = Duration::from_secs(5);
/// Delay before a session that could not be followed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// The hubs of watched sessions.
pub(crate) struct Hubs {
    ports: ServerPorts,
    hubs: Arc<BySession<Arc<Hub>>>,
    /// Told when a session changed in a way that a list of sessions shows.
    changed: Arc<Notify>,
    carried: Arc<Carried>,
}

impl Hubs {
    pub(crate) fn new(ports: ServerPorts, changed: Arc<Notify>, carried: Arc<Carried>) -> Self {
        Self {
            carried,
            ports,
            hubs: Arc::new(Mutex::new(HashMap::new())),
            changed,
        }
    }

    /// Returns the hub of a session, and starts it if there is none.
    ///
    /// # Errors
    /// When there is no such session.
    pub(crate) async fn hub(&self, session: &SessionId) -> Result<Arc<Hub>, ClientError> {
        if let Some(hub) = lock(&self.hubs).get(session) {
            return Ok(Arc::clone(hub));
        }
        let last = self.ports.backend.tail(session, None, 1).await?;
        let last = last.last().map_or(0, |entry| entry.seq);
        // Followed before the hub is known, so that it misses nothing.
        let events = self.ports.backend.subscribe(session, last).await?;
        let mut hubs = lock(&self.hubs);
        if let Some(hub) = hubs.get(session) {
            return Ok(Arc::clone(hub));
        }
        let hub = Arc::new(Hub::new(session.clone(), last));
        hubs.insert(session.clone(), Arc::clone(&hub));
        let reader = HubReader {
            hub: Arc::clone(&hub),
            hubs: Arc::clone(&self.hubs),
            ports: self.ports.clone(),
            changed: Arc::clone(&self.changed),
            carried: Arc::clone(&self.carried),
        };
        tokio::spawn(reader.run(events));
        Ok(hub)
    }

    /// Returns the number of sessions that are watched.
    pub(crate) fn count(&self) -> usize {
        lock(&self.hubs).len()
    }

    /// Returns the number of sessions that run a turn which does not wait for a person.
    pub(crate) fn count_busy(&self) -> usize {
        let hubs = lock(&self.hubs);
        hubs.values().filter(|hub| hub.is_working()).count()
    }

    /// Returns true if a watched session runs a turn; `None` if it is not watched.
    pub(crate) fn is_busy(&self, session: &SessionId) -> Option<bool> {
        let hub = self.known(session)?;
        let is_busy = lock(&hub.state).is_busy;
        Some(is_busy)
    }

    /// Returns the hub of a session, if it is watched.
    pub(crate) fn known(&self, session: &SessionId) -> Option<Arc<Hub>> {
        lock(&self.hubs).get(session).cloned()
    }
}

/// The events of one session.
pub(crate) struct Hub {
    session: SessionId,
    state: Mutex<HubState>,
}

struct HubState {
    /// All state events up to this number were passed on.
    upto: u64,
    /// The last state events, oldest first.
    ring: VecDeque<(u64, Bytes)>,
    ring_bytes: usize,
    /// State events that came before one with a lower number.
    ahead: BTreeMap<u64, Bytes>,
    partial: Partial,
    is_busy: bool,
    /// True if the turn waits for a person.
    is_asking: bool,
    queues: Vec<Weak<Queue>>,
}

/// Content that a connection sends first.
pub(crate) struct Joined {
    /// Number of the last state event so far.
    pub(crate) upto: u64,
    /// The last state events, without gaps up to `upto`.
    pub(crate) recent: Vec<(u64, Bytes)>,
    /// The reply and the outputs that are being received.
    pub(crate) partial: Partial,
}

impl Hub {
    fn new(session: SessionId, upto: u64) -> Self {
        Self {
            session,
            state: Mutex::new(HubState {
                upto,
                ring: VecDeque::new(),
                ring_bytes: 0,
                ahead: BTreeMap::new(),
                partial: Partial::default(),
                is_busy: false,
                is_asking: false,
                queues: Vec::new(),
            }),
        }
    }

    /// Adds a connection.
    pub(crate) fn join(&self, queue: &SharedQueue, after: u64) -> Joined {
        let mut state = lock(&self.state);
        state.queues.push(Arc::downgrade(queue));
        let recent = state.ring.iter().filter(|(seq, _)| *seq > after);
        Joined {
            upto: state.upto,
            recent: recent.cloned().collect(),
            partial: state.partial.clone(),
        }
    }

    /// Returns the number of the last event, and what is being written.
    pub(crate) fn now(&self) -> (u64, Partial) {
        let state = lock(&self.state);
        (state.upto, state.partial.clone())
    }

    /// Passes a frame of the server's own to all connections.
    pub(crate) fn tell(&self, frame: &Bytes) {
        lock(&self.state).send(Kind::State, frame);
    }

    fn take(&self, envelope: &Envelope) {
        let mut state = lock(&self.state);
        state.partial.apply(&envelope.event);
        if envelope.event.is_live() {
            return state.send(Kind::Live, &frame(envelope));
        }
        match &envelope.event {
            Event::Start { .. } => state.is_busy = true,
            Event::Waiting(Waiting::PermissionRequest { .. } | Waiting::Question { .. }) => {
                state.is_asking = true;
            }
            Event::Waiting(Waiting::PermissionAnswer { .. })
            | Event::ToolResult { .. }
            | Event::Session(SessionEvent::Moved { .. }) => {
                state.is_asking = false;
            }
            event if event.is_terminal() => (state.is_busy, state.is_asking) = (false, false),
            _ => {}
        }
        if envelope.seq <= state.upto {
            return;
        }
        state.ahead.insert(envelope.seq, frame(envelope));
        if state.ahead.len() > AHEAD
            && let Some(first) = state.ahead.keys().next()
        {
            state.upto = first - 1;
        }
        while let Some(next) = {
            let next = state.upto + 1;
            state.ahead.remove(&next)
        } {
            state.upto += 1;
            state.keep(next.clone());
            state.send(Kind::State, &next);
        }
    }

    fn is_working(&self) -> bool {
        let state = lock(&self.state);
        state.is_busy && !state.is_asking
    }

    /// Returns true if nobody watches and nothing runs.
    fn is_idle(&self) -> bool {
        let mut state = lock(&self.state);
        state.queues.retain(|queue| queue.strong_count() > 0);
        state.queues.is_empty() && !state.is_busy
    }
}

impl HubState {
    fn keep(&mut self, frame: Bytes) {
        self.ring_bytes += frame.len();
        self.ring.push_back((self.upto, frame));
        while self.ring.len() > RING || self.ring_bytes > RING_BYTES {
            match self.ring.pop_front() {
                Some((_, old)) => self.ring_bytes -= old.len(),
                None => return,
            }
        }
    }

    fn send(&mut self, kind: Kind, frame: &Bytes) {
        self.queues.retain(|queue| match queue.upgrade() {
            Some(queue) => {
                queue.push(kind, frame);
                true
            }
            None => false,
        });
    }
}

/// The task that reads a session for its hub.
struct HubReader {
    hub: Arc<Hub>,
    hubs: Arc<BySession<Arc<Hub>>>,
    ports: ServerPorts,
    changed: Arc<Notify>,
    carried: Arc<Carried>,
}

impl HubReader {
    async fn run(self, mut events: EventStream) {
        let mut rest = tokio::time::interval(REST);
        loop {
            tokio::select! {
                envelope = events.next() => match envelope {
                    Some(envelope) => self.take(&envelope),
                    // The session was idle for long, and is followed until it lives again.
                    None => match self.follow_again().await {
                        Some(again) => events = again,
                        None => return,
                    },
                },
                _ = rest.tick() => if self.ends() { return },
            }
        }
    }

    fn take(&self, envelope: &Envelope) {
        self.hub.take(envelope);
        self.carried.hear(&self.ports, envelope);
        let is_telling = matches!(
            envelope.event,
            Event::Start { .. } | Event::Waiting(_) | Event::Session(SessionEvent::Title { .. })
        );
        if is_telling || envelope.event.is_terminal() {
            self.changed.notify_one();
        }
    }

    async fn follow_again(&self) -> Option<EventStream> {
        loop {
            if self.ends() {
                return None;
            }
            let (upto, _) = self.hub.now();
            match self.ports.backend.subscribe(&self.hub.session, upto).await {
                Ok(events) => return Some(events),
                Err(ClientError::Unknown(_)) => {
                    let gone = json!({ "session": self.hub.session });
                    self.hub.tell(&event("deleted", &gone));
                    lock(&self.hubs).remove(&self.hub.session);
                    return None;
                }
                Err(_) => self.ports.clock.sleep(AGAIN).await,
            }
        }
    }

    /// Removes the hub if it is not needed. Nobody can join in between: joining needs the hub from the list.
    fn ends(&self) -> bool {
        let mut hubs = lock(&self.hubs);
        // Somebody who took the hub from the list holds it and may be about to join.
        let is_alone = Arc::strong_count(&self.hub) <= 2;
        let is_needed = self.carried.waits(&self.hub.session);
        if is_alone && !is_needed && self.hub.is_idle() {
            hubs.remove(&self.hub.session);
            return true;
        }
        false
    }
}

/// Formats an event. State events have their number as the id, live events have none.
pub(crate) fn frame(envelope: &Envelope) -> Bytes {
    let data = serde_json::to_string(envelope).unwrap_or_default();
    if envelope.event.is_live() {
        return Bytes::from(format!("data: {data}\n\n"));
    }
    Bytes::from(format!("id: {}\ndata: {data}\n\n", envelope.seq))
}
