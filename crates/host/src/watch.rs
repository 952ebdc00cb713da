//! Observation of sessions: recordings, telemetry and dumps.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::compact::Subgoals;
use windlass_core::dispatch::CallConfig;
use windlass_core::hook::{Hook, Hooks};
use windlass_core::id::{MessageId, SessionId};
use windlass_service::ExchangeRecorder;

/// Observes the sessions of a run. Must not change what they do.
#[async_trait]
pub trait Observer: Send + Sync {
    /// Returns the hook that follows a session and its turns.
    fn hook(&self, session: &SessionId) -> Arc<dyn Hook>;

    /// Returns environment variables for the commands of the turn that a message starts.
    async fn variables(&self, session: &SessionId, message: &MessageId) -> Vec<(String, String)>;

    /// Takes the subgoals of a session, which change as it continues.
    fn subgoals(&self, session: &SessionId, subgoals: Arc<Subgoals>);

    /// Returns the metrics so far, in the text format of Prometheus.
    fn metrics(&self) -> String;

    /// Ends the observation. Takes a few seconds at most.
    async fn close(&self);
}

/// Everything that observes the sessions of a run.
#[derive(Clone, Default)]
pub struct Watch {
    /// Records the wire traffic.
    pub recorder: Option<Arc<ExchangeRecorder>>,
    /// Follows the sessions.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Watch {
    /// Returns the hooks that follow a session and its turns.
    pub fn hooks(&self, session: &SessionId) -> Hooks {
        let mut hooks = Hooks::new();
        if let Some(observer) = &self.observer {
            hooks.push_shared(observer.hook(session));
        }
        hooks
    }

    /// Adds the variables of the observer to the commands of the turn that a message starts.
    pub async fn turn(&self, session: &SessionId, message: Option<&MessageId>, calls: &mut CallConfig) {
        let (Some(observer), Some(message)) = (&self.observer, message) else {
            return;
        };
        let variables = observer.variables(session, message).await;
        if !variables.is_empty() {
            let mut execution = (*calls.execution).clone();
            execution.env.extend(variables);
            calls.execution = Arc::new(execution);
        }
    }

    /// Passes on the subgoals of a session.
    pub fn subgoals(&self, session: &SessionId, subgoals: Arc<Subgoals>) {
        if let Some(observer) = &self.observer {
            observer.subgoals(session, subgoals);
        }
    }

    /// Returns when everything observed so far is written.
    pub async fn close(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.close().await;
        }
        if let Some(observer) = &self.observer {
            observer.close().await;
        }
    }
}
