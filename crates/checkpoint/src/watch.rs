//! Notices of the system about changes in watched folders, so that only what changed is looked at again.
//!
//! A folder is watched before it is read: a change is either seen by the reader or reported afterwards. When a
//! notice may have been lost, [`Watch::take`] says so, and the workspace must be scanned.
//!
//! The backend for Linux uses inotify. Other systems have none: there the workspace is always scanned.

#[cfg(all(target_os = "linux", not(windlass_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
mod portable;

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(all(target_os = "linux", not(windlass_portable)))]
pub(super) use self::linux::Watch;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
pub(super) use self::portable::Watch;

/// The part of a name that has to be looked at again.
#[cfg_attr(
    not(all(target_os = "linux", not(windlass_portable))),
    allow(dead_code, reason = "only a system that watches folders makes all of them")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// The name itself.
    Name,
    /// If it is a folder, also everything in it.
    Below,
}

/// Names that changed, by folder.
pub(super) type Touched = BTreeMap<Arc<[u8]>, BTreeMap<Box<[u8]>, Depth>>;

/// Result of adding a name of a file that has several.
#[cfg_attr(
    not(all(target_os = "linux", not(windlass_portable))),
    allow(dead_code, reason = "only a system that watches folders makes all of them")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// The name was known.
    Known,
    /// The name is new. Other names of the same file may be unknown.
    New,
    /// The file cannot be watched.
    Failed,
}
