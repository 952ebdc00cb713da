//! Access to the workspace through its handle: reads the state of a path without following links.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::index::Stat;
use super::node::{Bytes, Digest, Node, Skip};
use super::pack::Packs;
use windlass_sandbox::{Roots, folder, is_placeholder};

/// Folders in which version control keeps its own state. They are not covered by undo.
const VERSION_CONTROL: [&[u8]; 4] = [b".git", b".hg", b".svn", b".jj"];

/// Returns true for the name of a folder or file that is no content of a workspace: the state of version
/// control, and files that a restoration writes.
pub fn is_internal(name: &[u8]) -> bool {
    is_version_control(name) || name == super::restore::TEMPORARY
}

pub(super) fn is_version_control(name: &[u8]) -> bool {
    VERSION_CONTROL.contains(&name)
}

/// Limits of the stored contents.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointLimits {
    /// Maximum bytes of one file.
    pub file: u64,
    /// Maximum bytes of everything that version control ignores.
    pub ignored: u64,
    /// Maximum bytes of the whole workspace.
    pub total: u64,
    /// Maximum number of files and folders. In a larger workspace, only changes made by file tools are
    /// covered.
    pub entries: usize,
    /// Number of files and folders from which on the folders are watched instead of being scanned for every
    /// command.
    pub watched_from: usize,
    /// Maximum number of watched folders, and files with several names. With more of them, everything is
    /// scanned.
    pub watches: usize,
}

impl Default for CheckpointLimits {
    fn default() -> Self {
        Self {
            file: 50 << 20,
            ignored: 200 << 20,
            total: 2 << 30,
            entries: 1_000_000,
            watched_from: 4_000,
            watches: 500_000,
        }
    }
}

/// Contents to store when they are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep<'a> {
    /// Every content except this one, which is stored already.
    Unless(Option<&'a Digest>),
    /// No content.
    Nothing,
}

/// A workspace.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    pub(super) limits: CheckpointLimits,
    pub(super) packs: Packs,
    handle: OwnedFd,
    files: Arc<Roots>,
    /// Paths that are never read: denied ones, and the checkpoint data itself.
    hidden: Vec<PathBuf>,
    /// The checkpoint data itself.
    own: PathBuf,
    /// Paths that were found and are not covered.
    found: Mutex<BTreeSet<Bytes>>,
}

/// Most paths that are remembered because they are not covered.
const FOUND: usize = 200;

impl Tree {
    pub(super) fn open(
        root: &Path,
        files: Arc<Roots>,
        own: &Path,
        packs: Packs,
        limits: CheckpointLimits,
    ) -> io::Result<Self> {
        let mut hidden = files.denied_inside(root);
        hidden.push(own.to_owned());
        Ok(Self {
            handle: folder::open(root)?,
            root: root.to_owned(),
            limits,
            packs,
            files,
            hidden,
            own: own.to_owned(),
            found: Mutex::default(),
        })
    }

    /// Returns true if a name in a folder is not covered.
    pub(super) fn hides(&self, folder: &[u8], name: &[u8]) -> bool {
        if is_internal(name) {
            return true;
        }
        if self.files.denies_name(OsStr::from_bytes(name)) {
            return true;
        }
        let is_there = |hidden: &PathBuf| {
            hidden.file_name().is_some_and(|last| last.as_bytes() == name)
                && *hidden == self.root.join(Bytes::join(folder, name).path())
        };
        self.hidden.iter().any(is_there)
    }

    /// Returns true if a path, or a folder around it, is not covered.
    pub(super) fn hides_path(&self, path: &Bytes) -> bool {
        let mut folder: &[u8] = b"";
        path.0.split(|byte| *byte == b'/').any(|name| {
            let hides = self.hides(folder, name);
            let end = folder.len() + usize::from(!folder.is_empty()) + name.len();
            folder = path.0.get(..end).unwrap_or_default();
            hides
        })
    }

