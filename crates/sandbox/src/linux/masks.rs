//! Masks: mounts that hide denied paths and keep read-only paths from being changed.
//!
//! Landlock and the system call filter, which are applied later, refuse every mount and unmount, so the masks
//! stay.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive, mount_remount};
use rustix::thread::UnshareFlags;

use super::namespaces;
use super::placeholders::is_placeholder;
use super::resolved::ResolvedPolicy;
use crate::SandboxError;
use crate::policy::Guard;

const NOTHING_SPECIAL: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// Mount options of an empty folder that cannot be filled.
const EMPTY: &std::ffi::CStr = c"mode=555,size=4k,nr_inodes=2";

/// Mounts the masks and returns the paths of the policy that need no rules around them. Must run in a mount
/// namespace.
///
/// # Errors
/// If a mask inside a writable folder cannot be mounted, or a placeholder is missing.
pub(super) fn apply(policy: &ResolvedPolicy) -> Result<BTreeSet<PathBuf>, SandboxError> {
    if policy.has(Guard::Pins) {
        pin(policy)?;
    }
    // Computed before the first mount, which changes the tree.
    let (kept, hidden) = (to_keep(policy)?, to_hide(policy)?);
    for path in &kept {
        read_only(path)?;
    }
    // An absent path outside the writable folders cannot be created by a command. The launcher is replaced
    // when another program creates it.
    let mut masked: BTreeSet<PathBuf> = policy.denied.iter().chain(&policy.read_only).cloned().collect();
    for path in hidden {
        match hide(&path) {
            Ok(()) => {}
            Err(error) if policy.writable(&path) => return Err(error),
            Err(_) => masked.retain(|denied| !denied.starts_with(&path)),
        }
    }
    Ok(masked)
}

/// Tries the operations that [`apply`] needs.
pub(super) fn probe() -> io::Result<()> {
    namespaces::create(UnshareFlags::NEWNS)?;
    mount(
        c"tmpfs",
        c"/tmp",
        c"tmpfs",
        NOTHING_SPECIAL | MountFlags::RDONLY,
        EMPTY,
    )?;
    mount_bind(c"/dev/null", c"/dev/null")?;
    Ok(())
}

/// Turns every folder between a writable root and a protected path into a mount. A mount cannot be renamed,
/// so the protected path cannot be moved away from its rules.
fn pin(policy: &ResolvedPolicy) -> Result<(), SandboxError> {
    let mut folders = BTreeSet::new();
    for path in policy.fixed() {
        let above = path.ancestors().skip(1);
        let below_root =
            |folder: &&Path| policy.writable(folder) && !policy.write.iter().any(|root| root == folder);
        folders.extend(above.take_while(below_root).filter(|folder| folder.is_dir()));
    }
    // The set is sorted, so outer folders come first.
    for folder in folders {
        mount_bind_recursive(folder, folder).map_err(|error| failed("pinning", folder, error))?;
    }
    Ok(())
}

/// Returns the mount points of the read-only mounts.
fn to_keep(policy: &ResolvedPolicy) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let paths = policy.read_only.iter();
    let paths = paths.filter(|path| policy.writable(path) && !path.is_symlink());
    let open = paths.filter(|path| !policy.denied.iter().any(|denied| path.starts_with(denied)));
    let mut places = BTreeSet::new();
    for path in open {
        match mount_point(path) {
            Some(place) => drop(places.insert(place)),
            None if policy.replaces(path) => {}
            None => return Err(no_mount_point(path)),
        }
    }
    Ok(places)
}

/// Returns the mount points of the masks. A path below another denied path is hidden with that one.
fn to_hide(policy: &ResolvedPolicy) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let mut places = BTreeSet::new();
    for path in policy.denied.iter().filter(|path| !path.is_symlink()) {
        let above = |other: &PathBuf| other != path && path.starts_with(other);
        if policy.denied.iter().any(above) {
            continue;
        }
        match mount_point(path) {
            Some(place) => drop(places.insert(place)),
            None if policy.writable(path) && !policy.replaces(path) => return Err(no_mount_point(path)),
            None => {}
        }
    }
    // The mask on a placeholder also hides files that were put into it since.
    let hidden_above = |path: &PathBuf| path.ancestors().skip(1).any(|above| places.contains(above));
    Ok(places
        .iter()
        .filter(|path| !hidden_above(path))
        .cloned()
        .collect())
}

fn read_only(path: &Path) -> Result<(), SandboxError> {
    mount_bind_recursive(path, path).map_err(|error| failed("protecting", path, error))?;
    let flags = flags_of(path).map_err(|error| failed("protecting", path, error))?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | flags;
    mount_remount(path, flags, c"").map_err(|error| failed("protecting", path, error))
}

/// Returns the restrictions of a mount. A remount must repeat them, or the kernel would lift them.
fn flags_of(path: &Path) -> rustix::io::Result<MountFlags> {
    let now = rustix::fs::statvfs(path)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let set = pairs.into_iter().filter(|(flag, _)| now.contains(*flag));
    Ok(set.fold(MountFlags::empty(), |all, (_, flag)| all | flag))
}

fn hide(path: &Path) -> Result<(), SandboxError> {
    if !path.is_dir() {
        return hide_file(path);
    }
    mount(
        c"tmpfs",
        path,
        c"tmpfs",
        NOTHING_SPECIAL | MountFlags::RDONLY,
        EMPTY,
    )
    .map_err(|error| failed("hiding", path, error))
}

/// Hides a file behind a device on a mount without devices, which no user can open, not even root.
fn hide_file(path: &Path) -> Result<(), SandboxError> {
    mount_bind(c"/dev/null", path).map_err(|error| failed("hiding", path, error))?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | NOTHING_SPECIAL;
    mount_remount(path, flags, c"").map_err(|error| failed("hiding", path, error))
}

/// Returns the mount point for a path: the path itself, or the placeholder of one of its parents.
fn mount_point(path: &Path) -> Option<PathBuf> {
    let exists = |part: &&Path| fs::symlink_metadata(part).is_ok();
    let part = path.ancestors().find(exists)?;
    (part == path || is_placeholder(part)).then(|| part.to_owned())
}

fn no_mount_point(path: &Path) -> SandboxError {
    let source = io::Error::from(io::ErrorKind::NotFound);
    SandboxError::system(format!("holding the place of {}", path.display()), source)
}

fn failed(what: &str, path: &Path, error: rustix::io::Errno) -> SandboxError {
    SandboxError::system(format!("{what} {}", path.display()), error)
}
