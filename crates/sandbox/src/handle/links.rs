//! Follows the links of paths whose last components need not exist.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;

use super::{Attempt, LINKS, missing};

/// Returns a path with every link followed, as a file is opened; `None` if the system refuses.
pub(crate) fn real_path(path: &Path) -> Option<PathBuf> {
    follow(path, LINKS).ok()
}

/// Follows every link of a path. Components at the end that do not exist are kept as written.
pub(super) fn follow(path: &Path, links: usize) -> Result<PathBuf, Attempt> {
    match std::fs::canonicalize(path) {
        Ok(real) => return Ok(real),
        Err(error) if missing(&error) => {}
        Err(error) => return Err(Attempt::System(error)),
    }
    let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back()) else {
        return Err(Attempt::System(io::ErrorKind::NotFound.into()));
    };
    let real = follow(parent, links)?.join(name);
    match rustix::fs::readlinkat(CWD, &real, Vec::new()) {
        // A dangling link: a new file is created where the link leads.
        Ok(target) => {
            let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
            let links = links.checked_sub(1).ok_or(Attempt::System(Errno::LOOP.into()))?;
            follow(&real.parent().unwrap_or(Path::new("/")).join(target), links)
        }
        Err(_) => Ok(real),
    }
}

/// Follows the links of many paths and looks at each folder once.
#[derive(Default)]
pub(super) struct Links {
    folders: HashMap<PathBuf, Option<Followed>>,
}

/// A path with its links followed.
#[derive(Clone)]
struct Followed {
    real: PathBuf,
    /// Nothing is there, so nothing is below it either.
    is_missing: bool,
}

impl Links {
    /// Returns a path with every link followed, as [`real_path`] does.
    pub(super) fn follow(&mut self, path: &Path) -> Option<PathBuf> {
        Some(self.look(path)?.real)
    }

    fn look(&mut self, path: &Path) -> Option<Followed> {
        let there = |real| Followed {
            real,
            is_missing: false,
        };
        let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back())
        else {
            return real_path(path).map(there);
        };
        let folder = match self.folders.get(parent) {
            Some(known) => known.clone(),
            None => {
                let folder = self.look(parent);
                self.folders.insert(parent.to_owned(), folder.clone());
                folder
            }
        }?;
        let real = folder.real.join(name);
        if folder.is_missing {
            return Some(Followed {
                real,
                is_missing: true,
            });
        }
        match rustix::fs::readlinkat(CWD, &real, Vec::new()) {
            Err(Errno::INVAL) => Some(there(real)),
            Err(Errno::NOENT | Errno::NOTDIR) => Some(Followed {
                real,
                is_missing: true,
            }),
            Ok(_) | Err(_) => real_path(path).map(there),
        }
    }
}
