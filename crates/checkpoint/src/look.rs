//! Reads the names in a folder with their stamps.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use windlass_sandbox::{folder, is_placeholder};

use super::index::{Folder, Stat};
use super::tree::{Tree, stat};
use super::watch::{Added, Watch};

/// Time before the scan, in nanoseconds, within which a change may be followed by another one with the same
/// stamp.
const TICK: i64 = 20_000_000;

/// Names in one folder with their stamps, sorted. Reused for the next folder.
#[derive(Default)]
pub(super) struct Look {
    /// All names, concatenated.
    text: Vec<u8>,
    names: Vec<(usize, usize, Stat)>,
    /// True if a file among them has several names and this one was not watched before.
    has_new_link: bool,
    /// Start time of the scan.
    now: i64,
}

impl Look {
    pub(super) fn read(
        &mut self,
        tree: &Tree,
        path: &Arc<[u8]>,
        handle: BorrowedFd<'_>,
        watch: Option<&Watch>,
    ) -> io::Result<()> {
        let Self {
            text,
            names,
            has_new_link,
            now,
        } = self;
        text.clear();
        names.clear();
        *has_new_link = false;
        *now = folder::stamp_time();
        folder::names(handle, |name| {
            let bytes = name.to_bytes();
            if tree.hides(path, bytes) {
                tree.found_hidden(path, bytes);
                return Ok(());
            }
            if let Some((stat, added)) = stamp(path, handle, name, watch)? {
                *has_new_link |= added != Added::Known;
                let start = text.len();
                text.extend_from_slice(bytes);
                names.push((start, text.len(), stat));
            }
            Ok(())
        })?;
        names.sort_unstable_by(|a, b| text.get(a.0..a.1).cmp(&text.get(b.0..b.1)));
        Ok(())
    }

    /// Starts to look at single names.
    pub(super) fn start(&mut self) {
        self.now = folder::stamp_time();
    }

    pub(super) fn has_new_link(&self) -> bool {
        self.has_new_link
    }

    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], &Stat)> {
        self.names
            .iter()
            .map(|(start, end, stat)| (self.text.get(*start..*end).unwrap_or_default(), stat))
    }

    /// Returns true if the folder equals its known state.
    pub(super) fn is(&self, known: &Folder) -> bool {
        self.names.len() == known.entries.len()
            && self
                .entries()
                .zip(&known.entries)
                .all(|((name, stat), entry)| *entry.name == *name && entry.stat == *stat)
    }

    /// Returns the stamp to remember: an invalid one if the file may change again without a new stamp.
    pub(super) fn settled(&self, stat: Stat) -> Stat {
        let is_folder = stat.kind() == FileType::Directory;
        if !is_folder && stat.ctime.saturating_add(TICK) >= self.now {
            return Stat { ctime: 0, ..stat };
        }
        stat
    }
}

/// Returns the stamp of a name, or `None` if it is gone. A file with several names is watched from then on; the
/// second value tells whether this name of it was known.
pub(super) fn stamp(
    path: &Arc<[u8]>,
    folder: BorrowedFd<'_>,
    name: &CStr,
    watch: Option<&Watch>,
) -> io::Result<Option<(Stat, Added)>> {
    let data = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(data) => data,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if is_placeholder(&data) {
        return Ok(None);
    }
    let found = stat(&data);
    let Some(watch) = watch.filter(|_| data.st_nlink > 1 && found.kind() == FileType::RegularFile) else {
        return Ok(Some((comparable(found), Added::Known)));
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Ok(file) => {
            let added = watch.add_linked(path, name.to_bytes(), file.as_fd());
            // It may have changed before it was watched.
            Ok(Some((comparable(stat(&rustix::fs::fstat(&file)?)), added)))
        }
        Err(Errno::NOENT) => Ok(None),
        // The content of a file that cannot be opened is not stored, so its changes need not be known.
        Err(_) => Ok(Some((comparable(found), Added::Known))),
    }
}

/// Returns a folder's stamp without the parts that change with its entries, which are compared separately.
fn comparable(stat: Stat) -> Stat {
    if stat.kind() != FileType::Directory {
        return stat;
    }
    Stat {
        inode: 0,
        size: 0,
        mtime: 0,
        ctime: 0,
        mode: stat.mode,
    }
}
