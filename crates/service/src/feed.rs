//! Delivers the events of a session to any number of readers, without ever waiting for one.
//!
//! A reader that falls behind loses live events first, and is told how many. It never loses state events:
//! when its buffer is full, it reads them from the store again.
//!
//! State events may arrive slightly out of order: some are published immediately and stored later, others are
//! published once they are safe, and both the session's task and the turn's task publish. A reader therefore
//! tracks the numbers it has seen, and never takes a high number as a sign that it has seen the lower ones.
//!
//! In a cluster another server continues from what is stored, so an event that is lost with its server must not have been
//! seen: its number is assigned again. There the feed holds state events back until they are stored, and what comes after
//! them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use windlass_api::{
    EVENT_VERSION, Envelope, Event, EventStream, GoalEvent, GoalState, SessionEvent, SessionId, Waiting,
};
use windlass_core::event::AgentEvent;
use windlass_core::id::MessageId;
use windlass_core::log::{Entry, Store};

/// Maximum number of state events buffered for one reader before it must read the store instead.
const STATES: usize = 1024;
/// Number of entries read from the store at a time.
const PAGE: usize = 256;

/// Live events of one session. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Feed {
    shared: Arc<Mutex<Shared>>,
    buffer: usize,
    /// Maximum number of state events buffered for one reader.
    room: usize,
}

struct Shared {
    readers: Vec<Weak<Mutex<Line>>>,
    /// Highest number of a published or stored state event.
    last: u64,
    /// Numbers that are not known to be stored, with the event if it was already published: a reader that
    /// starts now cannot get it anywhere else.
    unstored: BTreeMap<u64, Option<Envelope>>,
    /// Events behind a state event that is not stored yet, in order; `None` if nothing is held back.
    held: Option<VecDeque<Envelope>>,
}

/// Buffer of one reader.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Envelope>,
    live: usize,
    missed: u64,
    /// A state event did not fit: it and the later ones are in the store.
    gap: bool,
    /// Maximum number of buffered live events.
    capacity: usize,
    /// Maximum number of buffered state events.
    room: usize,
    over: bool,
    waker: Option<Waker>,
}

