//! The denied files: by path, by name, and by identity, under whatever name.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Attempt;
use super::links::Links;

/// File names that only look like secrets.
const EXAMPLES: [&str; 3] = [".env.example", ".env.sample", ".env.template"];

#[derive(Debug, Default)]
pub(super) struct Denied {
    /// The paths as written, and the paths that they lead to.
    paths: Vec<PathBuf>,
    names: GlobSet,
    /// First bytes of the names that can match a pattern; `None` if a match can start with any byte.
    first_bytes: Option<Vec<u8>>,
}

impl Denied {
    pub(super) fn new(denied: &[PathBuf]) -> io::Result<Self> {
        let mut names = GlobSetBuilder::new();
        let mut first_bytes = Some(Vec::new());
        let mut paths = Vec::new();
        let mut links = Links::default();
        for path in denied {
            if path.is_absolute() {
                paths.push(path.components().collect());
                paths.extend(links.follow(path));
            } else {
                let pattern = path.to_str().filter(|pattern| !pattern.contains('/'));
                let pattern = pattern.ok_or(io::ErrorKind::InvalidInput)?;
                let glob = GlobBuilder::new(pattern).build();
                match (pattern.bytes().next(), &mut first_bytes) {
                    (Some(first), Some(all)) if !b"*?[{\\".contains(&first) => all.push(first),
                    _ => first_bytes = None,
                }
                names.add(glob.map_err(io::Error::other)?);
            }
        }
        let names = names.build().map_err(io::Error::other)?;
        Ok(Self {
            paths,
            names,
            first_bytes,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.names.is_empty()
    }

    pub(super) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns true if a path is denied by its location.
    pub(super) fn covers(&self, path: &Path) -> bool {
        // Compares bytes instead of components, because this runs for every file of a tree.
        let path = path.as_os_str().as_bytes();
        self.paths.iter().any(|denied| {
            let rest = path.strip_prefix(denied.as_os_str().as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        })
    }

    /// Returns true if a component of a path is a denied name. The caller leaves out the components above an
    /// allowed folder: the folder was allowed there.
    pub(super) fn names(&self, path: &Path) -> bool {
        path.components().any(|part| self.named(part))
    }

    /// Returns the denied paths below a folder.
    pub(super) fn inside(&self, folder: &Path) -> Vec<PathBuf> {
        let inside = self.paths.iter().filter(|path| path.starts_with(folder));
        inside.cloned().collect()
    }

    fn named(&self, part: Component<'_>) -> bool {
        matches!(part, Component::Normal(name) if self.fits(name))
    }

    /// Returns true if a file name is denied.
    pub(super) fn fits(&self, name: &OsStr) -> bool {
        let may_fit = |all: &Vec<u8>| name.as_bytes().first().is_some_and(|first| all.contains(first));
        if !self.first_bytes.as_ref().is_none_or(may_fit) {
            return false;
        }
        let example = EXAMPLES.iter().any(|example| name == *example);
        !example && self.names.is_match(name)
    }

    /// Fails if an open file is a denied one under another name: through a second mount, or a hard link.
    pub(super) fn check(&self, object: impl AsFd) -> Result<(), Attempt> {
        let data = rustix::fs::fstat(object).map_err(|error| Attempt::System(error.into()))?;
        let same = |path: &PathBuf| {
            // Looked up each time: the denied file may have been created since.
            rustix::fs::stat(path)
                .is_ok_and(|denied| (denied.st_dev, denied.st_ino) == (data.st_dev, data.st_ino))
        };
        if self.paths.iter().any(same) {
            return Err(Attempt::Denied);
        }
        Ok(())
    }
}
