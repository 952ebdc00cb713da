//! Files for the built-in tools, opened so that the file that was checked is the file that is used.
//!
//! A path is resolved by name once, to find out where it leads. Then the real path is opened again from the
//! handle of an allowed root, one component at a time, never through a link, and every folder on the way is
//! compared with the denied ones. If a folder is swapped for a link in between, the second walk fails and
//! both are repeated.

mod links;
mod place;
mod rules;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use self::links::follow;
pub(crate) use self::links::real_path;
pub use self::place::Place;
pub(crate) use self::place::is_abandoned;
use self::rules::Denied;
use crate::backend::files::{self, FOLDER};
use crate::temp::SHARED;

/// Maximum number of attempts at a path that keeps changing.
const TRIES: usize = 16;

/// Maximum number of links in one path, as in the kernel.
const LINKS: usize = 40;

/// Purpose for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading. Also works for a folder.
    Read,
    /// Writing to a file that exists.
    Write,
    /// Creating a file and writing to it.
    Create,
}

/// Treatment of missing parent folders of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    /// The parents must exist.
    Exist,
    /// Missing parents are created.
    Make,
}

/// Reasons why a path was not opened.
#[derive(Debug, thiserror::Error)]
pub enum PathDenied {
    /// The path is denied.
    #[error("Path is denied by security policy: {}", .0.display())]
    Denied(PathBuf),
    /// The path is not inside an allowed folder.
    #[error("Path is outside allowed paths: {}", .0.display())]
    Outside(PathBuf),
    /// The path leads elsewhere than when the call was approved.
    #[error(
        "Path changed after it was checked: {} now leads to {}. Nothing was read or written; look where it leads and \
         try again.",
        path.display(),
        real.display()
    )]
    Moved {
        /// The path.
        path: PathBuf,
        /// The file that it leads to now.
        real: PathBuf,
    },
    /// The path kept changing while it was resolved.
    #[error("Path changed while it was opened: {}", .0.display())]
    Raced(PathBuf),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// The folders in which the built-in tools may use files.
#[derive(Debug, Clone)]
pub struct Roots {
    allowed: Arc<Vec<(PathBuf, OwnedFd)>>,
    /// True if nothing is limited; the root of the file system is opened when needed.
    anywhere: bool,
    denied: Arc<Denied>,
    /// Folder that paths in the shared temporary folders mean.
    temp: Option<PathBuf>,
    /// Folder in a shared temporary folder that keeps its meaning.
    visible: Option<PathBuf>,
    /// The files and folders that a call was judged by, with every link followed; `None` outside of calls.
    judged: Option<Arc<Vec<PathBuf>>>,
}

impl Default for Roots {
    /// Allows files anywhere, for embedders with limits of their own.
    fn default() -> Self {
        Self {
            allowed: Arc::default(),
            anywhere: true,
            denied: Arc::default(),
            temp: None,
            visible: None,
            judged: None,
        }
    }
}

impl Roots {
    /// Opens the allowed folders. A denied path without a slash is a pattern for file names, such as `.env*`;
    /// the usual examples (`.env.example`, `.env.sample`, `.env.template`) never match a pattern.
    ///
    /// # Errors
    /// If an allowed folder cannot be opened, or a denied path is neither absolute nor a pattern.
    pub fn new(allowed: &[PathBuf], denied: &[PathBuf]) -> io::Result<Self> {
        Self::opened(allowed, Arc::new(Denied::new(denied)?))
    }

    /// Opens other allowed folders, with the same denied paths.
    ///
    /// # Errors
    /// If an allowed folder cannot be opened.
    pub fn elsewhere(&self, allowed: &[PathBuf]) -> io::Result<Self> {
        Self::opened(allowed, Arc::clone(&self.denied))
    }

    fn opened(allowed: &[PathBuf], denied: Arc<Denied>) -> io::Result<Self> {
        let open = |root: &PathBuf| {
            let real = fs::canonicalize(root)?;
            let handle = rustix::fs::open(&real, FOLDER | OFlags::CLOEXEC, Mode::empty())?;
            Ok((real, handle))
        };
        Ok(Self {
            allowed: Arc::new(allowed.iter().map(open).collect::<io::Result<_>>()?),
            anywhere: false,
            denied,
            temp: None,
            visible: None,
            judged: None,
        })
    }

    /// Makes paths in the shared temporary folders mean a private one, as they do for commands, except those in
    /// `visible`, which commands see.
    #[must_use]
    pub fn with_temp(mut self, temp: &Path, visible: Option<&Path>) -> Self {
        self.temp = Some(temp.to_owned());
        self.visible = visible.and_then(|path| fs::canonicalize(path).ok());
        self
    }

