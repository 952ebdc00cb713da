//! Access to the session's model for running calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::Event;
use crate::provider::Provider;

/// Start of the purpose of a request that a server of tools made.
pub const SAMPLING: &str = "sampling-";

/// The model of a turn, for calls that need an answer of it. The turn records what they spend, and its limits count it.
/// The default is no model.
#[derive(Clone, Default)]
pub struct CallModel(Option<Arc<TurnModel>>);

/// The model of one turn, and what calls have spent on it since the turn looked last.
struct TurnModel {
    provider: Arc<dyn Provider>,
    usage: Mutex<Vec<Event>>,
}

impl TurnModel {
    fn usage(&self) -> MutexGuard<'_, Vec<Event>> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallModel {
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Self {
        let usage = Mutex::default();
        Self(Some(Arc::new(TurnModel { provider, usage })))
    }

    /// Returns the model; `None` if the call has none.
    pub fn provider(&self) -> Option<&Arc<dyn Provider>> {
        self.0.as_ref().map(|turn| &turn.provider)
    }

    /// Returns true if both belong to the same turn.
    pub fn is_of_turn(&self, other: &Self) -> bool {
        matches!((&self.0, &other.0), (Some(own), Some(other)) if Arc::ptr_eq(own, other))
    }

    /// Passes the usage of a request to the turn.
    pub fn book(&self, usage: Event) {
        if let Some(turn) = &self.0 {
            turn.usage().push(usage);
        }
    }

    /// Takes the usage since the last time.
    pub(crate) fn take_usage(&self) -> Vec<Event> {
        let Some(turn) = &self.0 else { return Vec::new() };
        std::mem::take(&mut *turn.usage())
    }
}
