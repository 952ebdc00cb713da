//! The record of a simulated session, its clock, and its open items.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use windlass_api::{Event, Message};
use windlass_core::clock::{Clock, Timestamp};
use windlass_core::compact::OpenFacts;
use windlass_core::event::{EventSink, SinkError};
use windlass_core::log::Entry;

use windlass_core::log::recall;

/// Stores entries in memory.
#[derive(Debug, Default)]
pub(super) struct Log(Mutex<Vec<Entry>>);

impl Log {
    pub(super) fn message(&self, message: &Arc<Message>) {
        let event = Event::Message {
            message: Arc::clone(message),
        };
        self.put(event);
    }

    /// Returns the answer of `recall` to a search for a text.
    pub(super) fn recall(&self, reference: &str, grep: &str) -> Option<String> {
        recall::read_back(&self.entries(), reference, grep)
    }

    /// Returns all content behind a reference.
    pub(super) fn whole(&self, reference: &str) -> Option<String> {
        recall::find(&self.entries(), reference)
    }

    fn put(&self, event: Event) {
        let mut entries = self.entries();
        let seq = entries.len() as u64 + 1;
        entries.push(Entry {
            seq,
            time: Timestamp::default(),
            event,
        });
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl EventSink for Log {
    fn live(&self, _: Event) {}

    async fn record(&self, event: Event) -> Result<(), SinkError> {
        self.put(event);
        Ok(())
    }
}

/// Clock that shows the time of the latest message. Nothing ever times out.
#[derive(Debug, Default)]
pub(super) struct Then(AtomicU64);

impl Then {
    pub(super) fn set(&self, time: Timestamp) {
        self.0.store(time.0, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for Then {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now().0)
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

/// The todo list as of the last `todo` call.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<Option<String>>);

impl Open {
    pub(super) fn see(&self, message: &Message) {
        for call in message.calls().filter(|call| call.name == "todo") {
            let list = Some(call.input.clone());
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = list;
        }
    }
}

impl OpenFacts for Open {
    fn facts(&self) -> Vec<(String, String)> {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        list.into_iter().map(|list| ("todos".to_owned(), list)).collect()
    }
}
