//! Sessions of one server of a cluster.

use async_trait::async_trait;

use crate::{ClientError, SessionId};

/// The sessions that a process has open, as the cluster controls them.
#[async_trait]
pub trait LocalSessions: Send + Sync {
    /// Returns the sessions that are open here, each with true if a call of a tool runs in it.
    fn open_here(&self) -> Vec<(SessionId, bool)>;

    /// Returns true if a session is open here.
    fn is_open(&self, session: &SessionId) -> bool;

    /// Opens a session of this server. Work that its last owner dropped continues.
    ///
    /// # Errors
    /// When it cannot be opened; its lease is then given back.
    async fn take_over(&self, session: &SessionId) -> Result<(), ClientError>;

    /// Stops working in a session at once, and writes nothing more: its turn and its commands end, and its streams end with
    /// this status. Waits until the session is closed.
    async fn let_go(&self, session: &SessionId, why: &str);
}
