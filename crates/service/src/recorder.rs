//! OBS-2: keeps what goes over the wire between us and models, so that a session can be driven again without them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use windlass_api::SessionId;
use windlass_core::log::{Exchange, Frame, NewExchange, Store, Tape};
use windlass_core::provider::Prefix;

/// The tape of all sessions of a process. What it is told is written in order by one task; nobody waits for it.
pub struct Recorder {
    notes: Mutex<Option<UnboundedSender<Note>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

enum Note {
    /// The turns of a session have this before their messages from now on.
    Frame(SessionId, Box<Frame>),
    Exchange(SessionId, Box<Exchange>),
}

/// What is known of a session's last exchange.
#[derive(Default)]
struct Recent {
    frame: Option<String>,
    request: Bytes,
}

impl Recorder {
    /// A recorder into a store. `limit` is the most bytes it keeps of a session.
    pub fn new(store: Arc<dyn Store>, limit: u64) -> Arc<Self> {
        let (notes, inbox) = unbounded_channel();
        Arc::new(Self {
            notes: Mutex::new(Some(notes)),
            task: Mutex::new(Some(tokio::spawn(write(store, limit, inbox)))),
        })
    }

    /// The next turns of a session have this before their messages.
    pub fn frame(&self, session: &SessionId, prefix: &Prefix, max_output: Option<u64>) {
        let frame = Frame {
            system: prefix.system.clone(),
            tools: prefix.tools.clone(),
            max_output,
        };
        self.note(Note::Frame(session.clone(), Box::new(frame)));
    }

    /// Returns when everything so far is written; nothing is kept after that.
    pub async fn close(&self) {
        drop(self.notes.lock().unwrap_or_else(PoisonError::into_inner).take());
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }

    fn note(&self, note: Note) {
        if let Some(notes) = &*self.notes.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = notes.send(note);
        }
    }
}

impl Tape for Recorder {
    fn keep(&self, session: &SessionId, exchange: Exchange) {
        self.note(Note::Exchange(session.clone(), Box::new(exchange)));
    }
}

async fn write(store: Arc<dyn Store>, limit: u64, mut inbox: UnboundedReceiver<Note>) {
    let mut sessions: HashMap<SessionId, Recent> = HashMap::new();
    while let Some(note) = inbox.recv().await {
        match note {
            Note::Frame(session, frame) => {
                let digest = store.keep_frame(&frame).await.ok();
                sessions.entry(session).or_default().frame = digest;
            }
            Note::Exchange(session, mut exchange) => {
                let recent = sessions.entry(session.clone()).or_default();
                exchange.frame.clone_from(&recent.frame);
                let whole = exchange.request.clone();
                let shared = common(&recent.request, &whole);
                exchange.request = whole.slice(shared..);
                let new = NewExchange {
                    exchange: *exchange,
                    shared: shared as u64,
                };
                // A recording with a hole would be read wrongly, so the next one does not build on this.
                let kept = store.keep_exchange(&session, new, limit).await;
                recent.request = if matches!(kept, Ok(true)) {
                    whole
                } else {
                    Bytes::new()
                };
            }
        }
    }
}

/// How many bytes two requests have in common from their beginning.
fn common(before: &[u8], after: &[u8]) -> usize {
    const STEP: usize = 1 << 12;
    let mut same = 0;
    // Whole blocks first: comparing those is as fast as memory is.
    for (old, new) in before.chunks(STEP).zip(after.chunks(STEP)) {
        if old != new {
            let differs = |(old, new): &(&u8, &u8)| old == new;
            return same + old.iter().zip(new).take_while(differs).count();
        }
        same += new.len();
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBS-2: what two requests have in common is found to the byte.
    #[test]
    fn common_beginnings() {
        let long = vec![7; 10_000];
        let mut other = long.clone();
        other[9_000] = 8;
        let mut longer = long.clone();
        longer.push(1);
        for (before, after, same) in [
            (&b""[..], &b"abc"[..], 0),
            (b"abd", b"abc", 2),
            (b"abc", b"abc", 3),
            (b"abcd", b"abc", 3),
            (&long, &other, 9_000),
            (&long, &longer, 10_000),
            (&longer, &long, 10_000),
        ] {
            assert_eq!(common(before, after), same);
        }
    }
}
