//! Opening, stamping and replacing files, the same way for every file tool.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use windlass_core::tool::ToolError;

use windlass_sandbox::{OpenMode, Parents, PathDenied, Place, Roots};

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiskError {
    /// It is not there.
    #[error("does not exist")]
    Missing,
    /// It is a folder.
    #[error("is a folder")]
    Folder,
    /// Reading it could wait for ever or have an effect.
    #[error("is a {0}, not a regular file")]
    Special(&'static str),
    /// Nobody may use it.
    #[error("{0}")]
    Denied(String),
    /// Somebody else changed it between our look and our write.
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
            denied @ (PathDenied::Denied(_) | PathDenied::Outside(_)) => Self::Denied(denied.to_string()),
        }
    }
}

/// What tells one state of a file from another.
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

/// A regular file that is open, and where it is.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) data: Metadata,
    /// With every link followed.
    pub(crate) real: PathBuf,
}

/// Opens a regular file for reading. Anything else is refused before it can block: the open itself does not wait, and
/// what was opened is what is looked at.
///
/// # Errors
/// When it is denied, missing, not a regular file, or refused by the system.
pub(crate) fn open(roots: &Roots, path: &Path) -> Result<Opened, DiskError> {
    let place = roots.locate(path, Parents::Exist)?;
    open_at(&place)
}

/// Where a file or folder is, with every link followed: where a walk may begin.
///
/// # Errors
/// When it is denied, missing, or refused by the system.
pub(crate) fn real(roots: &Roots, path: &Path) -> Result<(PathBuf, FileType), DiskError> {
    let place = roots.locate(path, Parents::Exist)?;
    let found = place.look()?.ok_or(DiskError::Missing)?;
    Ok((place.path().to_owned(), FileType::from_raw_mode(found.st_mode)))
}

/// As [`open`], at a place that was found before.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_at(place: &Place<'_>) -> Result<Opened, DiskError> {
    let found = place.look()?.ok_or(DiskError::Missing)?;
    regular(FileType::from_raw_mode(found.st_mode))?;
    let file = place.file(OpenMode::Read)?;
    let data = file.metadata()?;
    regular(FileType::from_raw_mode(data.mode()))?;
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
        // The way was followed to its end, so a link is new.
        FileType::Symlink => return Err(DiskError::Raced),
        FileType::Unknown => "special file",
    };
    Err(DiskError::Special(name))
}

/// Whether there is a file to change, or one to make.
#[derive(Debug)]
pub(crate) enum Target<'a> {
    /// It exists.
    There(Box<(Place<'a>, Opened)>),
    /// It does not. Its folders may be missing, too.
    Absent,
}

/// Looks for a file that is to be changed.
///
/// # Errors
/// When it is denied, not a regular file, or refused by the system.
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

/// Writes a whole file that exists: first beside it under another name, then into place, so that nobody ever sees half
/// of it. It keeps its mode and must still be in the state `expected`.
///
/// # Errors
/// When the state is another one, or the system refuses.
pub(crate) fn replace(place: &Place<'_>, expected: Stamp, content: &[u8]) -> Result<Stamp, DiskError> {
    let now = open_at(place)?.data;
    if Stamp::of(&now) != expected {
        return Err(DiskError::Raced);
    }
    let file = place.replace(content, Some(now.permissions()))?;
    Ok(Stamp::of(&file.metadata()?))
}

/// As [`replace`], by its path. Where it is, with every link followed.
///
/// # Errors
/// As [`replace`], or when it is denied.
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
/// When the state is another one, it is denied, or the system refuses.
pub(crate) fn remove(roots: &Roots, path: &Path, expected: Stamp) -> Result<(), DiskError> {
    let place = roots.locate(path, Parents::Exist)?;
    if Stamp::of(&open_at(&place)?.data) != expected {
        return Err(DiskError::Raced);
    }
    Ok(place.remove()?)
}

/// Writes a whole file that must not exist, and makes its folders. Where it is, with every link followed.
///
/// # Errors
/// When it exists by now, is denied, or the system refuses.
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
    /// The same, told to the model about the file it named.
    pub(crate) fn about(&self, path: &str) -> ToolError {
        let text = match self {
            Self::Folder => format!("{path} is a folder; list_directory shows what is in it."),
            Self::Denied(text) => text.clone(),
            _ => format!("{path}: {self}"),
        };
        match self {
            Self::Raced => ToolError::Transient(text),
            _ => ToolError::Permanent(text),
        }
    }
}
