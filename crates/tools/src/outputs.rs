//! Outputs that are too long to be shown, stored so that `tool_output` can read them.
//!
//! A settled output is a blob of the session's store. While a command runs, its output is a file that grows,
//! and `tool_output` reads that. An output stays a file if there is no blob store or the blob store refuses
//! it; the sessions of earlier builds have only files.

mod files;
mod spill;

use std::fmt;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use windlass_core::clock::Timestamp;
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{BlobLimits, Blobs, LogError};
use windlass_core::tool::Outputs;

use self::files::{OutputFiles, is_reference, reference};
pub(crate) use self::spill::Spill;

/// Maximum number of outputs of all sessions.
const MAX_FILES: usize = 500;
/// Maximum size of the outputs of all sessions.
const MAX_BYTES: u64 = 1_000_000_000;

/// CTX-11: the long outputs of one session, readable only by its user. The oldest outputs of other sessions
/// are removed to make room, never those of this session.
pub struct OutputStore {
    files: Arc<OutputFiles>,
    blobs: Option<SessionBlobs>,
}

/// Blob store of a session.
#[derive(Clone)]
struct SessionBlobs {
    store: Arc<dyn Blobs>,
    session: SessionId,
}

/// A stored output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) bytes: u64,
    time: Timestamp,
}

impl Listed {
    /// Returns the tool, as far as the reference names it.
    pub(crate) fn tool(&self) -> &str {
        self.id
            .rsplit_once('-')
            .map_or(self.id.as_str(), |(tool, _)| tool)
    }
}

impl fmt::Debug for OutputStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputStore")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl OutputStore {
    /// Creates a store that uses its own folder, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            files: Arc::new(OutputFiles::new(folder, MAX_FILES, MAX_BYTES)),
            blobs: None,
        }
    }

    /// Applies the limits for files to all sessions together, whose folders are in `sessions`. Nothing else
    /// may be there.
    #[must_use]
    pub fn sharing(mut self, sessions: PathBuf) -> Self {
        if let Some(files) = Arc::get_mut(&mut self.files) {
            files.shared = Some(sessions);
        }
        self
    }

    /// Replaces the limits of 500 outputs and 1 GB. The output of a command is stored if 64 MB are free.
    #[must_use]
    pub fn bounded(mut self, files: usize, bytes: u64) -> Self {
        if let Some(own) = Arc::get_mut(&mut self.files) {
            (own.max_files, own.max_bytes) = (files, bytes);
        }
        self
    }

    /// Stores settled outputs as blobs of a session. The folder then holds only outputs that are still being
    /// written, and those that the blob store refused.
    #[must_use]
    pub fn in_blobs(mut self, store: Arc<dyn Blobs>, session: SessionId) -> Self {
        self.blobs = Some(SessionBlobs { store, session });
        self
    }

    /// Opens an output. The reader must be used on a blocking thread.
    ///
    /// # Errors
    /// `NotFound` when there is none, or the text is not a reference.
    pub(crate) async fn open(&self, id: &str) -> io::Result<Box<dyn Read + Send>> {
        // The file goes only once its blob is there, so this order misses neither.
        let (files, name) = (Arc::clone(&self.files), id.to_owned());
        match spawn_blocking(move || files.open(&name)).await? {
            Ok(file) => return Ok(Box::new(file)),
            Err(error) if error.kind() != io::ErrorKind::NotFound || !is_reference(id) => return Err(error),
            Err(_) => {}
        }
        let Some(SessionBlobs { store, session }) = self.blobs.clone() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let attached = store.attachments(&session).await.map_err(io::Error::other)?;
        let found = attached.into_iter().find(|attachment| attachment.name == id);
        Ok(Box::new(BlobReader {
            store,
            address: found.ok_or(io::ErrorKind::NotFound)?.address,
            offset: 0,
            runtime: Handle::current(),
        }))
    }

    /// Returns the outputs of this session, newest first.
    pub(crate) async fn list(&self) -> Vec<Listed> {
        let files = Arc::clone(&self.files);
        let mut listed = spawn_blocking(move || files.list()).await.unwrap_or_default();
        if let Some(SessionBlobs { store, session }) = &self.blobs {
            // The list only helps to correct a mistake, so an error means a shorter list.
            let attached = store.attachments(session).await.unwrap_or_default();
            listed.extend(attached.into_iter().map(|attachment| Listed {
                id: attachment.name,
                bytes: attachment.bytes,
                time: attachment.time,
            }));
        }
        listed.sort_by_key(|one| std::cmp::Reverse(one.time));
        listed
    }

    /// Moves a file that is complete into the blob store, and waits for that at most `patience`. The file
    /// stays if that fails.
    async fn settle(&self, id: &str, patience: Duration) {
        let Some(blobs) = self.blobs.clone() else { return };
        let (files, id, limits) = (Arc::clone(&self.files), id.to_owned(), self.limits());
        let moving = tokio::spawn(async move {
            let (from, name) = (Arc::clone(&files), id.clone());
            let Ok(Ok(file)) = spawn_blocking(move || from.open(&name)).await else {
                return;
            };
            if blobs.attach(&id, Box::new(file), limits).await.is_ok() {
                let _ = spawn_blocking(move || files.remove(&id)).await;
            }
        });
        // The task continues after the timeout, and the file can be read until it ends.
        let _ = tokio::time::timeout(patience, moving).await;
    }

    fn limits(&self) -> BlobLimits {
        BlobLimits {
            count: u64::try_from(self.files.max_files).unwrap_or(u64::MAX),
            bytes: self.files.max_bytes,
        }
    }
}

impl SessionBlobs {
    async fn attach(
        &self,
        id: &str,
        content: Box<dyn Read + Send>,
        limits: BlobLimits,
    ) -> Result<(), LogError> {
        let attached = self.store.attach(&self.session, id, content, limits).await;
        attached.map(drop)
    }
}

#[async_trait]
impl Outputs for OutputStore {
    // A disk that refuses must not cost the call its result, so no error is reported: only the rest of the
    // output cannot be read.
    async fn keep(&self, _call: &CallId, tool: &str, content: &str) -> Option<String> {
        if let Some(blobs) = &self.blobs {
            let id = reference(tool);
            let bytes = Cursor::new(content.as_bytes().to_vec());
            match blobs.attach(&id, Box::new(bytes), self.limits()).await {
                Ok(()) => return Some(id),
                Err(LogError::Full(_)) => return None,
                Err(_) => {}
            }
        }
        let (files, tool, content) = (Arc::clone(&self.files), tool.to_owned(), content.to_owned());
        let written = spawn_blocking(move || files.write(&tool, &content)).await;
        written.ok()?.ok()
    }
}

/// Reads a blob piece by piece. Blocks the thread.
struct BlobReader {
    store: Arc<dyn Blobs>,
    address: String,
    offset: u64,
    runtime: Handle,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let reading = self.store.read_at(&self.address, self.offset, buffer.len());
        let piece = self.runtime.block_on(reading).map_err(io::Error::other)?;
        let piece = piece.ok_or(io::ErrorKind::NotFound)?;
        let count = piece.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(&piece) {
            *to = *from;
        }
        self.offset += u64::try_from(count).unwrap_or_default();
        Ok(count)
    }
}
