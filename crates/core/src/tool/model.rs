//! Access to the session's model for running calls.

use std::sync::{Arc, Mutex, PoisonError};

use crate::event::Event;
use crate::provider::Provider;

/// Start of the purpose of a request that a server of tools made.
pub const SAMPLING: &str = "sampling-";

/// The model of a turn, for calls that need an answer of it. The turn records what they spend, and its limits count it.
/// The default is no model.
#[derive(Clone, Default)]
pub struct CallModel(Option<Arc<(Arc<dyn Provider>, Mutex<Vec<Event>>)>>);

impl CallModel {
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Self {
        Self(Some(Arc::new((provider, Mutex::default()))))
    }

    /// Returns the model; `None` if the call has none.
    pub fn provider(&self) -> Option<&Arc<dyn Provider>> {
        self.0.as_ref().map(|turn| &turn.0)
    }

    /// Returns true if both belong to the same turn.
    pub fn is_of_turn(&self, other: &Self) -> bool {
        let both = self.0.as_ref().zip(other.0.as_ref());
        both.is_some_and(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Passes the usage of a request to the turn.
    pub fn book(&self, usage: Event) {
        if let Some(turn) = &self.0 {
            turn.1.lock().unwrap_or_else(PoisonError::into_inner).push(usage);
        }
    }

    /// Takes the usage since the last time.
    pub(crate) fn take_usage(&self) -> Vec<Event> {
        let take =
            |of: &Mutex<Vec<Event>>| std::mem::take(&mut *of.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.as_ref().map(|turn| take(&turn.1)).unwrap_or_default()
    }
}
