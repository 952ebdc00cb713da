//! Outputs that are too long to be shown, kept as files that `tool_output` reads.

mod spill;

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use uuid::Uuid;
use windlass_core::id::CallId;
use windlass_core::tool::Outputs;

pub(crate) use self::spill::Spill;

/// The most a store holds.
const MAX_FILES: usize = 500;
const MAX_BYTES: u64 = 1_000_000_000;
/// How much of a tool's name is in a reference.
const MAX_NAME: usize = 24;
const MAX_ID: usize = 64;
/// What files have as their name until they are whole.
const UNFINISHED: &str = ".unfinished-";
/// Random signs of a reference, and how often another one is tried when it is taken.
const RANDOM_SIGNS: usize = 6;
const TRIES: usize = 8;

/// CTX-11: the outputs of one session, each a file that only its user can read. The folder is made when the first is
/// kept. What does not fit any more makes room by removing the oldest of other sessions; its own are never removed.
#[derive(Debug)]
pub struct OutputStore {
    folder: PathBuf,
    /// The folder that holds those of all sessions, if they share their bounds.
    shared: Option<PathBuf>,
    max_files: usize,
    max_bytes: u64,
    /// What was kept through this store.
    own: Mutex<HashSet<PathBuf>>,
}

/// An output that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) bytes: u64,
}

impl Listed {
    /// The tool, as far as the reference says.
    pub(crate) fn tool(&self) -> &str {
        self.id
            .rsplit_once('-')
            .map_or(self.id.as_str(), |(tool, _)| tool)
    }
}

impl OutputStore {
    /// A store in a folder of its own, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            shared: None,
            max_files: MAX_FILES,
            max_bytes: MAX_BYTES,
            own: Mutex::default(),
        }
    }

    /// The same with bounds for all sessions together, whose folders are in `sessions`. Nothing else may be there.
    #[must_use]
    pub fn sharing(mut self, sessions: PathBuf) -> Self {
        self.shared = Some(sessions);
        self
    }

    /// The same with other bounds than 500 files and 1 GB. The output of a command is kept when 64 MB are free.
    #[must_use]
    pub fn bounded(mut self, files: usize, bytes: u64) -> Self {
        (self.max_files, self.max_bytes) = (files, bytes);
        self
    }

    /// Opens what is kept under a reference.
    ///
    /// # Errors
    /// `NotFound` when nothing is, or the reference is none.
    pub(crate) fn open(&self, id: &str) -> io::Result<File> {
        if !is_reference(id) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(self.folder.join(id), flags, Mode::empty())?;
        Ok(File::from(file))
    }

    /// What is kept for this session, the newest first.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let mut files: Vec<Stored> = stored(&self.folder);
        files.sort_by_key(|file| std::cmp::Reverse(file.modified));
        let listed = files.into_iter().filter_map(|file| {
            let id = file.path.file_name()?.to_str()?.to_owned();
            is_reference(&id).then_some(Listed {
                id,
                bytes: file.bytes,
            })
        });
        listed.collect()
    }

    /// Makes a new file for an output of at most `bytes`, under its final name: it can be read while it grows.
    pub(crate) fn create(&self, tool: &str, bytes: u64) -> io::Result<(String, File)> {
        self.make_room(bytes)?;
        self.named(tool, |path| {
            OpenOptions::new()
                .append(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
        })
    }

    /// Removes what was kept for nothing.
    pub(crate) fn remove(&self, id: &str) {
        if is_reference(id) {
            let _ = fs::remove_file(self.folder.join(id));
        }
    }

    fn write(&self, tool: &str, content: &str) -> io::Result<String> {
        self.make_room(u64::try_from(content.len()).unwrap_or(u64::MAX))?;
        self.make_folder()?;
        let mut unfinished = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.folder)?;
        unfinished.write_all(content.as_bytes())?;
        let mut unfinished = Some(unfinished);
        let (id, _) = self.named(tool, |path| {
            let file = unfinished.take().ok_or(io::ErrorKind::NotFound)?;
            file.persist_noclobber(path).map(drop).map_err(|error| {
                unfinished = Some(error.file);
                error.error
            })
        })?;
        Ok(id)
    }

    /// Makes something under a reference that nobody has.
    fn named<T>(&self, tool: &str, mut make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(String, T)> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.make_folder()?;
            let id = reference(tool);
            let path = self.folder.join(&id);
            match make(&path) {
                Ok(made) => {
                    self.own().insert(path);
                    return Ok((id, made));
                }
                // Taken, or the folder was removed by a session that made room.
                Err(error) if tries < TRIES && is_bad_luck(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    /// Removes the oldest outputs of others until one more of this size fits.
    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut files = self.all();
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        let mut count = files.len();
        files.retain(|file| !self.is_own(&file.path));
        files.sort_by_key(|file| std::cmp::Reverse(file.modified));
        while count >= self.max_files || total.saturating_add(bytes) > self.max_bytes {
            let oldest = files.pop().ok_or(io::ErrorKind::StorageFull)?;
            match fs::remove_file(&oldest.path) {
                Ok(()) => {}
                // Another session made room at the same time.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            count -= 1;
            total -= oldest.bytes;
            if let (Some(_), Some(folder)) = (&self.shared, oldest.path.parent()) {
                // Only an empty one goes.
                let _ = fs::remove_dir(folder);
            }
        }
        Ok(())
    }

    /// Every file that counts.
    fn all(&self) -> Vec<Stored> {
        let Some(shared) = &self.shared else {
            return stored(&self.folder);
        };
        let folders = fs::read_dir(shared).into_iter().flatten().flatten();
        let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.flat_map(|entry| stored(&entry.path())).collect()
    }

    fn is_own(&self, path: &Path) -> bool {
        let ours = self.shared.is_some() && path.parent() == Some(&self.folder);
        ours || self.own().contains(path)
    }

    fn own(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outputs for OutputStore {
    fn keep(&self, _call: &CallId, tool: &str, content: &str) -> Option<String> {
        // Whatever the disk says: the call has its result, only the rest of it cannot be read.
        self.write(tool, content).ok()
    }
}

/// A file of a store.
struct Stored {
    path: PathBuf,
    bytes: u64,
    modified: (i64, i64),
}

/// The files in a folder that are a store's. Others are never looked at.
fn stored(folder: &Path) -> Vec<Stored> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?;
        if !is_reference(name) && !name.starts_with(UNFINISHED) {
            return None;
        }
        // Does not follow a link.
        let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Stored {
            path: entry.path(),
            bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
        })
    });
    files.collect()
}

fn is_bad_luck(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
    )
}

/// A name inside the folder and nowhere else.
fn is_reference(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    !text.is_empty() && text.len() <= MAX_ID && text.chars().all(is_sign)
}

/// The tool and a few random signs, as `bash-4k7zq2`.
fn reference(tool: &str) -> String {
    let mut id: String = tool
        .chars()
        .take(MAX_NAME)
        .map(|sign| match sign.to_ascii_lowercase() {
            sign if sign.is_ascii_lowercase() || sign.is_ascii_digit() => sign,
            _ => '-',
        })
        .collect();
    id.push('-');
    let mut random = Uuid::new_v4().as_u128();
    for _ in 0..RANDOM_SIGNS {
        let digit = u32::try_from(random % 36).unwrap_or_default();
        id.extend(char::from_digit(digit, 36));
        random /= 36;
    }
    id
}
