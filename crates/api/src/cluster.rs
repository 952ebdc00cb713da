//! Sessions of one server of a cluster.

use crate::{CallId, ClientError, Event, SessionId, Timestamp, UserReply};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// A request to stop a turn, in an inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelPost {
    /// Number of the last entry when it was sent. A turn that ended later was the one meant.
    pub after: u64,
}

/// A question of a sub-agent to those who follow the session at the top of its tree, on another server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildQuestion {
    /// The sub-agent.
    pub child: SessionId,
    /// Its call that waits.
    pub call: CallId,
    /// The same call within the whole tree.
    pub shown: CallId,
    /// The request or question, as the session at the top shows it.
    pub event: Event,
}

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

    /// Tells an open session that a sub-agent of it has ended on some server: a running turn takes the result between two
    /// iterations, and an idle session continues if the sub-agent was to wake it. Returns true if nothing else is
    /// to be done; otherwise the caller tells it again later.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn child_done(&self, session: &SessionId, child: &SessionId) -> Result<bool, ClientError>;

    /// Shows a question of a sub-agent on another server in an open session, and waits for the reply. `None` if the question
    /// was withdrawn first, which the future tells.
    ///
    /// # Errors
    /// When the session is closed meanwhile.
    async fn child_asks(
        &self,
        session: &SessionId,
        question: ChildQuestion,
        withdrawn: BoxFuture<'_, ()>,
    ) -> Result<Option<UserReply>, ClientError>;
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
