//! Files for our own tools, opened so that the object that was checked is the object that is used.
//!
//! A path is followed by name once, to learn where it leads. Then that real path is opened again from the handle of an
//! allowed root, one name at a time, never through a link, and every folder on the way is compared with what is denied.
//! When somebody swaps a folder for a link in between, the second way fails and both are tried again.

mod place;
mod rules;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub use self::place::Place;
use self::rules::Denied;

/// How often a path may change under our hands before we give up.
const TRIES: usize = 16;

/// How many links one path may lead through, as in the kernel.
const LINKS: usize = 40;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading. A folder can be opened, too.
    Read,
    /// Writing to a file that exists.
    Write,
    /// Writing to a file that does not exist.
    Create,
}

/// Whether the folders of a new file may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parents {
    /// They must exist.
    Exist,
    /// They are made.
    Make,
}

/// Why a path was not opened.
#[derive(Debug, thiserror::Error)]
pub enum PathDenied {
    /// It is one of those that nobody may reach.
    #[error("Path is denied by security policy: {}", .0.display())]
    Denied(PathBuf),
    /// It is nowhere where files may be used.
    #[error("Path is outside allowed paths: {}", .0.display())]
    Outside(PathBuf),
    /// It kept changing while it was looked at.
    #[error("Path changed while it was opened: {}", .0.display())]
    Raced(PathBuf),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    System {
        /// Which path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Where our own tools may use files.
#[derive(Debug)]
pub struct Roots {
    allowed: Vec<(PathBuf, OwnedFd)>,
    /// Nothing is limited; the root of the file system is opened when it is needed.
    anywhere: bool,
    denied: Denied,
}

impl Default for Roots {
    /// Files anywhere, for whoever has limits of their own.
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            anywhere: true,
            denied: Denied::default(),
        }
    }
}

impl Roots {
    /// Opens the allowed folders. A denied path without a slash is a pattern for names, such as `.env*`; the usual
    /// examples (`.env.example`, `.env.sample`, `.env.template`) are no match of any pattern.
    ///
    /// # Errors
    /// When an allowed folder cannot be opened, or a denied path is neither absolute nor a pattern.
    pub fn new(allowed: &[PathBuf], denied: &[PathBuf]) -> io::Result<Self> {
        let open = |root: &PathBuf| {
            let real = fs::canonicalize(root)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let handle = rustix::fs::open(&real, flags, Mode::empty())?;
            Ok((real, handle))
        };
        Ok(Self {
            allowed: allowed.iter().map(open).collect::<io::Result<_>>()?,
            anywhere: false,
            denied: Denied::new(denied)?,
        })
    }

    /// Opens a file. The path must be absolute.
    ///
    /// # Errors
    /// When it is denied, outside, or the system refuses.
    pub fn open(&self, path: &Path, how: OpenMode) -> Result<File, PathDenied> {
        self.retrying(path, |roots| {
            let place = roots.locate_once(path, Parents::Exist)?;
            place.open(how)
        })
    }

