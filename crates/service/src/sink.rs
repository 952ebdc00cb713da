//! Destination of a turn's events: first the log, then the listeners.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use windlass_api::{DeltaKind, EVENT_VERSION, Envelope, Event, Wait};
use windlass_core::clock::Clock;
use windlass_core::event::{EventSink, SinkError};
use windlass_core::log::{Batch, Booking, DraftChange, Durability, Lease, LogError, Store};
use windlass_core::message::{Message, Part, Role};

use crate::agents::Deliveries;
use crate::feed::Feed;
use crate::turn::Steering;
use crate::why::Why;

/// Maximum age of the stored part of a reply while it is received.
const STALENESS: Duration = Duration::from_millis(250);

/// Time that a result waits for the message that carries it, so that both are stored by one write. The results
/// of a reply that still has running calls are stored then.
const GATHER: Duration = Duration::from_millis(2);

/// Duration after which an unfinished write is reported.
const SLOW: Duration = Duration::from_secs(1);

/// Log and listeners of one session.
pub(crate) struct Sink {
    log: Arc<Log>,
    steering: Steering,
    /// Results of sub-agents that are about to be recorded.
    deliveries: Arc<Deliveries>,
}

/// Log writer. The task at the front of the queue writes.
struct Log {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    lease: Lease,
    feed: Feed,
    state: Mutex<State>,
    /// Allows one write at a time: events after a failed write must not be stored without it.
    writing: tokio::sync::Mutex<()>,
}

struct State {
    /// Number of the last event.
    seq: u64,
    /// Events that have a number and are not stored yet; the last one has the last number.
    pending: Vec<Event>,
    bookings: Vec<Booking>,
    draft: DraftChange,
    /// Error after which nothing more can be written: an event was refused after later ones had been
    /// numbered.
    broken: Option<LogError>,
    reply: ReplySoFar,
    /// Provider and model of the current requests.
    model: (String, String),
    /// Wait chain of the running turn.
    why: Why,
    /// Start times of the writes in progress.
    storing: Vec<Duration>,
}