    /// Remembers a path that is not covered, for people.
    pub(super) fn found_hidden(&self, folder: &[u8], name: &[u8]) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < FOUND && name != super::restore::TEMPORARY {
            found.insert(Bytes::join(folder, name));
        }
    }

    /// Returns the paths that are not covered and are still there.
    pub(super) fn hidden_there(&self) -> Vec<Bytes> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.retain(|path| {
            let data = self
                .parent(path)
                .and_then(|(folder, name)| rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW));
            data.is_ok_and(|data| !is_placeholder(&data)) && self.own != self.root.join(path.path())
        });
        found.iter().cloned().collect()
    }

    /// Opens a folder below the workspace for reading.
    pub(super) fn folder(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        folder::open_below_to_list(&self.handle, Path::new(OsStr::from_bytes(path)))
    }

    /// Returns the folder that contains a path, and the name in it. Links on the way are not followed.
    pub(super) fn parent<'a>(&self, path: &'a Bytes) -> rustix::io::Result<(OwnedFd, &'a OsStr)> {
        let path = path.path();
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL);
        };
        let folder = match parent.strip_prefix("/") {
            Ok(below) => folder::open_below(folder::open(Path::new("/"))?, below),
            Err(_) => folder::open_below(&self.handle, parent),
        }?;
        Ok((folder, name))
    }

    /// Returns the current state of a path, and stores its content.
    pub(super) fn look(&self, path: &Bytes) -> io::Result<Option<Node>> {
        self.seen(path, Keep::Unless(None))
    }

    /// Returns the current state of a path for comparison, without storing its content.
    pub(super) fn glance(&self, path: &Bytes) -> io::Result<Option<Node>> {
        self.seen(path, Keep::Nothing)
    }

    fn seen(&self, path: &Bytes, keep: Keep<'_>) -> io::Result<Option<Node>> {
        let (folder, name) = match self.parent(path) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let data = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => data,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if is_placeholder(&data) {
            return Ok(None);
        }
        let stat = stat(&data);
        Ok(match stat.kind() {
            FileType::Directory => Some(Node::Folder {
                mode: stat.mode & 0o7777,
            }),
            FileType::Symlink => link(&folder, name)?,
            FileType::RegularFile => {
                let read = self.read(folder.as_fd(), name, keep)?;
                read.map(|(_, node)| node)
            }
            _ => Some(skipped(Skip::Special, &stat)),
        })
    }

    /// Reads a file, and stores its content according to `keep`. Returns `None` if the file is gone.
    pub(super) fn read(
        &self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        keep: Keep<'_>,
    ) -> io::Result<Option<(Stat, Node)>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(_) => {
                let data = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let stat = stat(&data);
                return Ok(Some((stat, skipped(Skip::Unreadable, &stat))));
            }
        };
        let before = stat(&rustix::fs::fstat(&file)?);
        if before.kind() != FileType::RegularFile {
            return Ok(Some((before, skipped(Skip::Special, &before))));
        }
        let mut content = Vec::with_capacity(usize::try_from(before.size.min(self.limits.file)).unwrap_or(0));
        (&file).take(self.limits.file + 1).read_to_end(&mut content)?;
        if content.len() as u64 > self.limits.file {
            return Ok(Some((before, skipped(Skip::Large, &before))));
        }
        let mut after = stat(&rustix::fs::fstat(&file)?);
        if after != before {
            // Another process is writing to the file right now: the content is usable but not reliable.
            after.ctime = 0;
        }
        let digest = Digest::of(&content);
        let is_kept = match keep {
            Keep::Unless(known) => known == Some(&digest),
            Keep::Nothing => true,
        };
        if !is_kept {
            self.packs.keep(digest, &content)?;
        }
        let node = Node::File {
            mode: after.mode & 0o7777,
            digest,
            size: content.len() as u64,
        };
        Ok(Some((after, node)))
    }
}

/// Returns a link's target; `None` if the link is gone.
pub(super) fn link(folder: impl AsFd, name: &OsStr) -> io::Result<Option<Node>> {
    match rustix::fs::readlinkat(folder, name, Vec::new()) {
        Ok(target) => Ok(Some(Node::Link {
            target: Bytes(target.into_bytes()),
        })),
        Err(Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn skipped(why: Skip, stat: &Stat) -> Node {
    Node::Skipped {
        why,
        mode: stat.mode,
        size: stat.size,
        mtime: stat.mtime,
    }
}

#[allow(
    clippy::cast_possible_wrap,
    clippy::cast_lossless,
    clippy::unnecessary_cast,
    reason = "the types of these fields differ from machine to machine"
)]
pub(super) fn stat(data: &rustix::fs::Stat) -> Stat {
    const SECOND: i64 = 1_000_000_000;
    let time = |seconds: i64, nanos: i64| seconds.saturating_mul(SECOND).saturating_add(nanos);
    Stat {
        inode: data.st_ino as u64,
        size: data.st_size.max(0).cast_unsigned() as u64,
        mtime: time(data.st_mtime as i64, data.st_mtime_nsec as i64),
        ctime: time(data.st_ctime as i64, data.st_ctime_nsec as i64),
        mode: data.st_mode as u32,
    }
}
