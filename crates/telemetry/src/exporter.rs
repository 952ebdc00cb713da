//! Live export: a task beside the sessions of a process. Turns never wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender as NoteSender, channel};
use tokio::task::JoinHandle;
use windlass_core::clock::Clock;
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{LogError, Store};

use crate::collect::{Collected, Collector};
use crate::config::ExportConfig;
use crate::derive::Redact;
use crate::metrics::{Metrics, prometheus};
use crate::sender::Sender;
use crate::span::{SpanContext, TraceSpan};

/// Maximum number of notes that wait. One that does not fit is no loss: spans are read from the store, and the
/// next note of the session, or the end, catches up.
const NOTES: usize = 256;
/// Delays before the record of an ended turn is read again; its last entry is stored at about the same time.
const DELAYS_MS: [u64; 9] = [0, 2, 5, 10, 20, 50, 100, 300, 1000];
/// Maximum time that the end of the program waits for the export.
pub const LAST_EXPORT: Duration = Duration::from_secs(2);

/// Ports and settings of the export.
#[derive(Clone)]
pub struct TelemetryParts {
    /// Store of the sessions.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Destination and extent.
    pub config: Arc<ExportConfig>,
    /// The span that started this process.
    pub outside: Option<SpanContext>,
    /// Masks keys in texts.
    pub redact: Redact,
}

/// Telemetry of all sessions of a process.
pub struct Telemetry {
    parts: TelemetryParts,
    metrics: Arc<Mutex<Metrics>>,
    notes: Mutex<Option<NoteSender<Note>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

enum Note {
    /// A session was opened; its last entry had this number.
    Opened(SessionId, u64),
    /// A turn of a session ended.
    Ended(SessionId),
}

impl Telemetry {
    /// Starts the task that exports. Without a destination, it only counts metrics.
    pub fn start(parts: TelemetryParts) -> Arc<Self> {
        let (notes, inbox) = channel(NOTES);
        let metrics = Metrics::new(parts.clock.now(), parts.config.has_new_names);
        let metrics = Arc::new(Mutex::new(metrics));
        let exporter = Exporter {
            parts: parts.clone(),
            metrics: Arc::clone(&metrics),
            exported: HashMap::new(),
            sender: None,
        };
        Arc::new(Self {
            parts,
            metrics,
            notes: Mutex::new(Some(notes)),
            task: Mutex::new(Some(tokio::spawn(exporter.run(inbox)))),
        })
    }

    /// Notes that a session was opened, with the number of its last entry. Never waits.
    pub fn opened(&self, session: &SessionId, last_seq: u64) {
        self.note(Note::Opened(session.clone(), last_seq));
    }

    /// Notes that a turn of a session ended. Never waits.
    pub fn turn_ended(&self, session: &SessionId) {
        self.note(Note::Ended(session.clone()));
    }

    /// Returns the `traceparent` for the commands of a turn: its span.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub async fn traceparent(&self, session: &SessionId, turn: &MessageId) -> Result<String, LogError> {
        let collector = self.parts.collector();
        let context = collector.turn(session, turn, self.parts.outside).await?;
        Ok(context.to_string())
    }

    /// Returns the metrics so far, in the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        let metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        prometheus(&metrics.snapshot(self.parts.clock.now()))
    }

    /// Exports the rest, for at most [`LAST_EXPORT`]. Later notes are ignored.
    pub async fn close(&self) {
        drop(self.notes.lock().unwrap_or_else(PoisonError::into_inner).take());
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut task) = task else { return };
        tokio::select! {
            _ = &mut task => {}
            () = self.parts.clock.sleep(LAST_EXPORT) => {
                tracing::warn!("the last spans were not exported: the collector does not answer");
                task.abort();
            }
        }
    }

    fn note(&self, note: Note) {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notes) = &*notes {
            let _ = notes.try_send(note);
        }
    }
}

impl TelemetryParts {
    fn collector(&self) -> Collector<'_> {
        Collector {
            store: &*self.store,
            content: self.config.content,
            redact: self.redact,
        }
    }
}

/// The task.
struct Exporter {
    parts: TelemetryParts,
    metrics: Arc<Mutex<Metrics>>,
    /// Number of the last exported entry of each session.
    exported: HashMap<SessionId, u64>,
    /// Created with the first request.
    sender: Option<Sender>,
}

impl Exporter {
    async fn run(mut self, mut inbox: Receiver<Note>) {
        while let Some(note) = inbox.recv().await {
            match note {
                Note::Opened(session, last_seq) => {
                    self.exported.entry(session).or_insert(last_seq);
                }
                Note::Ended(session) => {
                    let spans = self.turn(&session).await;
                    self.send(&spans, inbox.is_empty()).await;
                }
            }
        }
        // Turns that ended without a note.
        let sessions: Vec<SessionId> = self.exported.keys().cloned().collect();
        let mut rest = Vec::new();
        for session in sessions {
            rest.extend(self.collect(&session).await.unwrap_or_default());
        }
        self.send(&rest, true).await;
    }

    /// Returns the spans of the turn that just ended, as soon as its end is stored.
    async fn turn(&mut self, session: &SessionId) -> Vec<TraceSpan> {
        for delay in DELAYS_MS {
            if delay > 0 {
                self.parts.clock.sleep(Duration::from_millis(delay)).await;
            }
            match self.collect(session).await {
                Ok(spans) if spans.is_empty() => {}
                Ok(spans) => return spans,
                Err(error) => {
                    tracing::warn!(%session, %error, "spans cannot be read");
                    return Vec::new();
                }
            }
        }
        Vec::new()
    }

    async fn collect(&mut self, session: &SessionId) -> Result<Vec<TraceSpan>, LogError> {
        let known = self.exported.get(session).copied();
        let collector = self.parts.collector();
        let Collected { mut turns, last_seq } = collector
            .session(session, known.unwrap_or(0), self.parts.outside)
            .await?;
        if known.is_none() {
            // The note about its opening did not fit: everything but the last turn may be older.
            turns.drain(..turns.len().saturating_sub(1));
        }
        self.exported.insert(session.clone(), last_seq);
        let mut metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        for turn in &turns {
            metrics.turn(turn);
        }
        Ok(turns.into_iter().flatten().collect())
    }

    /// Sends spans, and the metrics if nothing else is due.
    async fn send(&mut self, spans: &[TraceSpan], is_last: bool) {
        if spans.is_empty() || !self.parts.config.is_on() {
            return;
        }
        if self.sender.is_none() {
            let made = Sender::new(Arc::clone(&self.parts.config), Arc::clone(&self.parts.clock));
            match made.await {
                Ok(sender) => self.sender = Some(sender),
                Err(error) => tracing::warn!(%error, "spans are not exported"),
            }
        }
        let Some(sender) = &self.sender else { return };
        let mut sent = sender.traces(spans).await;
        if is_last && sent.is_ok() {
            let snapshot = {
                let metrics = self.metrics.lock().unwrap_or_else(PoisonError::into_inner);
                metrics.snapshot(self.parts.clock.now())
            };
            sent = sender.metrics(&snapshot).await;
        }
        match sent {
            Ok(()) => tracing::debug!(spans = spans.len(), "exported"),
            Err(error) => tracing::warn!(%error, spans = spans.len(), "not exported"),
        }
    }
}
