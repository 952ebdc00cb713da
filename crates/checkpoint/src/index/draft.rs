//! Changes to an index that are collected first and then made at once.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use super::format::{self, HEAD, Kind, MAGIC};
use super::{Folder, Index, Known, Names, SLACK};

/// Bytes that are collected before they are written, where writing early is allowed.
const BATCH: usize = 1 << 20;

/// New records of the index. They become visible with [`Index::commit`].
pub(in super::super) struct Draft {
    /// File to write to before the commit.
    early: Option<File>,
    buffer: Vec<u8>,
    /// Changes of which the records are in the buffer: offsets count from its start.
    pending: Vec<Step>,
    done: Vec<Step>,
    /// Bytes written.
    written: u64,
    failure: Option<io::Error>,
}

enum Step {
    Folder(Arc<[u8]>, Known),
    Names(Arc<[u8]>, Names),
    Gone(Arc<[u8]>),
}

/// Use of the state before a change, if the change fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Previous {
    Needed,
    Disposable,
}

/// The part of the workspace that an index describes after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Extent {
    /// The whole workspace.
    Whole,
    /// As much as before.
    Part,
}

impl Draft {
    fn new(early: Option<File>) -> Self {
        Self {
            early,
            buffer: Vec::new(),
            pending: Vec::new(),
            done: Vec::new(),
            written: 0,
            failure: None,
        }
    }

    pub(in super::super) fn folder(&mut self, path: Arc<[u8]>, folder: &Folder) {
        let start = self.buffer.len() + HEAD + path.len();
        format::record(&mut self.buffer, Kind::Folder, &path, |out| {
            format::folder(out, folder);
        });
        let length = self.buffer.len() - start;
        let known = Known::of(folder, start as u64, length as u64);
        self.pending.push(Step::Folder(path, known));
        self.flush_early();
    }

    pub(in super::super) fn names(&mut self, path: Arc<[u8]>, names: Names) {
        format::record(&mut self.buffer, Kind::Names, &path, |out| {
            format::names(out, &names);
        });
        self.pending.push(Step::Names(path, names));
        self.flush_early();
    }

    pub(in super::super) fn gone(&mut self, path: Arc<[u8]>) {
        format::record(&mut self.buffer, Kind::Gone, &path, |_| {});
        self.pending.push(Step::Gone(path));
        self.flush_early();
    }

    /// Returns true if nothing changed.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.done.is_empty()
    }

    fn flush_early(&mut self) {
        if self.buffer.len() < BATCH {
            return;
        }
        if let Some(log) = self.early.take() {
            match self.flush(&log) {
                Ok(()) => self.early = Some(log),
                Err(error) => self.failure = Some(error),
            }
        }
    }

    fn flush(&mut self, mut log: &File) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // One call, so that it lands in one piece even if another process appends to the same file.
        let count = log.write(&self.buffer)?;
        if count < self.buffer.len() {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "the index was not written as a whole",
            ));
        }
        let base = log.stream_position()? - count as u64;
        self.written += count as u64;
        self.buffer.clear();
        for mut step in self.pending.drain(..) {
            if let Step::Folder(_, known) = &mut step {
                known.offset += base;
            }
            self.done.push(step);
        }
        Ok(())
    }
}

impl Index {
    /// Starts a change. If nothing depends on the previous state, the new one is written bit by bit instead of
    /// being held in memory until the commit.
    pub(in super::super) fn draft(&mut self, previous: Previous) -> io::Result<Draft> {
        if self.log.is_none() || self.is_damaged {
            self.rewrite()?;
        }
        Ok(match (previous, &self.log) {
            (Previous::Disposable, Some(log)) => Draft::new(Some(log.try_clone()?)),
            _ => Draft::new(None),
        })
    }

    /// Makes the changes of a draft.
    pub(in super::super) fn commit(&mut self, mut draft: Draft, extent: Extent) -> io::Result<()> {
        if extent == Extent::Whole && !self.is_whole {
            format::record(&mut draft.buffer, Kind::Whole, b"", |_| {});
        }
        if draft.buffer.is_empty() && draft.is_empty() {
            return Ok(());
        }
        let log = self.log.take().ok_or_else(|| self.damaged())?;
        let worn = self.apply(&log, draft);
        self.log = Some(log);
        let worn = worn.inspect_err(|_| self.is_damaged = true)?;
        self.is_whole |= extent == Extent::Whole;
        if !worn.is_empty() {
            let mut draft = Draft::new(None);
            for path in worn {
                if let Some(folder) = self.folder(&path)? {
                    draft.folder(path, &folder);
                }
            }
            return self.commit(draft, Extent::Part);
        }
        if self.is_replaced() {
            // Another process wrote the file anew. The next process must find what this one knows.
            let log = File::options().read(true).append(true).open(&self.file)?;
            self.write_to(log)?;
        }
        Ok(())
    }

    /// Writes the draft and updates what is in memory. Returns the folders that have to be written again as a
    /// whole, because so many of their names changed.
    fn apply(&mut self, log: &File, mut draft: Draft) -> io::Result<Vec<Arc<[u8]>>> {
        if let Some(error) = draft.failure.take() {
            return Err(error);
        }
        draft.flush(log)?;
        self.length += draft.written;
        let mut worn = Vec::new();
        for step in draft.done {
            match step {
                Step::Folder(path, known) => self.set(path, known),
                Step::Gone(path) => self.forget(&path),
                Step::Names(path, names) => {
                    self.change(log, &path, names)?;
                    if self.folders.get(&path).is_some_and(Known::is_worn) {
                        worn.push(path);
                    }
                }
            }
        }
        Ok(worn)
    }

    /// Writes the file anew if most of it is replaced by later records.
    pub(in super::super) fn tidy(&mut self) -> io::Result<()> {
        if self.length > 2 * self.live + SLACK {
            self.rewrite()?;
        }
        Ok(())
    }

    /// Replaces the file by one with everything that is known.
    fn rewrite(&mut self) -> io::Result<()> {
        let parent = self.file.parent().unwrap_or(Path::new("."));
        let mut written = tempfile::Builder::new().append(true).tempfile_in(parent)?;
        written.write_all(MAGIC)?;
        self.write_to(written.as_file().try_clone()?)?;
        written.persist(&self.file).map_err(|error| error.error)?;
        self.is_damaged = false;
        Ok(())
    }

    /// Appends everything that is known to a file, which is used from then on.
    fn write_to(&mut self, log: File) -> io::Result<()> {
        let mut draft = Draft::new(Some(log.try_clone()?));
        let paths: Vec<_> = self.folders.keys().cloned().collect();
        for path in paths {
            if let Some(folder) = self.folder(&path)? {
                draft.folder(path, &folder);
            }
        }
        if self.is_whole {
            format::record(&mut draft.buffer, Kind::Whole, b"", |_| {});
        }
        self.apply(&log, draft)?;
        self.length = log.metadata()?.len();
        self.log = Some(log);
        Ok(())
    }
}
