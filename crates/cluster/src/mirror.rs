//! DIST-4: the events of a session, wherever it is open.
//!
//! A mirror follows the owner: the local service, or another server over the wire. State events carry numbers, so what a
//! source did not deliver is read from the store, and what two sources deliver is passed on once. A client sees neither
//! a gap nor a repeat, also while the session moves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::{broadcast, mpsc};
use windlass_api::{ClientError, EVENT_VERSION, Envelope, Event, EventStream, MessageId, SessionId};
use windlass_core::log::{Holder, LogError};

use crate::state::{LOST, News, Shared, count};

/// Events that the reader may be behind. A slower one is waited for, and the source then drops live events.
const BUFFER: usize = 256;
/// Entries read at a time.
const PAGE: usize = 256;
/// Pause between looks at a session that a process outside the cluster works in.
const LOOK: Duration = Duration::from_millis(500);
/// Pause before an owner that could not be reached is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// Numbers that were passed on.
struct Seen {
    upto: u64,
    ahead: BTreeSet<u64>,
}

impl Seen {
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

/// Place to read from.
enum Source {
    Events(EventStream),
    /// Nobody has the session open: wait for news.
    Nobody,
    /// Look again after a while.
    Later(Duration),
}

/// Follows a session after a number.
pub(crate) async fn follow(
    shared: &Arc<Shared>,
    session: &SessionId,
    after: u64,
) -> Result<EventStream, ClientError> {
    let known = shared.ports.store.get(session).await;
    let known = known.map_err(|error| ClientError::Store(error.to_string()))?;
    let known = known.ok_or_else(|| ClientError::Unknown(session.clone()))?;
    // A number from before may be higher than what the record has.
    let after = after.min(known.last_seq);
    let (sender, receiver) = mpsc::channel(BUFFER);
    let mirror = Mirror {
        news: shared.news.subscribe(),
        shared: Arc::clone(shared),
        session: session.clone(),
        seen: Seen {
            upto: after,
            ahead: BTreeSet::new(),
        },
        sender,
    };
    tokio::spawn(mirror.run());
    let events = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|event| (event, receiver))
    });
    Ok(EventStream::new(events))
}

struct Mirror {
    shared: Arc<Shared>,
    session: SessionId,
    seen: Seen,
    news: broadcast::Receiver<News>,
    sender: mpsc::Sender<Envelope>,
}

