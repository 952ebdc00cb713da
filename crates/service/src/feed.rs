//! What happens in a session, to any number of readers, without ever waiting for one.
//!
//! A reader that falls behind loses live events first, and is told how many. State events it never loses: when the room is
//! used up it reads them again from the store.
//!
//! State events may come a little out of order: some are told when they happen and stored later, others are told once they
//! are safe, and the session's task and the turn's both tell. So a reader counts what it has seen by number, and never takes
//! a high number for a sign that it has seen the lower ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use windlass_api::{EVENT_VERSION, Envelope, Event, EventStream, SessionId, Waiting};
use windlass_core::id::MessageId;
use windlass_core::log::{Entry, Store};

/// How many state events may wait for one reader before it must read the store instead.
const STATES: usize = 1024;
/// How many entries are read from the store at a time.
const PAGE: usize = 256;

/// The events of one session as they happen. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Feed {
    shared: Arc<Mutex<Shared>>,
    buffer: usize,
    /// How many state events may wait for one reader.
    room: usize,
}

struct Shared {
    readers: Vec<Weak<Mutex<Line>>>,
    /// The highest number of a state event that was told or stored.
    last: u64,
    /// The numbers that are not known to be stored, with the event where it was told already: whoever begins to read now
    /// finds it nowhere else.
    unstored: BTreeMap<u64, Option<Envelope>>,
}

/// What waits for one reader.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Envelope>,
    live: usize,
    missed: u64,
    /// A state event did not fit: it and those after it are in the store.
    gap: bool,
    /// How many live events may wait.
    capacity: usize,
    /// How many state events may wait.
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
            })),
            buffer,
            room: STATES,
        }
    }

    /// These numbers are given to state events that are to be stored.
    pub(crate) fn reserve(&self, numbers: Range<u64>) {
        self.lock().unstored.extend(numbers.map(|number| (number, None)));
    }

    /// These numbers are free again: what had them is not stored, and was not told.
    pub(crate) fn withdraw(&self, numbers: Range<u64>) {
        self.lock().unstored.retain(|number, _| !numbers.contains(number));
    }

    /// The state events with these numbers are in the store.
    pub(crate) fn stored(&self, numbers: Range<u64>) {
        let mut shared = self.lock();
        for number in numbers {
            shared.unstored.remove(&number);
            shared.last = shared.last.max(number);
        }
    }

    /// Hands an event to every reader. Never waits.
    pub(crate) fn publish(&self, envelope: &Envelope) {
        let mut shared = self.lock();
        if !envelope.event.is_live() {
            // The number of a live event may be one that no state event was told under yet.
            shared.last = shared.last.max(envelope.seq);
            if let Some(told) = shared.unstored.get_mut(&envelope.seq) {
                *told = Some(envelope.clone());
            }
        }
        shared.readers.retain(|reader| match reader.upgrade() {
            Some(line) => {
                lock(&line).put(envelope.clone());
                true
            }
            None => false,
        });
    }

    /// Whoever a turn is for reads it from here, and has room for all of it.
    pub(crate) fn reader(&self) -> Reader {
        let line = line(usize::MAX, usize::MAX);
        self.lock().readers.push(Arc::downgrade(&line));
        Reader { line }
    }

    /// All events after `after`: those in the store, then those that happen.
    pub(crate) fn follow(&self, session: SessionId, after: u64, store: Arc<dyn Store>) -> EventStream {
        let line = line(self.buffer, self.room);
        let upto = {
            let mut shared = self.lock();
            shared.readers.push(Arc::downgrade(&line));
            shared.catch_up(&line)
        };
        // A number from before the session was given up may be higher, and will be given again.
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

    /// Nothing more will happen here.
    pub(crate) fn end(&self) {
        for line in self.lock().readers.iter().filter_map(Weak::upgrade) {
            let mut line = lock(&line);
            line.over = true;
            line.wake();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Lets a reader that has nothing waiting go on from here: what was told and cannot be read from the store yet waits for
    /// it. The rest is in the store, at most up to this number.
    fn catch_up(&self, line: &Mutex<Line>) -> u64 {
        let mut line = lock(line);
        line.gap = false;
        // However many: what did not fit would be asked for again at once.
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
            // It reads the store up to where it is then.
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

/// What comes next for a reader.
enum Next {
    Event(Envelope),
    /// State events did not fit any more: [`Shared::catch_up`].
    Gap,
    Over,
}

pub(crate) struct Reader {
    line: Arc<Mutex<Line>>,
}

impl Reader {
    /// The events up to the next terminal one; of an input that waits, from its own message on. Before that only what
    /// turns ask a person, who may be the one that waits. An input that is taken back has no more.
    pub(crate) fn turn(mut self, mut waits: Option<MessageId>) -> EventStream {
        let mut over = false;
        let mut was_queued = false;
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
                    waits = None;
                    over = next.as_ref().is_none_or(|envelope| envelope.event.is_terminal());
                    return Poll::Ready(next);
                }
            }
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

    /// How many live events were left out since the last time this was asked.
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

/// A reader that goes back to the store when it fell behind.
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
                let text = format!("{missed} live events were left out because this reader is slow");
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

/// The numbers of the state events that a reader has.
struct Seen {
    /// All up to here.
    upto: u64,
    /// Those that came before one with a lower number.
    ahead: BTreeSet<u64>,
}

impl Seen {
    fn all_upto(upto: u64) -> Self {
        Self {
            upto,
            ahead: BTreeSet::new(),
        }
    }

    /// Whether this one was not there yet. From now on it is.
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

/// The stored events after a number, up to another.
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
