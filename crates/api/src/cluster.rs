//! Sessions of one server of a cluster.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{ClientError, SessionId, Timestamp};

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

/// A folder of a session that was rebuilt on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderMade {
    /// Its real path.
    pub folder: String,
    /// Number of files.
    pub files: u64,
    /// Time of the state that it was rebuilt from.
    pub as_of: Timestamp,
    /// Tool of the last call before that.
    pub after: Option<String>,
    /// Parts that were not restored, one line each.
    pub left: Vec<String>,
    /// False if it was there already, with the same files.
    pub is_new: bool,
}

/// Folders of sessions on this machine, as the cluster moves them.
#[async_trait]
pub trait SessionFolders: Send + Sync {
    /// Stores the folder of a session that is open here as it is now, so that another server can rebuild it.
    ///
    /// # Errors
    /// When it cannot be read or stored.
    async fn save(&self, session: &SessionId) -> Result<(), ClientError>;

    /// Rebuilds the folder of a session from the store. Never changes a file that is there.
    ///
    /// # Errors
    /// When there is something at the path, or the store has no complete state. Then nothing was changed.
    async fn rebuild(&self, session: &SessionId, folder: &str) -> Result<FolderMade, ClientError>;

    /// Removes a folder that was rebuilt, because the session stays where it was.
    async fn discard(&self, session: &SessionId, made: &FolderMade);
}
