//! Inputs of a session that come from its own environment, such as spoken ones.

use async_trait::async_trait;

use crate::ClientError;

/// Way of a session's environment to the session itself.
#[async_trait]
pub trait SessionInputs: Send + Sync {
    /// Submits a text the way a prompt of the user goes: it starts a turn, or waits for the running one. It is never
    /// taken as a command. Must not wait for the turn.
    ///
    /// # Errors
    /// If the queue is full, or the session has ended.
    async fn submit(&self, text: &str) -> Result<(), ClientError>;

    /// Shows a notice to everyone who watches the session, and records it.
    fn tell(&self, notice: String);

    /// Keeps an idle session open. Returns false if it is not, so that whoever has inputs for it should stop.
    fn keep_open(&self) -> bool;
}
