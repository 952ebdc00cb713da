//! Where a turn's events go: first into the log, then to whoever listens.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;
use windlass_api::{DeltaKind, EVENT_VERSION, Envelope, Event, SessionId, Wait};
use windlass_core::clock::Clock;
use windlass_core::event::{EventSink, SinkError};
use windlass_core::log::{Batch, Booking, DraftChange, Durability, Lease, LogError, Store};
use windlass_core::message::{Message, Part, Role};

use crate::feed::Feed;
use crate::turn::Steering;
use crate::why::Why;

/// How old the stored part of a reply may be while it is received.
const STALENESS: Duration = Duration::from_millis(250);

/// The log and the listeners of one session.
pub(crate) struct Sink {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    lease: Lease,
    feed: Feed,
    steering: Steering,
    state: Mutex<State>,
}

struct State {
    /// The number of the last event.
    seq: u64,
    /// Events that have a number and are not on their way to the store yet.
    pending: Vec<Event>,
    bookings: Vec<Booking>,
    /// Writes that nobody has waited for yet.
    under_way: Vec<JoinHandle<Result<(), LogError>>>,
    reply: Reply,
    /// Who writes the replies of this turn: provider and model.
    model: (String, String),
    /// What the running turn waits for.
    why: Why,
}

/// The reply that is being received.
#[derive(Default)]
struct Reply {
    text: String,
    message: Option<Message>,
    stored_at: Duration,
}

impl Sink {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        lease: Lease,
        feed: Feed,
        seq: u64,
    ) -> Self {
        Self {
            store,
            clock,
            lease,
            feed,
            steering: Steering::default(),
            state: Mutex::new(State {
                seq,
                pending: Vec::new(),
                bookings: Vec::new(),
                under_way: Vec::new(),
                reply: Reply::default(),
                model: Default::default(),
                why: Why::default(),
            }),
        }
    }

    /// Stores events, the last of which may end a turn, and tells them when they are safe.
    pub(crate) async fn store(&self, events: Vec<Event>, durability: Durability) -> Result<(), LogError> {
        let first = self.enqueue(&events);
        self.flush(durability).await?;
        for (seq, event) in (first..).zip(events) {
            self.publish(seq, event);
        }
        Ok(())
    }

    /// Tells something that nothing follows from. It is stored with the next write, and when the session is left.
    pub(crate) fn mention(&self, event: Event) {
        let seq = self.enqueue(std::slice::from_ref(&event));
        self.publish(seq, event);
    }

    /// Stores what was only mentioned.
    pub(crate) async fn settle(&self) {
        let _ = self.flush(Durability::Process).await;
    }

    /// Whoever is asked from here on.
    pub(crate) fn asks(&self, provider: &str, model: &str) {
        self.lock().model = (provider.to_owned(), model.to_owned());
    }

    /// Tells the end of a turn that could not be stored.
    pub(crate) fn tell_only(&self, event: Event) {
        let seq = self.lock().seq;
        self.publish(seq, event);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives numbers to events that are to be stored; the first of them. One step, because the session's task and the
    /// turn's both do this.
    fn enqueue(&self, events: &[Event]) -> u64 {
        let mut state = self.lock();
        let first = state.seq + 1;
        state.seq += events.len() as u64;
        state.pending.extend(events.iter().cloned());
        self.feed.reserve(first..state.seq + 1);
        first
    }

    /// What is said to the running turn.
    pub(crate) fn steering(&self) -> &Steering {
        &self.steering
    }

    /// OBS-3: what the running turn waits for now.
    pub(crate) fn why(&self) -> Vec<Wait> {
        let now = self.clock.elapsed();
        self.lock().why.chain(now)
    }

    fn publish(&self, seq: u64, event: Event) {
        let now = self.clock.elapsed();
        self.lock().why.hear(now, &event);
        if let Event::Message { message } = &event {
            self.steering.heard(&message.id);
        }
        self.feed.publish(&Envelope {
            v: EVENT_VERSION,
            session: self.session().clone(),
            seq,
            event,
        });
    }

    fn session(&self) -> &SessionId {
        &self.lease.session
    }

    /// What is pending, as one write. `None` when there is nothing.
    fn batch(&self, durability: Durability) -> Option<Batch> {
        let mut state = self.lock();
        let events = std::mem::take(&mut state.pending);
        let bookings = std::mem::take(&mut state.bookings);
        if events.is_empty() && bookings.is_empty() && durability == Durability::Process {
            return None;
        }
        let is_reply = |event: &Event| match event {
            Event::Message { message } => message.role == Role::Assistant,
            event => event.is_terminal(),
        };
        let draft = if events.iter().any(is_reply) {
            state.reply = Reply::default();
            DraftChange::Clear
        } else {
            DraftChange::Keep
        };
        Some(Batch {
            first_seq: state.seq + 1 - events.len() as u64,
            events,
            time: self.clock.now(),
            draft,
            bookings,
            durability,
        })
    }

    /// Returns when everything so far is stored.
    async fn flush(&self, durability: Durability) -> Result<(), LogError> {
        self.arrived().await?;
        match self.batch(durability) {
            Some(batch) => append(&*self.store, &self.lease, &self.feed, batch).await,
            None => Ok(()),
        }
    }

    async fn arrived(&self) -> Result<(), LogError> {
        let under_way = std::mem::take(&mut self.lock().under_way);
        all(under_way).await
    }

    /// Sends a write on its way, after those before it. The next one that must be safe waits for it.
    fn send(&self, batch: Batch) {
        let (store, lease, feed) = (Arc::clone(&self.store), self.lease.clone(), self.feed.clone());
        let mut state = self.lock();
        let before = std::mem::take(&mut state.under_way);
        let write = tokio::spawn(async move {
            all(before).await?;
            append(&*store, &lease, &feed, batch).await
        });
        state.under_way.push(write);
    }

    fn note(&self, event: &Event) {
        let mut state = self.lock();
        match event {
            Event::Start { provider, model } => state.model = (provider.clone(), model.clone()),
            Event::Usage {
                usage,
                cost_usd,
                cause,
            } => {
                let (provider, model) = state.model.clone();
                state.bookings.push(Booking {
                    time: self.clock.now(),
                    provider,
                    model,
                    cause: cause.clone(),
                    usage: *usage,
                    cost_usd: *cost_usd,
                });
            }
            _ => {}
        }
    }

    /// Keeps what has come of a reply, and stores it now and then.
    fn receive(&self, piece: &str) {
        let now = self.clock.elapsed();
        let batch = {
            let mut state = self.lock();
            let reply = &mut state.reply;
            reply.text.push_str(piece);
            let is_due = reply.message.is_none() || now.saturating_sub(reply.stored_at) >= STALENESS;
            if !is_due {
                return;
            }
            reply.stored_at = now;
            let time = self.clock.now();
            let new = || Message::new(&self.lease.session, Role::Assistant, Vec::new(), time);
            let mut message = reply.message.take().unwrap_or_else(new);
            message.parts = vec![Part::text(reply.text.clone())];
            reply.message = Some(message.clone());
            Batch {
                time,
                draft: DraftChange::Set(Box::new(message)),
                ..Batch::default()
            }
        };
        self.send(batch);
    }

    /// The reply starts over.
    fn discard(&self) {
        self.lock().reply.text.clear();
    }
}

