//! Writes the index of a worktree. Git itself would read every file again to learn that it is unchanged.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::digest::{Algorithm, Digest};
use crate::error::{Context, Result};
use crate::node::Stamp;

pub(crate) const FILE: u32 = 0o100_644;
pub(crate) const PROGRAM: u32 = 0o100_755;
pub(crate) const LINK: u32 = 0o120_000;
pub(crate) const SUBMODULE: u32 = 0o160_000;

const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;
/// Longest name whose length is in the flags.
const LENGTH: usize = 0xfff;

/// A file in the index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    pub(crate) mode: u32,
    pub(crate) digest: Digest,
    /// Stamp of the file; zero if there is none.
    pub(crate) stamp: Stamp,
    /// True if the file is outside of a sparse checkout.
    pub(crate) is_skipped: bool,
}

/// Writes an index for files in the folder `tree`.
pub(crate) fn write(
    items: &BTreeMap<&[u8], Item>,
    algorithm: Algorithm,
    tree: &Path,
    file: &Path,
) -> Result<()> {
    let owner = std::fs::metadata(tree).when("read", tree)?;
    let version: u32 = if items.values().any(|item| item.is_skipped) {
        3
    } else {
        2
    };
    let mut bytes = b"DIRC".to_vec();
    let put = |bytes: &mut Vec<u8>, number: u32| bytes.extend_from_slice(&number.to_be_bytes());
    put(&mut bytes, version);
    put(&mut bytes, u32::try_from(items.len()).unwrap_or(u32::MAX));
    for (path, item) in items {
        let start = bytes.len();
        let is_there = item.stamp != Stamp::default();
        for time in [item.stamp.ctime, item.stamp.mtime] {
            put(&mut bytes, low(time.div_euclid(1_000_000_000).cast_unsigned()));
            put(&mut bytes, low(time.rem_euclid(1_000_000_000).cast_unsigned()));
        }
        let owned = |number: u64| if is_there { low(number) } else { 0 };
        put(&mut bytes, owned(owner.dev()));
        put(&mut bytes, low(item.stamp.inode));
        put(&mut bytes, item.mode);
        put(&mut bytes, owned(u64::from(owner.uid())));
        put(&mut bytes, owned(u64::from(owner.gid())));
        put(&mut bytes, low(item.stamp.size));
        bytes.extend_from_slice(item.digest.as_bytes());
        let length = u16::try_from(path.len().min(LENGTH)).unwrap_or_default();
        let extended = if item.is_skipped { EXTENDED } else { 0 };
        bytes.extend_from_slice(&(length | extended).to_be_bytes());
        if item.is_skipped {
            bytes.extend_from_slice(&SKIP_WORKTREE.to_be_bytes());
        }
        bytes.extend_from_slice(path);
        // One to eight zeros, so that the next entry starts at a multiple of eight.
        let padding = 8 - (bytes.len() - start) % 8;
        bytes.resize(bytes.len() + padding, 0);
    }
    let digest = algorithm.plain(&bytes);
    bytes.extend_from_slice(digest.as_bytes());
    std::fs::write(file, bytes).when("write", file)
}

/// Returns the lower half, which is all that an index stores.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