    /// Returns the path that a path means: in the private temporary folder instead of a shared one, unless it is in
    /// another allowed folder.
    pub fn meant(&self, path: &Path) -> PathBuf {
        let in_shared = |path: &Path| {
            SHARED
                .iter()
                .find_map(|shared| path.strip_prefix(shared).ok().map(Path::to_owned))
        };
        let Some(temp) = self.temp.as_ref().filter(|_| in_shared(path).is_some()) else {
            return path.to_owned();
        };
        // A `..` may lead out of the shared folder.
        let plain = match path.components().any(|part| part == Component::ParentDir) {
            true => follow(path, LINKS).unwrap_or_else(|_| without_parents(path)),
            false => path.to_owned(),
        };
        let Some(below) = in_shared(&plain) else {
            return path.to_owned();
        };
        let is_allowed = |path: &Path| {
            let mut roots = self.allowed.iter().map(|(root, _)| root).chain(&self.visible);
            roots.any(|root| path.starts_with(root))
        };
        if is_allowed(path) || follow(path, LINKS).is_ok_and(|real| is_allowed(&real)) {
            return path.to_owned();
        }
        temp.join(below)
    }

    /// Returns the same roots for an approved call: it may use the files that it was judged by, also outside the
    /// allowed folders, and what is below them. A path that leads elsewhere by now is refused.
    #[must_use]
    pub fn judged(&self, places: &Arc<Vec<PathBuf>>) -> Self {
        Self {
            judged: Some(Arc::clone(places)).filter(|places| !places.is_empty()),
            ..self.clone()
        }
    }