    /// The folder of a file, as a handle, and its name in it: what is needed to replace the file as a whole.
    ///
    /// # Errors
    /// When it is denied, outside, or the system refuses.
    pub fn locate(&self, path: &Path, parents: Parents) -> Result<Place<'_>, PathDenied> {
        self.retrying(path, |roots| roots.locate_once(path, parents))
    }

    /// Whether a path is denied by its place or its own name. For paths found by walking from a real folder, which have
    /// no links in them and whose folders were asked about before; opens nothing.
    pub fn denies(&self, real: &Path) -> bool {
        self.denied.covers(real)
            || real
                .file_name()
                .is_some_and(|name| self.denied.names(Path::new(name)))
    }

    /// The denied paths below a folder. For whoever walks there and asks about many files.
    pub fn denied_inside(&self, folder: &Path) -> Vec<PathBuf> {
        self.denied.inside(folder)
    }

    /// Whether a single name is denied, wherever it is.
    pub fn denies_name(&self, name: &OsStr) -> bool {
        self.denied.fits(name)
    }

    /// Opens a regular file that was found by walking from a real folder. Cheaper than [`Self::open`] when there are many:
    /// one call of the system, which follows no link anywhere on the way.
    ///
    /// # Errors
    /// When it is denied, is no regular file, is no longer where it was found, or the system refuses.
    pub fn open_walked(&self, real: &Path) -> Result<File, PathDenied> {
        let denied = || PathDenied::Denied(real.to_owned());
        if self.denies(real) {
            return Err(denied());
        }
        let system = |source: io::Error| PathDenied::System {
            path: real.to_owned(),
            source,
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let file = match rustix::fs::openat2(CWD, real, flags, Mode::empty(), no_links) {
            Ok(file) => File::from(file),
            // Old kernels, and filters that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => self.open(real, OpenMode::Read)?,
            Err(Errno::LOOP) => return Err(PathDenied::Raced(real.to_owned())),
            Err(error) => return Err(system(error.into())),
        };
        let data = rustix::fs::fstat(&file).map_err(|error| system(error.into()))?;
        if rustix::fs::FileType::from_raw_mode(data.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(system(io::ErrorKind::InvalidInput.into()));
        }
        // Another name of a denied file is a second link to it, and few files have one.
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
        let whole;
        let (root, handle) = match self.root_of(path, &real)? {
            Some((root, handle)) => (root, handle.as_fd()),
            None => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                whole = rustix::fs::open("/", flags, Mode::empty())
                    .map_err(|error| Attempt::System(error.into()))?;
                (Path::new("/"), whole.as_fd())
            }
        };
        let below = real.strip_prefix(root).map_err(|_| Attempt::Outside)?;
        let names: Vec<&OsStr> = below.iter().collect();
        let Some((name, folders)) = names.split_last() else {
            let itself = step(handle, OsStr::new("."), OFlags::PATH | OFlags::DIRECTORY)?;
            return Ok(Place::new(
                itself,
                OsString::from("."),
                real.clone(),
                &self.denied,
            ));
        };
        let mut folder = step(handle, OsStr::new("."), OFlags::PATH | OFlags::DIRECTORY)?;
        for part in folders {
            folder = self.descend(&folder, part, parents)?;
        }
        Ok(Place::new(folder, (*name).to_owned(), real.clone(), &self.denied))
    }

    fn descend(&self, folder: &OwnedFd, name: &OsStr, parents: Parents) -> Result<OwnedFd, Attempt> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let next = match step(folder, name, flags) {
            Err(Attempt::System(error)) if missing(&error) && parents == Parents::Make => {
                match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => step(folder, name, flags)?,
                    Err(error) => return Err(Attempt::System(error.into())),
                }
            }
            other => other?,
        };
        self.denied.check(&next)?;
        Ok(next)
    }

    /// The allowed root that a real path is in, `None` when that is everything. `asked` is checked by name, too: a link
    /// with a denied name is denied.
    fn root_of(&self, asked: &Path, real: &Path) -> Result<Option<(&Path, &OwnedFd)>, Attempt> {
        if self.denied.covers(real) || self.denied.covers(asked) {
            return Err(Attempt::Denied);
        }
        if self.anywhere {
            return Ok(None);
        }
        // The innermost root has the shortest way.
        let inside = self.allowed.iter().filter(|(root, _)| real.starts_with(root));
        let root = inside.max_by_key(|(root, _)| root.as_os_str().len());
        let (root, handle) = root.ok_or(Attempt::Outside)?;
        let below = real.strip_prefix(root).map_err(|_| Attempt::Outside)?;
        let asked = asked.file_name().map(Path::new);
        if self.denied.names(below) || asked.is_some_and(|name| self.denied.names(name)) {
            return Err(Attempt::Denied);
        }
        Ok(Some((root, handle)))
    }
}

/// How one attempt failed.
#[derive(Debug)]
enum Attempt {
    Denied,
    Outside,
    /// What was found is not what is there now.
    Changed,
    System(io::Error),
}

/// Opens one name in a folder; never through a link, and never out of it.
fn step(folder: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Attempt> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(if flags.contains(OFlags::CREATE) { 0o666 } else { 0 });
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match rustix::fs::openat2(folder.as_fd(), name, flags, mode, beneath) {
        // Old kernels, and filters that do not know the call. For a single name this means the same.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(folder, name, flags, mode),
        other => other,
    };
    opened.map_err(|error| match error {
        // The way was found without links, so a link on it is new.
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV | Errno::AGAIN => Attempt::Changed,
        other => Attempt::System(other.into()),
    })
}

/// Where a path leads, with every link followed. What does not exist at its end is kept as written.
fn follow(path: &Path, links: usize) -> Result<PathBuf, Attempt> {
    match fs::canonicalize(path) {
        Ok(real) => return Ok(real),
        Err(error) if missing(&error) => {}
        Err(error) => return Err(Attempt::System(error)),
    }
    let (Some(parent), Some(Component::Normal(name))) = (path.parent(), path.components().next_back()) else {
        return Err(Attempt::System(io::ErrorKind::NotFound.into()));
    };
    let real = follow(parent, links)?.join(name);
    match rustix::fs::readlinkat(CWD, &real, Vec::new()) {
        // A link to nothing: what would be made is made where it leads.
        Ok(target) => {
            let target = PathBuf::from(OsStr::from_bytes(target.as_bytes()));
            let links = links.checked_sub(1).ok_or(Attempt::System(Errno::LOOP.into()))?;
            follow(&real.parent().unwrap_or(Path::new("/")).join(target), links)
        }
        Err(_) => Ok(real),
    }
}

fn missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
