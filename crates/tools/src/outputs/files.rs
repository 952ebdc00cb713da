//! Outputs as files in a folder: those of commands that still run, and all of them where there is no blob
//! store.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use uuid::Uuid;
use windlass_core::clock::Timestamp;

use super::Listed;

/// Maximum number of bytes of a tool's name in a reference.
const MAX_NAME: usize = 24;
/// Maximum length of a reference.
const MAX_ID: usize = 64;
/// Prefix of files that are not complete yet.
const UNFINISHED: &str = ".unfinished-";
/// Number of random characters in a reference.
const RANDOM_SIGNS: usize = 6;
/// Number of references to try when one is taken.
const TRIES: usize = 8;

/// The files of one session, each readable only by its user. The folder is created with the first file. The
/// oldest files of other sessions are removed to make room, never those of this session.
#[derive(Debug)]
pub(super) struct OutputFiles {
    folder: PathBuf,
    /// Folder that holds the folders of all sessions, if they share their limits.
    pub(super) shared: Option<PathBuf>,
    pub(super) max_files: usize,
    pub(super) max_bytes: u64,
    /// Files created through this value.
    own: Mutex<HashSet<PathBuf>>,
}

impl OutputFiles {
    pub(super) fn new(folder: PathBuf, max_files: usize, max_bytes: u64) -> Self {
        Self {
            folder,
            shared: None,
            max_files,
            max_bytes,
            own: Mutex::default(),
        }
    }

    /// Opens the file of a reference.
    ///
    /// # Errors
    /// `NotFound` when there is none, or the text is not a reference.
    pub(super) fn open(&self, id: &str) -> io::Result<File> {
        if !is_reference(id) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(self.folder.join(id), flags, Mode::empty())?;
        Ok(File::from(file))
    }

    /// Returns the files of this session.
    pub(super) fn list(&self) -> Vec<Listed> {
        let listed = stored(&self.folder).into_iter().filter_map(|file| {
            let id = file.path.file_name()?.to_str()?.to_owned();
            let (seconds, nanoseconds) = file.modified;
            let time = seconds
                .saturating_mul(1000)
                .saturating_add(nanoseconds / 1_000_000);
            is_reference(&id).then_some(Listed {
                id,
                bytes: file.bytes,
                time: Timestamp(u64::try_from(time).unwrap_or_default()),
            })
        });
        listed.collect()
    }

    /// Creates a file for an output of at most `bytes`, under its final name, so that it can be read while it
    /// grows.
    pub(super) fn create(&self, tool: &str, bytes: u64) -> io::Result<(String, File)> {
        self.make_room(bytes)?;
        self.named(tool, |path| {
            OpenOptions::new()
                .append(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
        })
    }

    /// Removes the file of a reference.
    pub(super) fn remove(&self, id: &str) {
        if is_reference(id) {
            let _ = fs::remove_file(self.folder.join(id));
        }
    }

    /// Writes a complete output and returns its reference.
    pub(super) fn write(&self, tool: &str, content: &str) -> io::Result<String> {
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

    /// Creates something under a reference that is not taken.
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

    /// Removes the oldest files of other sessions until one more of this size fits.
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

    /// Returns every file that counts towards the limits.
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

/// A file of a store.
struct Stored {
    path: PathBuf,
    bytes: u64,
    modified: (i64, i64),
}

/// Returns the output files in a folder. Other files are ignored.
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

/// Returns true for a reference, which as a file name never leads out of the folder.
pub(super) fn is_reference(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    !text.is_empty() && text.len() <= MAX_ID && text.chars().all(is_sign)
}

/// Returns a new reference: the tool and a few random characters, as in `bash-4k7zq2`.
pub(super) fn reference(tool: &str) -> String {
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
