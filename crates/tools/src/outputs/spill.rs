//! An output that is stored while it is written, in constant memory and without blocking an async thread.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use windlass_core::tool::Kept;

use super::OutputStore;
use windlass_core::text::size;

/// Maximum number of bytes stored of one output.
const MAX_BYTES: usize = 64_000_000;
/// Minimum number of bytes that are written at once.
const BATCH: usize = 128 * 1024;
/// Maximum time for writing a batch; a slower disk gets no more.
const PATIENCE: Duration = Duration::from_secs(2);

/// An output that is being written to a file.
pub(crate) struct Spill {
    store: Arc<OutputStore>,
    state: State,
    pending: Vec<u8>,
    /// Bytes that may still be kept.
    room: usize,
    /// True if the output was longer than what is stored.
    cut: bool,
    /// True if everything so far has reached the file.
    flushed: bool,
    characters: usize,
}

enum State {
    Opening(JoinHandle<io::Result<(String, File)>>),
    Open {
        id: String,
        file: tokio::fs::File,
    },
    /// Nothing more is kept: the disk is full, or hangs.
    Failed,
}

impl Spill {
    /// Creates the file. Must be called inside a Tokio runtime.
    pub(crate) fn begin(store: &Arc<OutputStore>, tool: &str) -> Self {
        let (place, tool) = (Arc::clone(store), tool.to_owned());
        let bytes = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
        Self {
            store: Arc::clone(store),
            state: State::Opening(tokio::task::spawn_blocking(move || {
                place.files.create(&tool, bytes)
            })),
            pending: Vec::new(),
            room: MAX_BYTES,
            cut: false,
            flushed: false,
            characters: 0,
        }
    }

    /// Adds output as it came, and the text that is complete with it. It waits in memory for the next
    /// [`Self::settle`].
    pub(crate) fn push(&mut self, bytes: &[u8], text: &str) {
        self.characters += text.chars().count();
        if self.cut || matches!(self.state, State::Failed) {
            return;
        }
        let (taken, rest) = bytes.split_at(bytes.len().min(self.room));
        self.pending.extend_from_slice(taken);
        self.room -= taken.len();
        if !rest.is_empty() {
            self.cut = true;
            let note = format!(
                "\n[the output was longer; only its first {} are kept]\n",
                size(u64::try_from(MAX_BYTES).unwrap_or(u64::MAX))
            );
            self.pending.extend_from_slice(note.as_bytes());
        }
    }

    /// Writes what waits, if it is worth it. Loses nothing when it is dropped and called again.
    pub(crate) async fn settle(&mut self) {
        if self.pending.len() >= BATCH {
            self.flush(PATIENCE).await;
        }
    }

    /// Writes all that waits, and says where it is. `None` when it could not be kept.
    pub(crate) async fn flush(&mut self, patience: Duration) -> Option<Kept> {
        self.flushed = false;
        match tokio::time::timeout(patience, self.write()).await {
            Ok(Ok(())) => self.flushed = true,
            // A canceled call does not wait, and the disk may still come round; an error is final.
            Err(_) if patience < PATIENCE => self.cut |= !self.pending.is_empty(),
            Ok(Err(_)) | Err(_) => self.give_up(),
        }
        self.kept()
    }

    /// Writes all that waits, and moves the file into the blob store. Returns the reference, or `None` if the
    /// output could not be stored.
    pub(crate) async fn close(mut self, patience: Duration) -> Option<Kept> {
        let kept = self.flush(patience).await?;
        if self.flushed {
            self.store.settle(&kept.id, patience).await;
        }
        Some(kept)
    }

    /// Removes the file, because half an output is no output.
    fn give_up(&mut self) {
        self.pending = Vec::new();
        if let State::Open { id, .. } = std::mem::replace(&mut self.state, State::Failed) {
            let store = Arc::clone(&self.store);
            drop(tokio::task::spawn_blocking(move || store.files.remove(&id)));
        }
    }

    /// Returns the reference, once it is known.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let State::Open { id, .. } = &self.state else {
            return None;
        };
        Some(Kept {
            id: id.clone(),
            characters: self.characters,
            whole: !self.cut,
        })
    }

    async fn write(&mut self) -> io::Result<()> {
        if let State::Opening(opening) = &mut self.state {
            let (id, file) = opening.await.map_err(io::Error::other)??;
            let file = tokio::fs::File::from_std(file);
            self.state = State::Open { id, file };
        }
        let State::Open { file, .. } = &mut self.state else {
            return Ok(());
        };
        while !self.pending.is_empty() {
            let count = file.write(&self.pending).await?;
            self.pending.drain(..count);
        }
        file.flush().await
    }

    /// Removes the file: all of the output was shown.
    pub(crate) async fn discard(mut self) {
        self.pending.clear();
        self.flush(PATIENCE).await;
        self.give_up();
    }
}
