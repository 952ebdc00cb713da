//! State of a path, read through folder handles: no link is followed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use windlass_sandbox::{folder, is_placeholder};

use crate::digest::{Algorithm, Digest};

pub(crate) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Files up to this size are read as a whole.
pub(crate) const SMALL: u64 = 1 << 20;

/// Permission of the owner to run a file, the only part of a mode that is compared.
pub(crate) const EXECUTE: u32 = 0o100;

/// A file or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File { mode: u32, digest: Digest, size: u64 },
    Link { target: Vec<u8> },
}

impl Node {
    /// Returns true if a merge need not tell them apart.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { digest: one, .. }, Self::File { digest: two, .. }) => {
                one == two && self.is_executable() == other.is_executable()
            }
            _ => self == other,
        }
    }

    pub(crate) fn is_executable(&self) -> bool {
        matches!(self, Self::File { mode, .. } if mode & EXECUTE != 0)
    }
}

/// Returns true if both are absent, or the same.
pub(crate) fn is_same(one: Option<&Node>, two: Option<&Node>) -> bool {
    match (one, two) {
        (None, None) => true,
        (Some(one), Some(two)) => one.is_same(two),
        _ => false,
    }
}

/// Metadata that changes with every change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Times in nanoseconds.
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
}

impl Stamp {
    #[allow(
        clippy::cast_possible_wrap,
        clippy::cast_lossless,
        clippy::unnecessary_cast,
        reason = "the types of these fields differ from machine to machine"
    )]
    pub(crate) fn of(data: &Stat) -> Self {
        let time = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            inode: data.st_ino as u64,
            size: data.st_size.max(0).cast_unsigned() as u64,
            mtime: time(data.st_mtime as i64, data.st_mtime_nsec as i64),
            ctime: time(data.st_ctime as i64, data.st_ctime_nsec as i64),
        }
    }
}

/// Returns the permissions in a mode.
#[allow(clippy::unnecessary_cast, reason = "the type differs from machine to machine")]
pub(crate) fn permissions(data: &Stat) -> u32 {
    data.st_mode as u32 & 0o777
}

/// Object under a name.
pub(crate) enum Found {
    Nothing,
    File(File, Stat),
    Link(Vec<u8>),
    Folder,
    /// A pipe, a socket or a device.
    Special,
}

/// Opens a name in a folder.
pub(crate) fn find(folder: impl AsFd, name: &[u8]) -> io::Result<Found> {
    let folder = folder.as_fd();
    let file = match rustix::fs::openat(folder, name, READ, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(Errno::LOOP | Errno::MLINK) => {
            return Ok(match rustix::fs::readlinkat(folder, name, Vec::new()) {
                Ok(target) => Found::Link(target.into_bytes()),
                Err(Errno::NOENT | Errno::INVAL) => Found::Nothing,
                Err(error) => return Err(error.into()),
            });
        }
        Err(error) => {
            let data = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            return match FileType::from_raw_mode(data.st_mode) {
                FileType::RegularFile if is_placeholder(&data) => Ok(Found::Nothing),
                FileType::RegularFile => Err(error.into()),
                FileType::Directory => Ok(Found::Folder),
                _ => Ok(Found::Special),
            };
        }
    };
    let data = rustix::fs::fstat(&file)?;
    Ok(match FileType::from_raw_mode(data.st_mode) {
        _ if is_placeholder(&data) => Found::Nothing,
        FileType::RegularFile => Found::File(file, data),
        FileType::Directory => Found::Folder,
        _ => Found::Special,
    })
}

/// Reads the digest of an open file.
pub(crate) fn file_node(algorithm: Algorithm, mut file: File, data: &Stat) -> io::Result<Node> {
    let size = Stamp::of(data).size;
    let mode = permissions(data);
    if size > SMALL {
        let digest = algorithm.of_reader(size, &file)?;
        return Ok(Node::File { mode, digest, size });
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Node::File {
        mode,
        digest: algorithm.of(&content),
        size: content.len() as u64,
    })
}

/// A folder whose files are looked at, one by one.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) handle: OwnedFd,
}

/// State of a path for a merge.
#[derive(Debug)]
pub(crate) enum Seen {
    Nothing,
    Node(Node),
    Folder,
    /// Not a file, link or folder.
    Special,
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            handle: folder::open(path)?,
        })
    }

    /// Opens the folder that contains a path, and returns the name in it.
    pub(crate) fn parent<'a>(&self, path: &'a [u8]) -> Result<(OwnedFd, &'a [u8]), Errno> {
        let (parent, name) = split(path);
        Ok((folder::open_below(&self.handle, as_path(parent))?, name))
    }

    /// Opens a file. There is none if a part of its path is not a folder.
    pub(crate) fn find(&self, path: &[u8]) -> io::Result<Found> {
        match self.parent(path) {
            Ok((folder, name)) => find(folder, name),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Found::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn look(&self, path: &[u8], algorithm: Algorithm) -> io::Result<Seen> {
        Ok(match self.find(path)? {
            Found::Nothing => Seen::Nothing,
            Found::File(file, data) => Seen::Node(file_node(algorithm, file, &data)?),
            Found::Link(target) => Seen::Node(Node::Link { target }),
            Found::Folder => Seen::Folder,
            Found::Special => Seen::Special,
        })
    }

    pub(crate) fn full(&self, path: &[u8]) -> PathBuf {
        self.path.join(as_path(path))
    }
}

/// Splits a path into its folder and its name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (
            path.get(..at).unwrap_or_default(),
            path.get(at + 1..).unwrap_or_default(),
        ),
        None => (b"", path),
    }
}

pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