/// Writes a batch, and lets readers know where its events are from then on.
async fn append(store: &dyn Store, lease: &Lease, feed: &Feed, batch: Batch) -> Result<(), LogError> {
    let numbers = batch.first_seq..batch.first_seq + batch.events.len() as u64;
    store.append(lease, batch).await?;
    feed.stored(numbers);
    Ok(())
}

/// Waits for writes.
async fn all(writes: Vec<JoinHandle<Result<(), LogError>>>) -> Result<(), LogError> {
    for write in writes {
        match write.await {
            Ok(done) => done?,
            Err(error) => return Err(LogError::Failed(error.to_string())),
        }
    }
    Ok(())
}

/// What must be stored before anything follows from it.
fn is_barrier(event: &Event) -> bool {
    matches!(
        event,
        Event::Message { .. } | Event::Session(_) | Event::Waiting(_)
    )
}

#[async_trait]
impl EventSink for Sink {
    fn live(&self, event: Event) {
        if let Event::Delta {
            kind: DeltaKind::Text,
            text,
        } = &event
        {
            self.receive(text);
        }
        let seq = self.lock().seq;
        self.publish(seq, event);
    }

    async fn record(&self, event: Event) -> Result<(), SinkError> {
        // The session's task stores the end, when the session is free again.
        if event.is_terminal() {
            return Ok(());
        }
        self.note(&event);
        if is_barrier(&event) {
            let stored = self.store(vec![event], Durability::Process).await;
            return stored.map_err(|error| SinkError(error.to_string()));
        }
        if let Event::Retry { discard: true, .. } = &event {
            self.discard();
        }
        let first = self.enqueue(std::slice::from_ref(&event));
        let is_result = matches!(event, Event::ToolResult { .. });
        self.publish(first, event);
        if is_result && let Some(batch) = self.batch(Durability::Process) {
            self.send(batch);
        }
        Ok(())
    }
}