/// The reply that is being received.
#[derive(Default)]
struct ReplySoFar {
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
        let state = State {
            seq,
            pending: Vec::new(),
            bookings: Vec::new(),
            draft: DraftChange::Keep,
            broken: None,
            reply: ReplySoFar::default(),
            model: Default::default(),
            why: Why::default(),
            storing: Vec::new(),
        };
        Self {
            log: Arc::new(Log {
                store,
                clock,
                lease,
                feed,
                state: Mutex::new(state),
                writing: tokio::sync::Mutex::default(),
            }),
            steering: Steering::default(),
            deliveries: Arc::default(),
        }
    }

    /// Stores events, the last of which may end a turn, and publishes them once they are safe. If this fails,
    /// they are not stored later either.
    pub(crate) async fn store(&self, events: Vec<Event>, durability: Durability) -> Result<(), LogError> {
        let since = self.log.clock.elapsed();
        let events = self.deliveries.marked(events);
        let numbers = {
            let mut state = self.lock();
            if let Some(error) = &state.broken {
                return Err(error.clone());
            }
            state.storing.push(since);
            self.log.enqueue(&mut state, &events)
        };
        let written = self.log.write(durability, numbers.clone()).await;
        let mut state = self.lock();
        if let Some(place) = state.storing.iter().position(|begun| *begun == since) {
            state.storing.swap_remove(place);
        }
        drop(state);
        written?;
        for (seq, event) in numbers.zip(events) {
            self.publish(seq, event);
        }
        Ok(())
    }

    /// Publishes an event that nothing depends on. It is stored with the next write, or when the session is
    /// closed; in a cluster soon, because nobody sees it before.
    pub(crate) fn mention(&self, event: Event) {
        let events = self.deliveries.marked(vec![event]);
        let numbers = {
            let mut state = self.lock();
            if state.broken.is_some() {
                return;
            }
            self.log.enqueue(&mut state, &events)
        };
        for (seq, event) in numbers.zip(events) {
            self.publish(seq, event);
        }
        if self.log.feed.holds_back() {
            self.send(GATHER);
        }
    }

    /// Stores all pending events.
    pub(crate) async fn settle(&self) {
        let _ = self.log.write(Durability::Process, 0..0).await;
    }

    /// DIST-3: writes and publishes nothing more: another owner may have the session. Readers are told why, and their
    /// streams end.
    pub(crate) fn give_up(&self, why: &str) {
        self.tell_only(Event::Status { text: why.to_owned() });
        let lost = LogError::Lost(self.log.lease.session.clone());
        self.lock().broken = Some(lost);
        self.log.feed.cut();
    }

    /// Returns true if nothing more can be written.
    pub(crate) fn is_broken(&self) -> bool {
        self.lock().broken.is_some()
    }

    /// Sets the provider and model of the following requests.
    pub(crate) fn asks(&self, provider: &str, model: &str) {
        self.lock().model = (provider.to_owned(), model.to_owned());
    }

    /// Publishes something that is not stored: the end of a turn that could not be, for example.
    pub(crate) fn tell_only(&self, event: Event) {
        let seq = self.hear(&event);
        let event = match event {
            // In a cluster the turn continues once the store can be written, and another event gets the number.
            Event::Failed { message, .. } if self.log.feed.holds_back() => Event::Status { text: message },
            event => event,
        };
        self.log.feed.publish_at_once(&self.envelope(seq, event));
    }

    /// Returns the messages sent to the running turn.
    pub(crate) fn steering(&self) -> &Steering {
        &self.steering
    }

    /// Returns the results of sub-agents that are about to be recorded.
    pub(crate) fn deliveries(&self) -> &Arc<Deliveries> {
        &self.deliveries
    }

    /// Returns the feed of the listeners.
    pub(crate) fn feed(&self) -> &Feed {
        &self.log.feed
    }

    /// OBS-3: returns the current wait chain of the running turn.
    pub(crate) fn why(&self) -> Vec<Wait> {
        let now = self.log.clock.elapsed();
        let state = self.lock();
        let storing = state.storing.iter().min().copied();
        let stuck = storing.filter(|since| now.saturating_sub(*since) >= SLOW);
        state.why.chain(now, stuck)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.log.lock()
    }

    /// Notes what an event says about the turn. Returns the number of the last event.
    fn hear(&self, event: &Event) -> u64 {
        let now = self.log.clock.elapsed();
        let mut state = self.lock();
        state.why.hear(now, event);
        state.seq
    }

    fn publish(&self, seq: u64, event: Event) {
        self.hear(&event);
        if let Event::Message { message } = &event {
            self.steering.heard(&message.id);
        }
        self.log.feed.publish(&self.envelope(seq, event));
    }

    fn envelope(&self, seq: u64, event: Event) -> Envelope {
        Envelope {
            v: EVENT_VERSION,
            session: self.log.lease.session.clone(),
            seq,
            event,
        }
    }

    /// Writes the pending events in the background after a delay. The next event that must be safe is written
    /// with them, or after them if this write has begun.
    fn send(&self, delay: Duration) {
        let log = Arc::clone(&self.log);
        tokio::spawn(async move {
            if !delay.is_zero() {
                log.clock.sleep(delay).await;
            }
            log.write(Durability::Process, 0..0).await
        });
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
                    time: self.log.clock.now(),
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

    /// Appends a piece of a reply, and stores the reply periodically.
    fn receive(&self, piece: &str) {
        let now = self.log.clock.elapsed();
        {
            let mut state = self.lock();
            let reply = &mut state.reply;
            reply.text.push_str(piece);
            let is_due = reply.message.is_none() || now.saturating_sub(reply.stored_at) >= STALENESS;
            if !is_due {
                return;
            }
            reply.stored_at = now;
            let time = self.log.clock.now();
            let new = || Message::new(&self.log.lease.session, Role::Assistant, Vec::new(), time);
            let mut message = reply.message.take().unwrap_or_else(new);
            message.parts = vec![Part::text(reply.text.clone())];
            reply.message = Some(message.clone());
            state.draft = DraftChange::Set(Box::new(message));
        }
        self.send(Duration::ZERO);
    }

    /// Discards the partial reply, because it starts over.
    fn discard(&self) {
        self.lock().reply.text.clear();
    }
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns numbers to events that are to be stored. This is a single step, because both the session's
    /// task and the turn's task do it.
    fn enqueue(&self, state: &mut State, events: &[Event]) -> Range<u64> {
        let first = state.seq + 1;
        state.seq += events.len() as u64;
        state.pending.extend(events.iter().cloned());
        let is_reply = |event: &Event| match event {
            Event::Message { message } => message.role == Role::Assistant,
            event => event.is_terminal(),
        };
        if events.iter().any(is_reply) {
            state.reply = ReplySoFar::default();
            state.draft = DraftChange::Clear;
        }
        let numbers = first..state.seq + 1;
        self.feed.reserve(numbers.clone());
        numbers
    }

    /// Returns when everything so far is stored. On failure, the events with the numbers `own` are given up.
    async fn write(&self, durability: Durability, own: Range<u64>) -> Result<(), LogError> {
        let _writing = self.writing.lock().await;
        let Some(batch) = self.batch(durability)? else {
            return Ok(());
        };
        let numbers = batch.first_seq..batch.first_seq + batch.events.len() as u64;
        let (events, bookings) = (batch.events.len(), batch.bookings.len());
        let draft = batch.draft.clone();
        let written = self.store.append(&self.lease, batch).await;
        let mut state = self.lock();
        match &written {
            Ok(()) => {
                state.pending.drain(..events);
                state.bookings.drain(..bookings);
                drop(state);
                self.feed.stored(numbers);
            }
            Err(error) => {
                if state.draft == DraftChange::Keep {
                    state.draft = draft;
                }
                self.withdraw(&mut state, own, error);
            }
        }
        written
    }

    /// Returns the pending events as one batch, or `None` if there are none. They stay pending until they are
    /// stored.
    fn batch(&self, durability: Durability) -> Result<Option<Batch>, LogError> {
        let mut state = self.lock();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let draft = std::mem::take(&mut state.draft);
        let is_empty = state.pending.is_empty() && state.bookings.is_empty() && draft == DraftChange::Keep;
        if is_empty && durability == Durability::Process {
            return Ok(None);
        }
        Ok(Some(Batch {
            first_seq: state.seq + 1 - state.pending.len() as u64,
            events: state.pending.clone(),
            time: self.clock.now(),
            draft,
            bookings: state.bookings.clone(),
            durability,
        }))
    }

    /// Takes back events that could not be stored, and their numbers; the caller receives the error. If later
    /// events already have numbers, this is too late and nothing more is written: a record has no gaps.
    fn withdraw(&self, state: &mut State, own: Range<u64>, error: &LogError) {
        if own.is_empty() {
            return;
        }
        let kept = state.pending.len().checked_sub(own.clone().count());
        match kept {
            Some(kept) if own.end == state.seq + 1 => {
                state.pending.truncate(kept);
                state.seq = own.start - 1;
                self.feed.withdraw(own);
            }
            _ => state.broken = Some(error.clone()),
        }
    }
}

/// Returns true if the event must be stored before anything depends on it.
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
        // The session's task stores the end, when the session is idle again.
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
        let is_result = matches!(event, Event::ToolResult { .. });
        self.mention(event);
        if is_result {
            self.send(GATHER);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
