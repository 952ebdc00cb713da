//! State of a path, as far as it can be restored.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use windlass_core::checkpoint::Changed;

/// A path below the workspace, or an absolute one, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    pub(super) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    pub(super) fn of(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }

    /// Joins a folder and a name.
    pub(super) fn join(folder: &[u8], name: &[u8]) -> Self {
        let mut path = Vec::with_capacity(folder.len() + name.len() + 1);
        path.extend_from_slice(folder);
        if !folder.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Self(path)
    }

    /// Returns the number of folders above the path.
    pub(super) fn depth(&self) -> usize {
        self.0.iter().filter(|byte| **byte == b'/').count()
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

/// Serialized form: text if the path is valid UTF-8, otherwise a list of numbers.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Raw(Vec<u8>),
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Text(text) => Self(text.into_bytes()),
            Written::Raw(bytes) => Self(bytes),
        })
    }
}

/// Digest of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest(pub(super) [u8; 32]);

impl Digest {
    pub(super) fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self(*blake3::Hash::from_hex(text).ok()?.as_bytes()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digest = blake3::Hash::from_hex(&text).map_err(serde::de::Error::custom)?;
        Ok(Self(*digest.as_bytes()))
    }
}

/// State of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Node {
    /// A file whose content is stored.
    File {
        /// Permissions.
        mode: u32,
        /// Digest of the content.
        digest: Digest,
        /// Size in bytes.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// Target of the link.
        target: Bytes,
    },
    /// A folder.
    Folder {
        /// Permissions.
        mode: u32,
    },
    /// A file or folder whose content is not stored. Two are equal if their metadata is equal.
    Skipped {
        /// Reason.
        why: Skip,
        /// Permissions and kind.
        mode: u32,
        /// Size in bytes.
        size: u64,
        /// Modification time.
        mtime: i64,
    },
}

/// Reason a content is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Skip {
    /// The file is larger than the limit.
    Large,
    /// The stored contents of the workspace would exceed the limit.
    Full,
    /// A folder that is ignored, and larger than the limit.
    Ignored,
    /// The file cannot be read.
    Unreadable,
    /// A pipe, a socket or a device.
    Special,
}

impl Skip {
    /// Returns the reason, for people.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Large => "larger than the limit for one file",
            Self::Full => "the limit for all files together is reached",
            Self::Ignored => "ignored by version control, and larger than the limit for ignored files",
            Self::Unreadable => "cannot be read",
            Self::Special => "not a regular file",
        }
    }
}

/// One path before and after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    /// The path.
    pub(super) path: Bytes,
    /// State before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Node>,
    /// State after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<Node>,
}

impl Change {
    /// Returns the reverse change.
    pub(super) fn back(&self) -> Self {
        Self {
            path: self.path.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
        }
    }

    /// Returns the kind of change.
    pub(super) fn what(&self) -> Changed {
        match (&self.before, &self.after) {
            (None, _) => Changed::Created,
            (_, None) => Changed::Deleted,
            (Some(Node::File { digest: old, .. }), Some(Node::File { digest: new, .. })) if old == new => {
                Changed::Mode
            }
            (Some(Node::Folder { .. }), Some(Node::Folder { .. })) => Changed::Mode,
            (Some(before), Some(after)) if before.kind() == after.kind() => Changed::Modified,
            _ => Changed::Replaced,
        }
    }

    /// Returns the reason this change cannot be undone or redone, if any.
    pub(super) fn uncovered(&self) -> Option<Skip> {
        [&self.before, &self.after]
            .into_iter()
            .flatten()
            .find_map(|node| match node {
                Node::Skipped { why, .. } => Some(*why),
                _ => None,
            })
    }
}

impl Node {
    fn kind(&self) -> u8 {
        match self {
            Self::File { .. } => 0,
            Self::Link { .. } => 1,
            Self::Folder { .. } => 2,
            Self::Skipped { .. } => 3,
        }
    }

    /// Returns true if both are of the same kind, so that one can be written over the other.
    pub(super) fn fits(&self, other: &Self) -> bool {
        self.kind() == other.kind()
    }
}
