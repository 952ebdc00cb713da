//! Opening, stamping and replacing files, the same way for every file tool.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use windlass_core::tool::ToolError;

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
    /// A link whose target does not exist.
    #[error("is a link to something that does not exist")]
    DanglingLink,
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

/// Opens a regular file for reading. Anything else is refused before it can block: the open itself does not wait, and
/// what was opened is what is looked at.
///
/// # Errors
/// When it is missing, not a regular file, or refused by the system.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), DiskError> {
    regular(&fs::metadata(path)?)?;
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    let data = file.metadata()?;
    regular(&data)?;
    Ok((file, data))
}

fn regular(data: &Metadata) -> Result<(), DiskError> {
    let kind = data.file_type();
    let name = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => return Err(DiskError::Folder),
        () if kind.is_fifo() => "named pipe",
        () if kind.is_socket() => "socket",
        () if kind.is_char_device() || kind.is_block_device() => "device",
        () => "special file",
    };
    Err(DiskError::Special(name))
}

/// The file behind a path, with every link followed. `None` when there is none.
///
/// # Errors
/// When the path ends in a link to nothing or cannot be looked at.
pub(crate) fn existing(path: &Path) -> Result<Option<PathBuf>, DiskError> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(Some(real)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(DiskError::DanglingLink),
            Err(_) => Ok(None),
        },
        Err(error) => Err(error.into()),
    }
}

/// Writes a whole file: first beside it under another name, then into place, so that nobody ever sees half of it. An
/// existing file keeps its mode and must still be in the state `expected`; without one the file must not exist.
///
/// # Errors
/// When the state is another one, or the system refuses.
pub(crate) fn replace(path: &Path, expected: Option<Stamp>, content: &[u8]) -> Result<Stamp, DiskError> {
    let folder = path.parent().ok_or(DiskError::Folder)?;
    let mut temporary = new_beside(folder)?;
    temporary.write_all(content)?;
    let file = match expected {
        Some(expected) => {
            let data = fs::metadata(path)?;
            if Stamp::of(&data) != expected {
                return Err(DiskError::Raced);
            }
            temporary.as_file().set_permissions(data.permissions())?;
            temporary.persist(path).map_err(|error| error.error)?
        }
        None => temporary
            .persist_noclobber(path)
            .map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => DiskError::Raced,
                _ => error.error.into(),
            })?,
    };
    Ok(Stamp::of(&file.metadata()?))
}

/// A new file gets the mode that any program would give it; the user's mask decides the rest.
fn new_beside(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".windlass-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

impl DiskError {
    /// The same, told to the model about the file it named.
    pub(crate) fn about(&self, path: &str) -> ToolError {
        let text = match self {
            Self::Folder => format!("{path} is a folder; list_directory shows what is in it."),
            _ => format!("{path}: {self}"),
        };
        match self {
            Self::Raced => ToolError::Transient(text),
            _ => ToolError::Permanent(text),
        }
    }
}
