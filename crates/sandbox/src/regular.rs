//! Reading files whose kind and size are not known: a pipe or a device must not block or flood this process.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Reads a file of the user. Links are followed; anything but a regular file is refused before it is read.
///
/// # Errors
/// If the file is not a regular one, or larger than `max` bytes ([`io::ErrorKind::FileTooLarge`]), or the system
/// refuses.
pub fn read_regular(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let (bytes, is_cut) = read_open(file, max)?;
    match is_cut {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

/// Reads at most `max` bytes of an open file, which must be a regular one. Also returns true if there are more.
///
/// # Errors
/// If the file is not a regular one, or the system refuses.
pub fn read_open(file: File, max: u64) -> io::Result<(Vec<u8>, bool)> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    let most = usize::try_from(max).unwrap_or(usize::MAX);
    let is_cut = bytes.len() > most;
    bytes.truncate(most);
    Ok((bytes, is_cut))
}
