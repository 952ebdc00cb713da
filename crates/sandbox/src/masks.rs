//! A mount namespace in which denied paths are hidden and read-only ones cannot be changed.
//!
//! Landlock and the filter, which come after, refuse every mount and unmount, so what is put up here stays.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change, mount_remount,
};
use rustix::thread::{CapabilitySet, UnshareFlags};

use super::policy::{Guard, Settled};
use super::{SandboxError, grants};

const NOTHING_SPECIAL: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// An empty folder that nobody can fill.
const EMPTY: &std::ffi::CStr = c"mode=555,size=4k,nr_inodes=2";

/// Puts the masks up in a namespace of our own, and says which paths of the policy they keep.
///
/// # Errors
/// When one of them inside a writable folder cannot be put up, or a path that must be held is not there.
pub(super) fn put_up(settled: &Settled) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let directory =
        env::current_dir().map_err(|error| SandboxError::system("finding the working directory", error))?;
    own_namespace().map_err(|error| SandboxError::system("making a mount namespace", error))?;
    if settled.has(Guard::Pins) {
        pin(settled)?;
    }
    // Found before the first mount, which changes what is there.
    let (kept, hidden) = (to_keep(settled)?, to_hide(settled)?);
    for path in &kept {
        read_only(path)?;
    }
    let mut masked: BTreeSet<PathBuf> = settled.inside_writable().cloned().collect();
    for path in hidden {
        match hide(&path) {
            Err(error) if settled.writable(&path) => return Err(error),
            // Going around a file means a rule for each of its neighbours, which costs more than a mask.
            Ok(Hidden::File) => drop(masked.insert(path)),
            // Around a folder both are done: it is sound for what comes into being later, and the names are hidden.
            Ok(Hidden::Folder) | Err(_) => {}
        }
    }
    if private_memory(settled) {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount(c"tmpfs", grants::SHARED_MEMORY, c"tmpfs", flags, c"mode=1777")
            .map_err(|error| SandboxError::system("mounting /dev/shm", error))?;
    }
    if settled.has(Guard::Directory) {
        // We still stand on what is now below a mount, and from there a relative path would not meet the masks.
        env::set_current_dir(&directory)
            .map_err(|error| SandboxError::system(format!("entering {}", directory.display()), error))?;
    }
    Ok(masked)
}

/// The files that [`put_up`] would hide now, as far as it may fail to.
///
/// # Errors
/// When a path that must be held is not there.
pub(super) fn hidden_files(settled: &Settled) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let mut places = to_hide(settled)?;
    places.retain(|path| !settled.writable(path) && !path.is_dir());
    Ok(places)
}

/// Whether the shared memory of the machine is replaced by an own one.
pub(super) fn private_memory(settled: &Settled) -> bool {
    let memory = Path::new(grants::SHARED_MEMORY);
    let used = |path: &PathBuf| path.starts_with(memory);
    settled.masks
        && settled.has(Guard::Masks)
        && memory.is_dir()
        && !settled.write.iter().chain(&settled.denied).any(used)
}

/// Tries what [`put_up`] needs.
pub(super) fn probe() -> io::Result<()> {
    own_namespace()?;
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

fn own_namespace() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let capable = rustix::thread::capabilities(None)?
        .effective
        .contains(CapabilitySet::SYS_ADMIN);
    if capable {
        // As root without a user namespace: inside one, root could not work on other people's files.
        unshare(UnshareFlags::NEWNS)?;
    } else {
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        let (user, group) = (user.as_raw(), group.as_raw());
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    // Nothing of what follows may reach the mounts of the machine.
    mount_change(
        c"/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    Ok(())
}

fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: only the table of descriptors must not be unshared, and it is not.
    #[allow(unsafe_code)]
    unsafe {
        rustix::thread::unshare_unsafe(flags)
    }
}

/// Makes a mount of every folder between a writable root and a kept path. A mount cannot be renamed, so the kept path
/// cannot be moved to where nobody looks for it.
fn pin(settled: &Settled) -> Result<(), SandboxError> {
    let mut folders = BTreeSet::new();
    for path in settled.inside_writable() {
        let above = path.ancestors().skip(1);
        let below_root =
            |folder: &&Path| settled.writable(folder) && !settled.write.iter().any(|root| root == folder);
        folders.extend(above.take_while(below_root).filter(|folder| folder.is_dir()));
    }
    // A set of paths is in the order in which outer folders come first.
    for folder in folders {
        mount_bind_recursive(folder, folder).map_err(|error| failed("pinning", folder, error))?;
    }
    Ok(())
}

/// Where the read-only mounts belong.
fn to_keep(settled: &Settled) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let paths = settled.read_only.iter();
    let paths = paths.filter(|path| settled.writable(path) && !path.is_symlink());
    let open = paths.filter(|path| !settled.denied.iter().any(|denied| path.starts_with(denied)));
    open.map(|path| held(path).ok_or_else(|| not_held(path)))
        .collect()
}

/// Where the masks belong. What is below another denied path is hidden with it.
fn to_hide(settled: &Settled) -> Result<BTreeSet<PathBuf>, SandboxError> {
    let mut places = BTreeSet::new();
    for path in settled.denied.iter().filter(|path| !path.is_symlink()) {
        let above = |other: &PathBuf| other != path && path.starts_with(other);
        if settled.denied.iter().any(above) {
            continue;
        }
        match held(path) {
            Some(place) => drop(places.insert(place)),
            None if settled.writable(path) => return Err(not_held(path)),
            None => {}
        }
    }
    // A folder that holds a place hides what somebody has put into it since.
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

/// What a mount forbids already must be said again, or the kernel thinks it should be allowed.
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

/// How a path was hidden.
enum Hidden {
    Folder,
    File,
}

fn hide(path: &Path) -> Result<Hidden, SandboxError> {
    if !path.is_dir() {
        return hide_file(path).map(|()| Hidden::File);
    }
    mount(
        c"tmpfs",
        path,
        c"tmpfs",
        NOTHING_SPECIAL | MountFlags::RDONLY,
        EMPTY,
    )
    .map(|()| Hidden::Folder)
    .map_err(|error| failed("hiding", path, error))
}

/// A device on a mount without devices cannot be opened by anybody, root included.
fn hide_file(path: &Path) -> Result<(), SandboxError> {
    mount_bind(c"/dev/null", path).map_err(|error| failed("hiding", path, error))?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | NOTHING_SPECIAL;
    mount_remount(path, flags, c"").map_err(|error| failed("hiding", path, error))
}

/// What to mount on: the path itself, or the empty folder that holds the place of one of its parents.
fn held(path: &Path) -> Option<PathBuf> {
    let exists = |part: &&Path| fs::symlink_metadata(part).is_ok();
    let part = path.ancestors().find(exists)?;
    (part == path || super::hold::holds_a_place(part)).then(|| part.to_owned())
}

fn not_held(path: &Path) -> SandboxError {
    let source = io::Error::from(io::ErrorKind::NotFound);
    SandboxError::system(format!("holding the place of {}", path.display()), source)
}

fn failed(what: &str, path: &Path, error: rustix::io::Errno) -> SandboxError {
    SandboxError::system(format!("{what} {}", path.display()), error)
}
