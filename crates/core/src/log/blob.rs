//! Contents too large for the log: stored by their digest, attached to sessions by name.

use std::io::Read;

use async_trait::async_trait;

use super::LogError;
use crate::clock::Timestamp;
use crate::id::SessionId;

/// A content attached to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Name of the attachment, unique in its session.
    pub name: String,
    /// Digest of the content, which [`Blobs::read_at`] takes.
    pub address: String,
    /// Size of the content.
    pub bytes: u64,
    /// Time at which the content was attached.
    pub time: Timestamp,
}

/// Limits for the attachments of all sessions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobLimits {
    /// Maximum number of attachments.
    pub count: u64,
    /// Maximum size of all attachments.
    pub bytes: u64,
}

/// Stores contents by their digest. Equal contents are stored once.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Reads a content to its end, stores it, and attaches it to a session. Must not load all of it into
    /// memory. Removes the oldest attachments of other sessions if the limits require it, never those of this
    /// session. Attachments are deleted with their session.
    ///
    /// # Errors
    /// [`LogError::Unknown`] when there is no such session, [`LogError::Full`] when the limits leave no room,
    /// or the cause when the content cannot be read or written, or the name is taken. Then nothing was
    /// attached.
    async fn attach(
        &self,
        session: &SessionId,
        name: &str,
        content: Box<dyn Read + Send>,
        limits: BlobLimits,
    ) -> Result<Attachment, LogError>;

    /// Returns the attachments of a session, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn attachments(&self, session: &SessionId) -> Result<Vec<Attachment>, LogError>;

    /// Reads at most `limit` bytes of a content from `offset` on, fewer only at its end. The digest is not
    /// checked. Returns `None` if there is no such content.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn read_at(&self, address: &str, offset: u64, limit: usize) -> Result<Option<Vec<u8>>, LogError>;

    /// Reads a whole content and checks it against its digest. Returns `None` if there is no such content.
    ///
    /// # Errors
    /// When the store cannot be read, or the content is damaged.
    async fn content(&self, address: &str) -> Result<Option<Vec<u8>>, LogError>;
}
