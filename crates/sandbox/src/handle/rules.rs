//! The denied files: by path, by name, and by identity, under whatever name.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use super::Attempt;
use super::links::Links;
use crate::backend::files;

/// File names that only look like secrets.
const EXAMPLES: [&str; 3] = [".env.example", ".env.sample", ".env.template"];

#[derive(Debug, Default)]
pub(super) struct Denied {
    /// As given: absolute paths, and patterns for file names.
    given: Vec<PathBuf>,
    /// Read when the first file is checked: following some ninety paths takes longer than most of a start.
    known: OnceLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The paths as written, and the paths that they lead to.
    paths: Vec<PathBuf>,
    names: GlobSet,
    /// First bytes of the names that can match a pattern; `None` if a match can start with any byte.
    first_bytes: Option<Vec<u8>>,
}

impl Denied {
    pub(super) fn new(denied: &[PathBuf]) -> io::Result<Self> {
        for path in denied.iter().filter(|path| !path.is_absolute()) {
            glob(path)?;
        }
        Ok(Self {
            given: denied.to_owned(),
            known: OnceLock::new(),
        })
    }

    fn known(&self) -> &Known {
        // The patterns were checked one by one. If they are too many, everything is denied.
        self.known.get_or_init(|| {
            Known::read(&self.given).unwrap_or_else(|_| Known {
                paths: vec![PathBuf::from("/")],
                ..Known::default()
            })
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    pub(super) fn has_names(&self) -> bool {
        self.given.iter().any(|path| !path.is_absolute())
    }

    /// Returns true if a path is denied by its location.
    pub(super) fn covers(&self, path: &Path) -> bool {
        // Compares bytes instead of components, because this runs for every file of a tree.
        let path = path.as_os_str().as_bytes();
        // Those of this program included.
        if files::is_of_process(path) {
            return true;
        }
        self.known().paths.iter().any(|denied| {
            let rest = path.strip_prefix(denied.as_os_str().as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || denied.as_os_str() == "/")
        })
    }

    /// Returns true if a component of a path is a denied name. The caller leaves out the components above an
    /// allowed folder: the folder was allowed there.
    pub(super) fn names(&self, path: &Path) -> bool {
        path.components().any(|part| self.named(part))
    }

    /// Returns the denied paths below a folder.
    pub(super) fn inside(&self, folder: &Path) -> Vec<PathBuf> {
        let inside = self.known().paths.iter().filter(|path| path.starts_with(folder));
        inside.cloned().collect()
    }

    fn named(&self, part: Component<'_>) -> bool {
        matches!(part, Component::Normal(name) if self.fits(name))
    }

    /// Returns true if a file name is denied.
    pub(super) fn fits(&self, name: &OsStr) -> bool {
        let may_fit = |all: &Vec<u8>| name.as_bytes().first().is_some_and(|first| all.contains(first));
        let known = self.known();
        if !known.first_bytes.as_ref().is_none_or(may_fit) {
            return false;
        }
        let example = EXAMPLES.iter().any(|example| name == *example);
        !example && known.names.is_match(name)
    }

    /// Fails if an open file is a denied one under another name: through a second mount, or a hard link.
    pub(super) fn check(&self, object: impl AsFd) -> Result<(), Attempt> {
        let data = rustix::fs::fstat(object).map_err(|error| Attempt::System(error.into()))?;
        let same = |path: &PathBuf| {
            // Looked up each time: the denied file may have been created since.
            rustix::fs::stat(path)
                .is_ok_and(|denied| (denied.st_dev, denied.st_ino) == (data.st_dev, data.st_ino))
        };
        if self.known().paths.iter().any(same) {
            return Err(Attempt::Denied);
        }
        Ok(())
    }
}

impl Known {
    fn read(denied: &[PathBuf]) -> io::Result<Self> {
        let mut names = GlobSetBuilder::new();
        let mut first_bytes = Some(Vec::new());
        let mut paths = Vec::new();
        let mut links = Links::default();
        for path in denied {
            if path.is_absolute() {
                paths.push(path.components().collect());
                paths.extend(links.follow(path));
            } else {
                names.add(glob(path)?);
                let first = path.as_os_str().as_bytes().first();
                match (first, &mut first_bytes) {
                    (Some(first), Some(all)) if first.is_ascii() && !b"*?[{\\".contains(first) => {
                        all.extend([first.to_ascii_lowercase(), first.to_ascii_uppercase()]);
                    }
                    _ => first_bytes = None,
                }
            }
        }
        Ok(Self {
            paths,
            names: names.build().map_err(io::Error::other)?,
            first_bytes,
        })
    }
}

/// Returns the pattern of a denied file name.
fn glob(name: &Path) -> io::Result<Glob> {
    let pattern = name.to_str().filter(|pattern| !pattern.contains('/'));
    let pattern = pattern.ok_or(io::ErrorKind::InvalidInput)?;
    // Some file systems do not distinguish case.
    let glob = GlobBuilder::new(pattern).case_insensitive(true).build();
    glob.map_err(io::Error::other)
}
