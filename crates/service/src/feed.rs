//! What happens in a session, to any number of readers, without ever waiting for one.
//!
//! A reader that falls behind loses live events first, and is told how many. State events it never loses: when the room is
//! used up it reads them again from the store.

use std::collections::VecDeque;
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
}

struct Shared {
    readers: Vec<Weak<Mutex<Line>>>,
    last: u64,
}

/// What waits for one reader.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Envelope>,
    live: usize,
    missed: u64,
    /// A state event did not fit: it and those after it are in the store.
    gap: bool,
    capacity: usize,
    over: bool,
    waker: Option<Waker>,
}

impl Feed {
    pub(crate) fn new(last: u64, buffer: usize) -> Self {
        Self {
            shared: Arc::new(Mutex::new(Shared {
                readers: Vec::new(),
                last,
            })),
            buffer,
        }
    }

    /// Hands an event to every reader. Never waits.
    pub(crate) fn publish(&self, envelope: &Envelope) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.last = shared.last.max(envelope.seq);
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
        Reader {
            line: self.line(usize::MAX),
        }
    }

    /// All events after `after`: those in the store, then those that happen.
    pub(crate) fn follow(&self, session: SessionId, after: u64, store: Arc<dyn Store>) -> EventStream {
        let line = self.line(self.buffer);
        let upto = self.shared.lock().unwrap_or_else(PoisonError::into_inner).last;
        let past = stored(Arc::clone(&store), session.clone(), after, Some(upto));
        let now = Catching {
            reader: Reader { line },
            past: None,
            last: upto.max(after),
            session,
            store,
        };
        EventStream::new(past.chain(now))
    }

    fn line(&self, capacity: usize) -> Arc<Mutex<Line>> {
        let line = Arc::new(Mutex::new(Line {
            capacity,
            ..Line::default()
        }));
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.readers.push(Arc::downgrade(&line));
        line
    }

    /// Nothing more will happen here.
    pub(crate) fn end(&self) {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        for line in shared.readers.iter().filter_map(Weak::upgrade) {
            let mut line = lock(&line);
            line.over = true;
            line.wake();
        }
    }
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
        } else if self.capacity != usize::MAX && self.waiting.len() - self.live >= STATES {
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
    /// State events did not fit any more, and are in the store.
    Gap,
    Over,
}

pub(crate) struct Reader {
    line: Arc<Mutex<Line>>,
}

impl Reader {
    /// The events up to the next terminal one; of an input that waits, from its own message on. One that is taken back has
    /// none.
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
                if let (Some(waits), Some(Event::Waiting(Waiting::Queue { messages }))) =
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
        if std::mem::take(&mut line.gap) {
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
    reader: Reader,
    past: Option<BoxStream<'static, Envelope>>,
    last: u64,
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
                    Poll::Ready(Some(envelope)) => {
                        self.last = envelope.seq;
                        return Poll::Ready(Some(envelope));
                    }
                    Poll::Ready(None) => self.past = None,
                }
            }
            let missed = self.reader.take_missed();
            if missed > 0 {
                let text = format!("{missed} live events were left out because this reader is slow");
                return Poll::Ready(Some(self.envelope(self.last, Event::Status { text })));
            }
            match self.reader.poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Next::Over) => return Poll::Ready(None),
                Poll::Ready(Next::Gap) => {
                    let past = stored(Arc::clone(&self.store), self.session.clone(), self.last, None);
                    self.past = Some(past.boxed());
                }
                Poll::Ready(Next::Event(envelope)) => {
                    let is_old = !envelope.event.is_live() && envelope.seq <= self.last;
                    if is_old {
                        continue;
                    }
                    self.last = self.last.max(envelope.seq);
                    return Poll::Ready(Some(envelope));
                }
            }
        }
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
    upto: Option<u64>,
) -> impl Stream<Item = Envelope> + Send + 'static {
    let page = move |after: Option<u64>| {
        let (store, session) = (Arc::clone(&store), session.clone());
        async move {
            let after = after?;
            if upto.is_some_and(|upto| after >= upto) {
                return None;
            }
            let entries = store.entries(&session, after, PAGE).await.unwrap_or_default();
            let last = entries.last()?.seq;
            let next = (entries.len() == PAGE).then_some(last);
            let envelopes = entries
                .into_iter()
                .filter(move |entry| upto.is_none_or(|upto| entry.seq <= upto))
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