impl Feed {
    pub(crate) fn new(last: u64, buffer: usize) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Shared {
                readers: Vec::new(),
                last,
                unstored: BTreeMap::new(),
                held: None,
            })),
            buffer,
            room: STATES,
        }
    }

    /// Holds state events back from now on until they are stored. What an earlier life of the session could not store is
    /// forgotten: its numbers are assigned again.
    pub(crate) fn hold_back(&self) {
        let mut shared = self.lock();
        shared.held = Some(VecDeque::new());
        shared.unstored.clear();
    }

    /// Returns true if events are seen only once they are stored.
    pub(crate) fn holds_back(&self) -> bool {
        self.lock().held.is_some()
    }

    /// Reserves numbers for state events that are to be stored.
    pub(crate) fn reserve(&self, numbers: Range<u64>) {
        self.lock().unstored.extend(numbers.map(|number| (number, None)));
    }

    /// Releases numbers whose events were neither stored nor published.
    pub(crate) fn withdraw(&self, numbers: Range<u64>) {
        let mut shared = self.lock();
        shared.unstored.retain(|number, _| !numbers.contains(number));
        shared.let_through();
    }

    /// Marks the state events with these numbers as stored.
    pub(crate) fn stored(&self, numbers: Range<u64>) {
        let mut shared = self.lock();
        for number in numbers {
            shared.unstored.remove(&number);
            shared.last = shared.last.max(number);
        }
        shared.let_through();
    }

    /// Passes an event to every reader, unless it has to be stored first. Never waits.
    pub(crate) fn publish(&self, envelope: &Envelope) {
        let mut shared = self.lock();
        let must_wait = shared.must_wait(envelope);
        match &mut shared.held {
            Some(held) if must_wait || !held.is_empty() => held.push_back(envelope.clone()),
            _ => shared.pass_on(envelope),
        }
    }

    /// Passes an event to every reader that is not stored.
    pub(crate) fn publish_at_once(&self, envelope: &Envelope) {
        self.lock().pass_on(envelope);
    }

    /// Returns a reader with an unlimited buffer, for the client that started a turn.
    pub(crate) fn reader(&self) -> Reader {
        let line = line(usize::MAX, usize::MAX);
        self.lock().readers.push(Arc::downgrade(&line));
        Reader { line }
    }

    /// Returns all events after `after`: first from the store, then live.
    pub(crate) fn follow(&self, session: SessionId, after: u64, store: Arc<dyn Store>) -> EventStream {
        let line = line(self.buffer, self.room);
        let upto = {
            let mut shared = self.lock();
            shared.readers.push(Arc::downgrade(&line));
            shared.catch_up(&line)
        };
        // A number from before the session was given up may be higher, and will be assigned again.
        let after = after.min(upto);
        EventStream::new(Catching {
            feed: self.clone(),
            reader: Reader { line },
            past: Some(stored(Arc::clone(&store), session.clone(), after, upto).boxed()),
            seen: Seen::all_upto(after),
            session,
            store,
        })
    }

    /// Lets every reader continue with what others have stored up to this number.
    pub(crate) fn continue_at(&self, last: u64) {
        let mut shared = self.lock();
        if last <= shared.last {
            return;
        }
        shared.last = last;
        for line in shared.readers.iter().filter_map(Weak::upgrade) {
            let mut line = lock(&line);
            line.gap = true;
            line.wake();
        }
    }

    /// Returns true if somebody reads.
    pub(crate) fn has_readers(&self) -> bool {
        let mut shared = self.lock();
        shared.readers.retain(|reader| reader.strong_count() > 0);
        !shared.readers.is_empty()
    }

    /// Ends the feed: there will be no more events.
    pub(crate) fn end(&self) {
        for line in self.lock().readers.iter().filter_map(Weak::upgrade) {
            let mut line = lock(&line);
            line.over = true;
            line.wake();
        }
    }

    /// Ends the feed for its readers: later events reach none of them.
    pub(crate) fn cut(&self) {
        self.end();
        self.lock().readers.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Returns true for a state event that is not stored.
    fn must_wait(&self, envelope: &Envelope) -> bool {
        !envelope.event.is_live() && self.unstored.contains_key(&envelope.seq)
    }

    /// Passes on what was held back, up to the first event that is not stored.
    fn let_through(&mut self) {
        while let Some(first) = self.held.as_mut().and_then(VecDeque::pop_front) {
            if self.must_wait(&first) {
                self.held.get_or_insert_default().push_front(first);
                return;
            }
            self.pass_on(&first);
        }
    }

    fn pass_on(&mut self, envelope: &Envelope) {
        if !envelope.event.is_live() {
            // The number of a live event may belong to a state event that is not published yet.
            self.last = self.last.max(envelope.seq);
            if let Some(told) = self.unstored.get_mut(&envelope.seq) {
                *told = Some(envelope.clone());
            }
        }
        self.readers.retain(|reader| match reader.upgrade() {
            Some(line) => {
                lock(&line).put(envelope.clone());
                true
            }
            None => false,
        });
    }

    /// Lets a reader with an empty buffer continue from here: events that were published but are not yet in
    /// the store are put into its buffer. All others are in the store, at most up to the returned number.
    fn catch_up(&self, line: &Mutex<Line>) -> u64 {
        let mut line = lock(line);
        line.gap = false;
        // Regardless of the limit: events that did not fit would be requested again immediately.
        line.waiting.extend(self.unstored.values().flatten().cloned());
        self.last
    }
}

fn line(capacity: usize, room: usize) -> Arc<Mutex<Line>> {
    Arc::new(Mutex::new(Line {
        capacity,
        room,
        ..Line::default()
    }))
}

