//! Reading files whose kind and size are not known: a pipe or a device must not block or flood this process.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
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

/// Reads a file that the user named: a regular one, or what the shell puts in place of `<(…)`. A pipe is read until its
/// writers are done, and a pipe without a writer is refused, because nobody would ever come.
///
/// # Errors
/// If nothing was written to a pipe, or the content is larger than `max` bytes
/// ([`io::ErrorKind::FileTooLarge`]), or the system refuses.
pub fn read_given(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty())?;
    let file = File::from(opened);
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder"));
    }
    if !kind.is_file() {
        // Without a writer, reading ends at once.
        rustix::fs::fcntl_setfl(&file, OFlags::RDONLY)?;
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("this is larger than {}", windlass_core::text::size(max)),
        ));
    }
    if kind.is_fifo() && bytes.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is a pipe, and nothing was written to it",
        ));
    }
    Ok(bytes)
}

/// Reads text that the user named, like [`read_given`].
///
/// # Errors
/// As [`read_given`], and if the content is not UTF-8.
pub fn read_given_text(path: &Path, max: u64) -> io::Result<String> {
    let bytes = read_given(path, max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "this is not UTF-8 text"))
}

/// Reads at most `max` bytes of an open file, which must be a regular one. Also returns true if there are more.
///
/// # Errors
/// If the file is not a regular one, or the system refuses.
pub fn read_open(file: File, max: u64) -> io::Result<(Vec<u8>, bool)> {
    let data = file.metadata()?;
    if !data.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is not a regular file",
        ));
    }
    // With room for all of it, a small file takes two reads.
    let room = usize::try_from(data.len().min(max)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(room.saturating_add(1));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    let most = usize::try_from(max).unwrap_or(usize::MAX);
    let is_cut = bytes.len() > most;
    bytes.truncate(most);
    Ok((bytes, is_cut))
}
