//! Adds rows to the audit log. Rows that are added at the same time are written together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::digest;
use tokio::sync::oneshot;
use windlass_core::clock::Clock;
use windlass_core::log::{AuditRecord, LogError, Store};

/// Returns the hash of a row.
pub fn row_hash(number: u64, previous: &str, content: &str) -> String {
    hex(format!("{number}\n{previous}\n{content}").as_bytes())
}

/// Returns the SHA-256 of bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything that an [`Auditor`] needs from the program.
#[derive(Clone)]
pub struct AuditorPorts {
    /// Keeps the rows.
    pub store: Arc<dyn Store>,
    /// Time of the rows.
    pub clock: Arc<dyn Clock>,
    /// Name of this process.
    pub server: String,
    /// Masks keys and tokens in a text.
    pub mask: fn(&str) -> String,
}

type Waiting = (AuditRecord, oneshot::Sender<Result<(), LogError>>);

/// Adds rows to the audit log.
#[derive(Clone)]
pub struct Auditor(Arc<Inner>);

struct Inner {
    ports: AuditorPorts,
    waiting: Mutex<Vec<Waiting>>,
    writing: tokio::sync::Mutex<()>,
}

impl Auditor {
    /// Creates an auditor.
    pub fn new(ports: AuditorPorts) -> Self {
        Self(Arc::new(Inner {
            ports,
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }))
    }

    /// Adds a row, with the time and the name of this process, and returns once it would survive a power cut. Texts in
    /// its details are masked.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn record(&self, record: AuditRecord) -> Result<(), LogError> {
        let (tell, told) = oneshot::channel();
        let mut record = AuditRecord {
            time: self.0.ports.clock.now(),
            server: self.0.ports.server.clone(),
            ..record
        };
        for value in record.detail.values_mut() {
            masked(value, self.0.ports.mask);
        }
        lock(&self.0.waiting).push((record, tell));
        let inner = Arc::clone(&self.0);
        // Not ended with the caller, who may write for others.
        tokio::spawn(async move { inner.write().await });
        let gone = |_| LogError::Failed("the audit log has stopped".to_owned());
        told.await.map_err(gone)?
    }
}

impl Inner {
    async fn write(&self) {
        let _one_at_a_time = self.writing.lock().await;
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        if waiting.is_empty() {
            return;
        }
        let (records, tells): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        let written = self.ports.store.audit(records, row_hash).await;
        for tell in tells {
            let _ = tell.send(written.clone());
        }
    }
}

/// Masks keys and tokens in a value.
fn masked(value: &mut serde_json::Value, mask: fn(&str) -> String) {
    match value {
        serde_json::Value::String(text) => *text = mask(text),
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| masked(value, mask)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|value| masked(value, mask)),
        _ => {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
