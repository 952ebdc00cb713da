//! Opens, stamps and replaces files in the same way for every file tool.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use windlass_core::tool::ToolError;

use windlass_sandbox::{OpenMode, Parents, PathDenied, Place, Roots};

/// Reason a file could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// The file does not exist.
    #[error("does not exist")]
    Missing,
    /// The path is a folder.
    #[error("is a folder")]
    Folder,
    /// Reading the file could block forever or have side effects.
    #[error("is a {0}, not a regular file")]
    Special(&'static str),
    /// Access to the file is denied.
    #[error("{0}")]
    Denied(String),
    /// The file changed between reading and writing it.
    #[error("was changed by something else at the same moment; read it again")]
    Raced,
    /// The system refused.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for DiskError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::IsADirectory => Self::Folder,
            _ => Self::Io(error),
        }
    }
}

impl From<PathDenied> for DiskError {
    fn from(error: PathDenied) -> Self {
        match error {
            PathDenied::System { source, .. } => source.into(),
            PathDenied::Raced(_) => Self::Raced,
            denied @ (PathDenied::Denied(_) | PathDenied::Outside(_) | PathDenied::Moved { .. }) => {
                Self::Denied(denied.to_string())
            }
        }
    }
}

/// Metadata that distinguishes two states of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: (i64, i64),
    size: u64,
    inode: u64,
}

impl Stamp {
    pub(crate) fn of(data: &Metadata) -> Self {
        Self {
            modified: (data.mtime(), data.mtime_nsec()),
            size: data.size(),
            inode: data.ino(),
        }
    }
}

/// An open regular file, and its path.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) data: Metadata,
    /// Path with every link resolved.
    pub(crate) real: PathBuf,
}

/// Opens a regular file for reading. Anything else is refused before it can block: opening does not wait, and
/// the check is made on the opened file.
///
/// # Errors
/// When the file is denied, missing, not a regular file, or refused by the system.
pub(crate) fn open(roots: &Roots, path: &Path) -> Result<Opened, DiskError> {
    let place = roots.locate(path, Parents::Exist)?;
    open_at(&place)
}

/// Returns the path of a file or folder with every link resolved, from which a walk may start.
///
/// # Errors
/// When the path is denied, missing, or refused by the system.
pub(crate) fn real(roots: &Roots, path: &Path) -> Result<(PathBuf, FileType), DiskError> {
    let place = roots.locate(path, Parents::Exist)?;
    let found = place.look()?.ok_or(DiskError::Missing)?;
    Ok((place.path().to_owned(), FileType::from_raw_mode(found.st_mode)))
}

/// As [`open`], for a place that is already resolved.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_at(place: &Place<'_>) -> Result<Opened, DiskError> {
    let found = place.look()?.ok_or(DiskError::Missing)?;
    regular(FileType::from_raw_mode(found.st_mode))?;
    let file = place.file(OpenMode::Read)?;
    let data = file.metadata()?;
    let found = rustix::fs::fstat(&file).map_err(io::Error::from)?;
    regular(FileType::from_raw_mode(found.st_mode))?;
    Ok(Opened {
        file,
        data,
        real: place.path().to_owned(),
    })
}

fn regular(kind: FileType) -> Result<(), DiskError> {
    let name = match kind {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(DiskError::Folder),
        FileType::Fifo => "named pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        // The path was resolved to its end, so a link here is new.
        FileType::Symlink => return Err(DiskError::Raced),
        FileType::Unknown => "special file",
    };
    Err(DiskError::Special(name))
}

/// File to be changed or created.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    /// The file exists.
    There(Box<(Place<'a>, Opened)>),
    /// The file does not exist. Its folders may be missing as well.
    Absent,
}

/// Looks up a file that is to be changed.
///
/// # Errors
/// When the file is denied, not a regular file, or refused by the system.
pub(crate) fn target<'a>(roots: &'a Roots, path: &Path) -> Result<Target<'a>, DiskError> {
    let place = match roots.locate(path, Parents::Exist).map_err(DiskError::from) {
        Err(DiskError::Missing) => return Ok(Target::Absent),
        other => other?,
    };
    match open_at(&place) {
        Ok(opened) => Ok(Target::There(Box::new((place, opened)))),
        Err(DiskError::Missing) => Ok(Target::Absent),
        Err(error) => Err(error),
    }
}

/// Writes the whole content of an existing file: to a temporary name beside it first, then into place, so
/// that no reader ever sees half of it. The file keeps its mode and must still be in the state `expected`.
///
/// # Errors
/// When the state differs, or the system refuses.
pub(crate) fn replace(place: &Place<'_>, expected: Stamp, content: &[u8]) -> Result<Stamp, DiskError> {
    let now = open_at(place)?.data;
    if Stamp::of(&now) != expected {
        return Err(DiskError::Raced);
    }
    let file = place.replace(content, Some(now.permissions()))?;
    Ok(Stamp::of(&file.metadata()?))
}

/// As [`replace`], by path. Returns the path with every link resolved.
///
/// # Errors
/// As [`replace`], or when the path is denied.
pub(crate) fn rewrite(
    roots: &Roots,
    path: &Path,
    expected: Stamp,
    content: &[u8],
) -> Result<(PathBuf, Stamp), DiskError> {
    let place = roots.locate(path, Parents::Exist)?;
    let stamp = replace(&place, expected, content)?;
    Ok((place.path().to_owned(), stamp))
}

/// Removes a file, which must still be in the state `expected`.
///
/// # Errors
/// When the state differs, the path is denied, or the system refuses.
pub(crate) fn remove(roots: &Roots, path: &Path, expected: Stamp) -> Result<(), DiskError> {
    let place = roots.locate(path, Parents::Exist)?;
    if Stamp::of(&open_at(&place)?.data) != expected {
        return Err(DiskError::Raced);
    }
    Ok(place.remove()?)
}

/// Writes a new file that must not exist, and creates its folders. Returns the path with every link resolved.
///
/// # Errors
/// When the file exists by now, is denied, or the system refuses.
pub(crate) fn create(roots: &Roots, path: &Path, content: &[u8]) -> Result<(PathBuf, Stamp), DiskError> {
    create_as(roots, path, content, None)
}

/// As [`create`], with the mode of another file.
///
/// # Errors
/// As [`create`].
pub(crate) fn create_as(
    roots: &Roots,
    path: &Path,
    content: &[u8],
    permissions: Option<Permissions>,
) -> Result<(PathBuf, Stamp), DiskError> {
    let place = roots.locate(path, Parents::Make)?;
    let file = place
        .create(content, permissions)
        .map_err(|error| match error.into() {
            DiskError::Io(error) if error.kind() == io::ErrorKind::AlreadyExists => DiskError::Raced,
            other => other,
        })?;
    Ok((place.path().to_owned(), Stamp::of(&file.metadata()?)))
}

impl DiskError {
    /// Converts the error into a message to the model about the file it named.
    pub(crate) fn about(&self, path: &str) -> ToolError {
        let text = match self {
            Self::Folder => format!("{path} is a folder; use list_directory to list it."),
            Self::Denied(text) => text.clone(),
            _ => format!("{path}: {self}"),
        };
        match self {
            Self::Raced => ToolError::Transient(text),
            _ => ToolError::Permanent(text),
        }
    }
}
