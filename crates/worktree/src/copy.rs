//! Copies files with their modes and links, and computes their digests on the way.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;
use windlass_sandbox::{folder, is_placeholder};

use crate::digest::Algorithm;
use crate::error::{Context, Result};
use crate::listing::{Group, Listing, each_folder};
use crate::node::{Found, Node, Root, SMALL, Stamp, as_path, find, permissions};

/// A file that was copied.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) path: Vec<u8>,
    pub(crate) node: Node,
    /// Stamp of the copy.
    pub(crate) stamp: Stamp,
    /// Stamp of the original.
    pub(crate) original: Stamp,
}

/// Copies the listed files and folders into an empty folder. What is gone by now is left out. Returns the
/// files in the order of their paths.
pub(crate) fn copy(
    listing: &Listing,
    from: &Root,
    to: &Root,
    algorithm: Algorithm,
    cancel: &CancellationToken,
) -> Result<Vec<Copied>> {
    for path in &listing.folders {
        make_folder(from, to, path).when("copy", &from.full(path))?;
    }
    let files = listing.files.iter().map(Vec::as_slice);
    let mut copied = each_folder(files, cancel, |group, copied| {
        copy_group(group, from, to, algorithm, copied)
    })?;
    copied.sort_unstable_by(|one, two| one.path.cmp(&two.path));
    Ok(copied)
}

/// Creates a folder if the original is a folder. The folders above come first.
fn make_folder(from: &Root, to: &Root, path: &[u8]) -> io::Result<()> {
    let data = match rustix::fs::statat(&from.handle, as_path(path), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(data) if FileType::from_raw_mode(data.st_mode) == FileType::Directory => data,
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if is_placeholder(&data) {
        return Ok(());
    }
    // The sub-agent works here: a folder that is closed to its owner would only be in its way.
    let mode = permissions(&data) | 0o700;
    match rustix::fs::mkdirat(&to.handle, as_path(path), Mode::from_raw_mode(raw(mode))) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn copy_group(
    group: &Group<'_>,
    from: &Root,
    to: &Root,
    algorithm: Algorithm,
    copied: &mut Vec<Copied>,
) -> Result<()> {
    let folder = as_path(group.folder);
    let source = match folder::open_below(&from.handle, folder) {
        Ok(source) => source,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(error) => return Err(error).when("open", &from.full(group.folder)),
    };
    let target = match folder::open_below(&to.handle, folder) {
        Ok(target) => target,
        // The original was not a folder a moment ago.
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error).when("open", &to.full(group.folder)),
    };
    let mut buffer = Vec::new();
    for name in &group.names {
        let path = join(group.folder, name);
        let found = copy_file(source.as_fd(), target.as_fd(), name, algorithm, &mut buffer);
        if let Some((node, stamp, original)) = found.when("copy", &from.full(&path))? {
            copied.push(Copied {
                path,
                node,
                stamp,
                original,
            });
        }
    }
    Ok(())
}

fn copy_file(
    source: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
    name: &[u8],
    algorithm: Algorithm,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<(Node, Stamp, Stamp)>> {
    let (mut file, data) = match find(source, name)? {
        Found::Nothing | Found::Folder | Found::Special => return Ok(None),
        Found::Link(link) => {
            rustix::fs::symlinkat(&link[..], target, name)?;
            let stamp = Stamp::of(&rustix::fs::statat(target, name, AtFlags::SYMLINK_NOFOLLOW)?);
            return Ok(Some((Node::Link { target: link }, stamp, Stamp::default())));
        }
        Found::File(file, data) => (file, data),
    };
    let mode = permissions(&data);
    let mut copy = create(target, name, mode)?;
    let original = Stamp::of(&data);
    let (digest, size) = if original.size <= SMALL {
        buffer.clear();
        file.read_to_end(buffer)?;
        copy.write_all(buffer)?;
        (algorithm.of(buffer), buffer.len() as u64)
    } else {
        // Shares the blocks of the original where the file system can.
        let size = io::copy(&mut file, &mut copy)?;
        copy.rewind()?;
        (algorithm.of_reader(size, &copy)?, size)
    };
    let mut written = rustix::fs::fstat(&copy)?;
    if permissions(&written) != mode {
        rustix::fs::fchmod(&copy, Mode::from_raw_mode(raw(mode)))?;
        written = rustix::fs::fstat(&copy)?;
    }
    let node = Node::File { mode, digest, size };
    Ok(Some((node, Stamp::of(&written), original)))
}

/// Creates a file that does not exist yet.
pub(crate) fn create(folder: impl AsFd, name: &[u8], mode: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(raw(mode)))?;
    Ok(File::from(file))
}

#[allow(clippy::unnecessary_cast, reason = "the type differs from machine to machine")]
pub(crate) fn raw(mode: u32) -> RawMode {
    mode as RawMode
}

pub(crate) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder.is_empty() {
        true => name.to_vec(),
        false => [folder, b"/", name].concat(),
    }
}

/// Copies files of `from` once more, below `to`, where nothing else is.
pub(crate) fn keep<'a>(
    files: impl Iterator<Item = &'a [u8]> + Clone,
    from: &Root,
    to: &Path,
    algorithm: Algorithm,
    cancel: &CancellationToken,
) -> Result<Vec<Copied>> {
    std::fs::create_dir_all(to).when("create", to)?;
    let mut listing = Listing::default();
    listing.extend(files);
    let to = Root::open(to).when("open", to)?;
    copy(&listing, from, &to, algorithm, cancel)
}
