//! OBS-2: records the HTTP exchanges with models, so that a session can be replayed without them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use windlass_api::SessionId;
use windlass_core::log::{Exchange, Frame, NewExchange, Recorder, Store};
use windlass_core::provider::Prefix;

/// Recorder for all sessions of a process. One task writes the exchanges in order; nothing waits for it.
pub struct ExchangeRecorder {
    notes: Mutex<Option<UnboundedSender<Note>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

enum Note {
    /// From now on, the turns of a session have this frame.
    Frame(SessionId, Box<Frame>),
    Exchange(SessionId, Box<Exchange>),
}

/// Last exchange of a session.
#[derive(Default)]
struct Recent {
    /// Digest of the frame in the store.
    frame: Option<String>,
    /// A frame that is not in the store. It is written with the first exchange, because before that it would only
    /// delay the request.
    next: Option<Box<Frame>>,
    /// Digest of its request; `None` if it is not in the store.
    digest: Option<String>,
}

impl ExchangeRecorder {
    /// Creates a recorder that writes to a store. `limit` is the maximum number of bytes per session.
    pub fn new(store: Arc<dyn Store>, limit: u64) -> Arc<Self> {
        let (notes, inbox) = unbounded_channel();
        Arc::new(Self {
            notes: Mutex::new(Some(notes)),
            task: Mutex::new(Some(tokio::spawn(write(store, limit, inbox)))),
        })
    }

    /// Sets the frame of the next turns of a session.
    pub fn frame(&self, session: &SessionId, prefix: &Prefix, max_output: Option<u64>) {
        let frame = Frame {
            system: prefix.system.clone(),
            tools: prefix.tools.clone(),
            max_output,
        };
        self.note(Note::Frame(session.clone(), Box::new(frame)));
    }

    /// Returns when everything so far is written; later exchanges are not recorded.
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

impl Recorder for ExchangeRecorder {
    fn keep(&self, session: &SessionId, exchange: Exchange) {
        self.note(Note::Exchange(session.clone(), Box::new(exchange)));
    }
}

async fn write(store: Arc<dyn Store>, limit: u64, mut inbox: UnboundedReceiver<Note>) {
    let mut sessions: HashMap<SessionId, Recent> = HashMap::new();
    while let Some(note) = inbox.recv().await {
        match note {
            Note::Frame(session, frame) => {
                sessions.entry(session).or_default().next = Some(frame);
            }
            Note::Exchange(session, mut exchange) => {
                let recent = sessions.entry(session.clone()).or_default();
                if let Some(frame) = recent.next.take() {
                    recent.frame = store.keep_frame(&frame).await.ok();
                }
                exchange.frame.clone_from(&recent.frame);
                let digest = exchange.digest.clone();
                let shared = shared(&exchange, recent.digest.as_deref());
                exchange.request = exchange.request.slice(shared..);
                let new = NewExchange {
                    exchange: *exchange,
                    shared: shared as u64,
                };
                // A later exchange can build only on one that is in the store.
                let kept = store.keep_exchange(&session, new, limit).await;
                recent.digest = matches!(kept, Ok(true)).then_some(digest);
            }
        }
    }
}

/// Returns the number of leading bytes of a request that need not be written, because the previous one has
/// them.
fn shared(exchange: &Exchange, last: Option<&str>) -> usize {
    let whole = exchange.request.len();
    match &exchange.before {
        // The same request, sent again.
        _ if last == Some(exchange.digest.as_str()) => whole,
        Some((before, same)) if last == Some(before.as_str()) => {
            usize::try_from(*same).unwrap_or(0).min(whole)
        }
        _ => 0,
    }
}
