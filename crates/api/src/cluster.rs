//! Sessions of one server of a cluster.

use async_trait::async_trait;

use crate::{ClientError, EventStream, SessionId};

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

    /// Follows a session that is open here, for another server: state events come once they are stored, because the next
    /// owner would give the numbers of others to events of its own.
    ///
    /// # Errors
    /// When it is not open.
    async fn follow(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError>;

    /// Stops working in a session at once, and writes nothing more: its turn and its commands end, and its streams end with
    /// this status. Waits until the session is closed.
    async fn let_go(&self, session: &SessionId, why: &str);
}