    /// Returns true if files can be used anywhere.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.anywhere
    }

    /// Opens a file. The path must be absolute.
    ///
    /// # Errors
    /// If the path is denied or outside the allowed folders, or the system refuses.
    pub fn open(&self, path: &Path, how: OpenMode) -> Result<File, PathDenied> {
        let meant = self.meant(path);
        self.retrying(path, |roots| {
            let place = roots.locate_once(&meant, Parents::Exist)?;
            place.open(how)
        })
    }

    /// Returns the folder of a file, as a handle, and the file's name in it, which is what replacing a file
    /// needs.
    ///
    /// # Errors
    /// If the path is denied or outside the allowed folders, or the system refuses.
    pub fn locate(&self, path: &Path, parents: Parents) -> Result<Place<'_>, PathDenied> {
        let meant = self.meant(path);
        self.retrying(path, |roots| roots.locate_once(&meant, parents))
    }

    /// Returns true if a path is denied by its location or its own name. For paths found by walking from a
    /// real folder, which contain no links and whose folders were checked before. Opens nothing.
    pub fn denies(&self, real: &Path) -> bool {
        self.denied.covers(real)
            || real
                .file_name()
                .is_some_and(|name| self.denied.names(Path::new(name)))
    }

    /// Returns the denied paths below a folder, for a walk that checks many files.
    pub fn denied_inside(&self, folder: &Path) -> Vec<PathBuf> {
        self.denied.inside(folder)
    }

    /// Returns true if some file names are denied in every folder.
    pub(crate) fn denies_names(&self) -> bool {
        self.denied.has_names()
    }

    /// Returns true if a file name is denied in every folder.
    pub fn denies_name(&self, name: &OsStr) -> bool {
        self.denied.fits(name)
    }

    /// Opens a regular file that was found by walking from a real folder. Cheaper than [`Self::open`] for
    /// many files: a single system call, where the system has one that follows no link anywhere in the path.
    ///
    /// # Errors
    /// If the file is denied, is not a regular file, is no longer where it was found, or the system refuses.
    pub fn open_walked(&self, real: &Path) -> Result<File, PathDenied> {
        let denied = || PathDenied::Denied(real.to_owned());
        if self.denies(real) {
            return Err(denied());
        }
        let system = |source: io::Error| PathDenied::System {
            path: real.to_owned(),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match files::open_without_links(real, flags) {
            Some(Ok(file)) => File::from(file),
            None => self.open(real, OpenMode::Read)?,
            Some(Err(Errno::LOOP)) => return Err(PathDenied::Raced(real.to_owned())),
            Some(Err(error)) => return Err(system(error.into())),
        };
        let data = rustix::fs::fstat(&file).map_err(|error| system(error.into()))?;
        if rustix::fs::FileType::from_raw_mode(data.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(system(io::ErrorKind::InvalidInput.into()));
        }
        // Another name of a denied file is a second hard link to it, and few files have one.
        if data.st_nlink > 1 && !self.denied.is_empty() {
            self.denied.check(&file).map_err(|_| denied())?;
        }
        Ok(file)
    }

    fn retrying<'a, T>(
        &'a self,
        path: &Path,
        attempt: impl Fn(&'a Self) -> Result<T, Attempt>,
    ) -> Result<T, PathDenied> {
        for _ in 0..TRIES {
            match attempt(self) {
                Ok(done) => return Ok(done),
                Err(Attempt::Changed) => {}
                Err(Attempt::Denied) => return Err(PathDenied::Denied(path.to_owned())),
                Err(Attempt::Outside) => return Err(PathDenied::Outside(path.to_owned())),
                Err(Attempt::Moved(real)) => {
                    let path = path.to_owned();
                    return Err(PathDenied::Moved { path, real });
                }
                Err(Attempt::System(source)) => {
                    let path = path.to_owned();
                    return Err(PathDenied::System { path, source });
                }
            }
        }
        Err(PathDenied::Raced(path.to_owned()))
    }

    fn locate_once(&self, path: &Path, parents: Parents) -> Result<Place<'_>, Attempt> {
        if !path.is_absolute() {
            return Err(Attempt::Outside);
        }
        let real = follow(path, LINKS)?;
        if !self.is_judged(&real) {
            return Err(Attempt::Moved(real));
        }
        let whole;
        let (root, handle) = match self.root_of(path, &real)? {
            Some((root, handle)) => (root, handle.as_fd()),
            None => {
                whole = rustix::fs::open("/", FOLDER | OFlags::CLOEXEC, Mode::empty())
                    .map_err(|error| Attempt::System(error.into()))?;
                (Path::new("/"), whole.as_fd())
            }
        };
        let below = real.strip_prefix(root).map_err(|_| Attempt::Outside)?;
        let names: Vec<&OsStr> = below.iter().collect();
        let Some((name, folders)) = names.split_last() else {
            let itself = step(handle, OsStr::new("."), FOLDER)?;
            return Ok(Place::new(
                itself,
                OsString::from("."),
                real.clone(),
                &self.denied,
            ));
        };
        let mut folder = step(handle, OsStr::new("."), FOLDER)?;
        for part in folders {
            folder = self.descend(&folder, part, parents)?;
        }
        Ok(Place::new(folder, (*name).to_owned(), real.clone(), &self.denied))
    }

    /// Returns true if a real path is among those that the call was judged by.
    fn is_judged(&self, real: &Path) -> bool {
        let judged = self.judged.as_ref();
        judged.is_none_or(|places| places.iter().any(|place| real.starts_with(place)))
    }

    fn descend(&self, folder: &OwnedFd, name: &OsStr, parents: Parents) -> Result<OwnedFd, Attempt> {
        let next = match step(folder, name, FOLDER) {
            Err(Attempt::System(error)) if missing(&error) && parents == Parents::Make => {
                match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => step(folder, name, FOLDER)?,
                    Err(error) => return Err(Attempt::System(error.into())),
                }
            }
            other => other?,
        };
        self.denied.check(&next)?;
        Ok(next)
    }

    /// Returns the allowed root that contains a real path, or `None` if everything is allowed. The name of
    /// `asked` is checked, too: a link with a denied name is denied.
    fn root_of(&self, asked: &Path, real: &Path) -> Result<Option<(&Path, &OwnedFd)>, Attempt> {
        if self.denied.covers(real) || self.denied.covers(asked) {
            return Err(Attempt::Denied);
        }
        if self.anywhere {
            return Ok(None);
        }
        // The innermost root has the shortest path left to walk.
        let inside = self.allowed.iter().filter(|(root, _)| real.starts_with(root));
        let root = inside.max_by_key(|(root, _)| root.as_os_str().len());
        let Some((root, handle)) = root else {
            let is_approved = self.judged.is_some() && self.is_judged(real);
            let has_denied_name = [asked, real]
                .iter()
                .any(|path| path.file_name().is_some_and(|name| self.denied.fits(name)));
            return match (is_approved, has_denied_name) {
                (false, _) => Err(Attempt::Outside),
                (true, true) => Err(Attempt::Denied),
                (true, false) => Ok(None),
            };
        };
        let below = real.strip_prefix(root).map_err(|_| Attempt::Outside)?;
        let asked = asked.file_name().map(Path::new);
        if self.denied.names(below) || asked.is_some_and(|name| self.denied.names(name)) {
            return Err(Attempt::Denied);
        }
        Ok(Some((root, handle)))
    }
}

/// Failure of one attempt.
#[derive(Debug)]
enum Attempt {
    Denied,
    Outside,
    /// The path has changed since it was resolved.
    Changed,
    /// The path leads elsewhere than when the call was judged.
    Moved(PathBuf),
    System(io::Error),
}

/// Opens one name in a folder; never through a link, and never out of the folder.
fn step(folder: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Attempt> {
    let flags = flags | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(if flags.contains(OFlags::CREATE) { 0o666 } else { 0 });
    files::open_name(folder.as_fd(), name, flags, mode).map_err(|error| match error {
        // The resolved path had no links, so a link in it is new.
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::AGAIN => Attempt::Changed,
        other => Attempt::System(other.into()),
    })
}

/// Removes each `..` together with the name before it.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

fn missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