fn lock(line: &Mutex<Line>) -> std::sync::MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    fn put(&mut self, envelope: Envelope) {
        if self.gap {
            // The reader will read the store up to its state at that time.
            self.missed += u64::from(envelope.event.is_live());
            return;
        }
        if envelope.event.is_live() {
            if self.live >= self.capacity {
                self.missed += 1;
                return;
            }
            self.live += 1;
        } else if self.waiting.len() - self.live >= self.room {
            self.gap = true;
            self.wake();
            return;
        }
        self.waiting.push_back(envelope);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Next item for a reader.
enum Next {
    Event(Envelope),
    /// State events did not fit: call [`Shared::catch_up`].
    Gap,
    Over,
}

pub(crate) struct Reader {
    line: Arc<Mutex<Line>>,
}

impl Reader {
    /// Returns the events up to the next terminal one; for a waiting input, from its own message on. Before
    /// that, it returns only permission requests and questions of other turns, because the person who waits
    /// may be the one to answer them. The stream ends if the input is taken back. GOAL-6: a turn after which the
    /// session goes ahead with its plan is followed by the next one.
    pub(crate) fn turn(mut self, mut waits: Option<MessageId>) -> EventStream {
        let mut over = false;
        let mut was_queued = false;
        let mut follows = None;
        EventStream::new(stream::poll_fn(move |cx| {
            loop {
                if over {
                    return Poll::Ready(None);
                }
                let Poll::Ready(next) = self.poll_next_unpin(cx) else {
                    return Poll::Pending;
                };
                if let (Some(waits), Some(Event::Waiting(Waiting::Queue { messages, .. }))) =
                    (&waits, next.as_ref().map(|envelope| &envelope.event))
                {
                    let is_queued = messages.iter().any(|message| message.id == *waits);
                    over = was_queued && !is_queued;
                    was_queued |= is_queued;
                    continue;
                }
                let is_own = |envelope: &Envelope| match (&waits, &envelope.event) {
                    (Some(waits), Event::Message { message }) => message.id == *waits,
                    (waits, _) => waits.is_none(),
                };
                let asks = |envelope: &Envelope| matches!(envelope.event, Event::Waiting(_));
                if waits.is_some() && next.as_ref().is_some_and(asks) {
                    return Poll::Ready(next);
                }
                if next.as_ref().is_none_or(is_own) {
                    let event = next.as_ref().map(|envelope| &envelope.event);
                    if let Some(Event::Session(SessionEvent::Work(GoalEvent::GoAhead { input }))) = event {
                        follows = Some(input.clone());
                    }
                    let has_ended = event.is_none_or(Event::is_terminal);
                    waits = follows.take_if(|_| has_ended);
                    over = has_ended && waits.is_none();
                    return Poll::Ready(next);
                }
            }
        }))
    }

    /// Returns the events of work towards a goal, over all its turns, up to the one that ends it.
    pub(crate) fn work(self) -> EventStream {
        self.until(ends_work)
    }

    /// Returns the events of a sub-agent's run, over all its turns, up to the end of the last one.
    pub(crate) fn run(self) -> EventStream {
        let mut has_ended = false;
        self.until(move |event| {
            has_ended |= matches!(
                event,
                Event::Session(SessionEvent::Agent(AgentEvent::AgentEnded { .. }))
            );
            has_ended && event.is_terminal()
        })
    }

    /// Returns the events up to the first that is the last.
    fn until(mut self, mut is_last: impl FnMut(&Event) -> bool + Send + 'static) -> EventStream {
        let mut is_over = false;
        EventStream::new(stream::poll_fn(move |cx| {
            if is_over {
                return Poll::Ready(None);
            }
            let next = self.poll_next_unpin(cx);
            if let Poll::Ready(next) = &next {
                is_over = next.as_ref().is_none_or(|envelope| is_last(&envelope.event));
            }
            next
        }))
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut line = lock(&self.line);
        if let Some(envelope) = line.waiting.pop_front() {
            line.live -= usize::from(envelope.event.is_live());
            return Poll::Ready(Next::Event(envelope));
        }
        if line.gap {
            return Poll::Ready(Next::Gap);
        }
        if line.over {
            return Poll::Ready(Next::Over);
        }
        line.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the number of live events dropped since the last call.
    fn take_missed(&self) -> u64 {
        std::mem::take(&mut lock(&self.line).missed)
    }
}

impl Stream for Reader {
    type Item = Envelope;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        match self.poll(cx) {
            Poll::Ready(Next::Event(envelope)) => Poll::Ready(Some(envelope)),
            Poll::Ready(Next::Gap | Next::Over) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Returns true if an event ends work towards a goal.
fn ends_work(event: &Event) -> bool {
    matches!(
        event,
        Event::Session(SessionEvent::Work(GoalEvent::GoalState { state, .. })) if *state != GoalState::Active
    )
}

/// A reader that goes back to the store after falling behind.
struct Catching {
    feed: Feed,
    reader: Reader,
    past: Option<BoxStream<'static, Envelope>>,
    seen: Seen,
    session: SessionId,
    store: Arc<dyn Store>,
}

impl Stream for Catching {
    type Item = Envelope;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Envelope>> {
        loop {
            if let Some(past) = &mut self.past {
                match past.as_mut().poll_next(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(envelope)) if self.seen.is_new(envelope.seq) => {
                        return Poll::Ready(Some(envelope));
                    }
                    Poll::Ready(Some(_)) => continue,
                    Poll::Ready(None) => self.past = None,
                }
            }
            let missed = self.reader.take_missed();
            if missed > 0 {
                let text = format!("{missed} live events were dropped because this reader is slow");
                return Poll::Ready(Some(self.envelope(self.seen.upto, Event::Status { text })));
            }
            match self.reader.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Next::Over) => return Poll::Ready(None),
                Poll::Ready(Next::Gap) => {
                    let upto = self.feed.lock().catch_up(&self.reader.line);
                    let (store, session) = (Arc::clone(&self.store), self.session.clone());
                    self.past = Some(stored(store, session, self.seen.upto, upto).boxed());
                }
                Poll::Ready(Next::Event(envelope)) => {
                    if envelope.event.is_live() || self.seen.is_new(envelope.seq) {
                        return Poll::Ready(Some(envelope));
                    }
                }
            }
        }
    }
}

/// Numbers of the state events that a reader has received.
struct Seen {
    /// All numbers up to here have been received.
    upto: u64,
    /// Received numbers above `upto`.
    ahead: BTreeSet<u64>,
}

impl Seen {
    fn all_upto(upto: u64) -> Self {
        Self {
            upto,
            ahead: BTreeSet::new(),
        }
    }

    /// Records a number and returns true if it is new.
    fn is_new(&mut self, number: u64) -> bool {
        if number <= self.upto || !self.ahead.insert(number) {
            return false;
        }
        while self.ahead.remove(&(self.upto + 1)) {
            self.upto += 1;
        }
        true
    }
}

impl Catching {
    fn envelope(&self, seq: u64, event: Event) -> Envelope {
        Envelope {
            v: EVENT_VERSION,
            session: self.session.clone(),
            seq,
            event,
        }
    }
}

/// Returns the stored events after one number, up to another.
fn stored(
    store: Arc<dyn Store>,
    session: SessionId,
    after: u64,
    upto: u64,
) -> impl Stream<Item = Envelope> + Send + 'static {
    let page = move |after: Option<u64>| {
        let (store, session) = (Arc::clone(&store), session.clone());
        async move {
            let after = after?;
            if after >= upto {
                return None;
            }
            let entries = store.entries(&session, after, PAGE).await.unwrap_or_default();
            let last = entries.last()?.seq;
            let next = (entries.len() == PAGE).then_some(last);
            let envelopes = entries
                .into_iter()
                .filter(move |entry| entry.seq <= upto)
                .map(move |entry| envelope(&session, entry));
            Some((stream::iter(envelopes.collect::<Vec<_>>()), next))
        }
    };
    stream::unfold(Some(after), page).flatten()
}

fn envelope(session: &SessionId, entry: Entry) -> Envelope {
    Envelope {
        v: EVENT_VERSION,
        session: session.clone(),
        seq: entry.seq,
        event: entry.event,
    }
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
