//! The submodules in git's index. `git status` enters each of them and runs what the settings there name, so the
//! repository of one that is not checked out must stay absent.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum size of an index that is read.
const MAX_INDEX: u64 = 128 << 20;

/// Bytes of an entry before the name of its object.
const FACTS: usize = 40;
/// Offset of the mode in an entry.
const MODE: usize = 24;
/// Mode of a submodule.
const SUBMODULE: u32 = 0o160_000;
/// Flag of an entry that has further flags.
const EXTENDED: u16 = 0x4000;

/// Returns the paths of the submodules in the index of a repository, relative to its files.
pub(super) fn gitlinks(folder: &Path, is_sha256: bool) -> Vec<PathBuf> {
    let path = folder.join("index");
    let is_short = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_INDEX);
    let bytes = if is_short {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    };
    let hash = if is_sha256 { 32 } else { 20 };
    read(&bytes, hash).unwrap_or_default()
}

fn read(bytes: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (number(4)?, number(8)?);
    let (mut at, mut name, mut found) = (12, Vec::new(), Vec::new());
    for _ in 0..count {
        let Some(mode) = number(at + MODE) else { break };
        let flags = at + FACTS + hash;
        let Some(flag) = bytes.get(flags..flags + 2) else {
            break;
        };
        let is_extended = version > 2 && u16::from_be_bytes([flag[0], flag[1]]) & EXTENDED != 0;
        let mut start = flags + if is_extended { 4 } else { 2 };
        if version == 4 {
            let (dropped, next) = varint(bytes, start)?;
            name.truncate(name.len().checked_sub(dropped)?);
            start = next;
        } else {
            name.clear();
        }
        let rest = bytes.get(start..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(rest.get(..length)?);
        if mode == SUBMODULE {
            found.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
        let end = start + length;
        // Entries of older versions are filled up to a multiple of eight, with at least one byte.
        at = if version == 4 {
            end + 1
        } else {
            at + (end - at) / 8 * 8 + 8
        };
    }
    Some(found)
}

/// Reads a number of variable length. Returns it with the offset behind it.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value
            .checked_add(1)?
            .checked_mul(128)?
            .checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &[u8], mode: u32) -> Vec<u8> {
        let mut entry = vec![0; MODE];
        entry.extend(mode.to_be_bytes());
        entry.resize(FACTS + 20, 0);
        entry.extend(u16::try_from(name.len()).expect("short").to_be_bytes());
        entry.extend(name);
        entry.resize(entry.len() / 8 * 8 + 8, 0);
        entry
    }

    #[test]
    fn submodules_are_found() {
        let mut index = b"DIRC\0\0\0\x02\0\0\0\x04".to_vec();
        for (name, mode) in [
            ("a", 0o100_644),
            ("lib/one", SUBMODULE),
            ("lib/two-x", SUBMODULE),
            ("z", 0o120_000),
        ] {
            index.extend(entry(name.as_bytes(), mode));
        }
        let expected = ["lib/one", "lib/two-x"].map(PathBuf::from);
        assert_eq!(read(&index, 20).expect("an index"), expected);
        assert_eq!(read(b"DIRC", 20), None);
        assert_eq!(read(b"", 20), None);
        for end in 0..index.len() {
            // A damaged index is no reason to fail.
            let _ = read(&index[..end], 20);
        }
    }
}
