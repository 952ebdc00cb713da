//! The base of a worktree: every file that was copied, and where its content is.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::digest::Digest;
use crate::error::{Context, Result, WorktreeError};
use crate::node::{Node, Stamp};

/// Time before the end of the copying, in nanoseconds, within which a file may change again without a new
/// stamp.
const TICK: i64 = 20_000_000;

/// Location of a file's content as it was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// An object of the repository.
    Object,
    /// A second copy in the folder `base`.
    File,
}

/// A file as it was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) node: Node,
    /// Stamp of the copy; zero if the stamp cannot prove that nothing changed.
    pub(crate) stamp: Stamp,
    pub(crate) kept: Kept,
}

/// Files as they were copied, by path.
pub(crate) type Manifest = BTreeMap<Vec<u8>, Entry>;

/// Removes stamps that may not change with the next change of their file.
pub(crate) fn settle(manifest: &mut Manifest, now: i64) {
    for entry in manifest.values_mut() {
        if entry.stamp.ctime.saturating_add(TICK) >= now {
            entry.stamp = Stamp::default();
        }
    }
}

/// Writes the manifest: three texts per file, each with a NUL at the end: numbers, path, and target of a link.
pub(crate) fn write(manifest: &Manifest, file: &Path) -> Result<()> {
    let mut bytes = Vec::with_capacity(manifest.len() * 160);
    for (path, entry) in manifest {
        let Stamp {
            inode,
            size,
            mtime,
            ctime,
        } = entry.stamp;
        let kept = match entry.kept {
            Kept::Object => "object",
            Kept::File => "file",
        };
        let (node, target) = match &entry.node {
            Node::File { mode, digest, size } => (format!("{mode:o} {size} {digest}"), &[][..]),
            Node::Link { target } => ("link 0 -".to_owned(), &target[..]),
        };
        bytes.extend_from_slice(format!("{node} {kept} {inode} {size} {mtime} {ctime}\0").as_bytes());
        bytes.extend_from_slice(path);
        bytes.push(0);
        bytes.extend_from_slice(target);
        bytes.push(0);
    }
    fs::write(file, bytes).when("write", file)
}

/// Reads what [`write`] wrote.
pub(crate) fn read(file: &Path) -> Result<Manifest> {
    let bytes = fs::read(file).when("read", file)?;
    let mut texts = bytes.split(|byte| *byte == 0);
    let mut manifest = Manifest::new();
    while let (Some(numbers), Some(path), Some(target)) = (texts.next(), texts.next(), texts.next()) {
        let entry = entry(numbers, target).ok_or_else(|| WorktreeError::Damaged {
            path: file.to_owned(),
            problem: format!("the entry of `{}` cannot be read", String::from_utf8_lossy(path)),
        })?;
        manifest.insert(path.to_vec(), entry);
    }
    Ok(manifest)
}

fn entry(numbers: &[u8], target: &[u8]) -> Option<Entry> {
    let mut words = std::str::from_utf8(numbers).ok()?.split(' ');
    let (mode, size, digest) = (words.next()?, words.next()?, words.next()?);
    let node = match mode {
        "link" => Node::Link {
            target: target.to_vec(),
        },
        mode => Node::File {
            mode: u32::from_str_radix(mode, 8).ok()?,
            digest: Digest::parse(digest.as_bytes())?,
            size: size.parse().ok()?,
        },
    };
    let kept = match words.next()? {
        "object" => Kept::Object,
        "file" => Kept::File,
        _ => return None,
    };
    let stamp = Stamp {
        inode: words.next()?.parse().ok()?,
        size: words.next()?.parse().ok()?,
        mtime: words.next()?.parse().ok()?,
        ctime: words.next()?.parse().ok()?,
    };
    Some(Entry { node, stamp, kept })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Algorithm;

    #[test]
    fn a_manifest_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("manifest");
        let stamp = Stamp {
            inode: 7,
            size: 3,
            mtime: -5,
            ctime: i64::MAX,
        };
        let digest = Algorithm::Sha256.of(b"abc");
        let manifest = Manifest::from([
            (
                b"a\n\xff b".to_vec(),
                Entry {
                    node: Node::File {
                        mode: 0o755,
                        digest,
                        size: 3,
                    },
                    stamp,
                    kept: Kept::Object,
                },
            ),
            (
                b"link".to_vec(),
                Entry {
                    node: Node::Link {
                        target: b"../x y".to_vec(),
                    },
                    stamp: Stamp::default(),
                    kept: Kept::File,
                },
            ),
        ]);
        write(&manifest, &file).unwrap();
        assert_eq!(read(&file).unwrap(), manifest);
        fs::write(&file, "644 1 abc object 1\0a\0\0").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("`a`"));
        write(&Manifest::new(), &file).unwrap();
        assert_eq!(read(&file).unwrap(), Manifest::new());
    }
}