impl Mirror {
    /// Passes events on until nobody reads them, or the session is gone.
    async fn run(mut self) {
        while !self.sender.is_closed() {
            let Some((owner, source)) = self.source().await else {
                return;
            };
            let goes_on = match source {
                Source::Events(events) => self.pass_on(events, owner.as_ref()).await,
                Source::Nobody => self.catch_up().await && self.hear(None).await,
                Source::Later(pause) => self.catch_up().await && self.hear(Some(pause)).await,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Finds the owner. Returns `None` if the session is gone.
    async fn source(&self) -> Option<(Option<Holder>, Source)> {
        let (shared, session) = (&self.shared, &self.session);
        let ports = &shared.ports;
        if ports.sessions.is_open(session) {
            let events = ports.local.subscribe(session, self.seen.upto).await;
            return Some((None, events.map_or(Source::Later(AGAIN), Source::Events)));
        }
        let found = match ports.cluster.whereabouts(session).await {
            Ok(found) => found?,
            Err(_) => return Some((None, Source::Later(LOOK))),
        };
        let Some(holder) = found.holder else {
            return Some((None, Source::Nobody));
        };
        if holder.owner == shared.id() {
            // It is being opened here, or was closed just now.
            return Some((Some(holder), Source::Later(AGAIN)));
        }
        if holder.address.is_empty() {
            return Some((Some(holder), Source::Later(LOOK)));
        }
        let listened = ports.wire.listen(&holder, session, self.seen.upto).await;
        let source = match listened {
            Ok(events) => {
                count(&shared.counts.mirrors);
                Source::Events(events)
            }
            Err(_) => Source::Later(AGAIN),
        };
        Some((Some(holder), source))
    }

    /// Passes on the events of one source until it ends or the owner changes. Returns false if nobody reads.
    async fn pass_on(&mut self, mut events: EventStream, owner: Option<&Holder>) -> bool {
        loop {
            tokio::select! {
                () = self.sender.closed() => return false,
                event = events.next() => match event {
                    Some(event) => {
                        if !self.give(event).await {
                            return false;
                        }
                    }
                    None => return true,
                },
                news = self.news.recv() => match news {
                    Ok(News::Moved(session)) if session != self.session => {}
                    Ok(News::Lost) if owner.is_some() => {
                        if !self.tell(LOST).await {
                            return false;
                        }
                    }
                    Ok(News::Lost) => {}
                    Err(broadcast::error::RecvError::Closed) => return false,
                    Ok(News::Moved(_) | News::Again) | Err(broadcast::error::RecvError::Lagged(_)) => {
                        if self.has_moved(owner).await {
                            return true;
                        }
                    }
                },
            }
        }
    }

    /// Returns true if another owner has the session now. A local one tells by the end of its events.
    async fn has_moved(&self, owner: Option<&Holder>) -> bool {
        let Some(owner) = owner else { return false };
        match self.shared.ports.cluster.whereabouts(&self.session).await {
            Ok(Some(found)) => found.holder.is_none_or(|holder| holder.owner != owner.owner),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Waits for news of the session. Returns false if nobody reads.
    async fn hear(&mut self, limit: Option<Duration>) -> bool {
        let clock = Arc::clone(&self.shared.ports.clock);
        let limit = async {
            match limit {
                Some(limit) => clock.sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(limit);
        loop {
            tokio::select! {
                () = self.sender.closed() => return false,
                () = &mut limit => return true,
                news = self.news.recv() => match news {
                    Ok(News::Moved(session)) if session != self.session => {}
                    Ok(News::Lost) => {}
                    Err(broadcast::error::RecvError::Closed) => return false,
                    Ok(News::Moved(_) | News::Again) | Err(broadcast::error::RecvError::Lagged(_)) => return true,
                },
            }
        }
    }

    /// Passes on what the store has. Returns false if nobody reads.
    async fn catch_up(&mut self) -> bool {
        loop {
            let after = self.seen.upto;
            let page = self.shared.ports.store.entries(&self.session, after, PAGE).await;
            let page = match page {
                Ok(page) => page,
                Err(LogError::Unknown(_)) => return false,
                Err(_) => return true,
            };
            let is_last = page.len() < PAGE;
            for entry in page {
                let event = Envelope {
                    v: EVENT_VERSION,
                    session: self.session.clone(),
                    seq: entry.seq,
                    event: entry.event,
                };
                if !self.give(event).await {
                    return false;
                }
            }
            if is_last || self.seen.upto == after {
                return true;
            }
        }
    }

    async fn give(&mut self, event: Envelope) -> bool {
        if !event.event.is_live() && !self.seen.is_new(event.seq) {
            return true;
        }
        self.sender.send(event).await.is_ok()
    }

    async fn tell(&mut self, text: &str) -> bool {
        let event = Envelope {
            v: EVENT_VERSION,
            session: self.session.clone(),
            seq: self.seen.upto,
            event: Event::Status {
                text: text.to_owned(),
            },
        };
        self.sender.send(event).await.is_ok()
    }
}

/// Returns the events of one turn: from its own message on, if there is one, up to the end.
pub(crate) fn turn(events: EventStream, message: Option<MessageId>) -> EventStream {
    let state = (events, message, false);
    EventStream::new(stream::unfold(
        state,
        async |(mut events, mut message, is_over)| {
            if is_over {
                return None;
            }
            loop {
                let envelope = events.next().await?;
                if let (Some(own), Event::Message { message: said }) = (&message, &envelope.event)
                    && said.id == *own
                {
                    message = None;
                }
                if message.is_none() {
                    let is_over = envelope.event.is_terminal();
                    return Some((envelope, (events, message, is_over)));
                }
            }
        },
    ))
}
