//! The file system of a launcher: everything read-only, the writable folders mounted back, and folders of
//! devices, processes and temporary files of its own.
//!
//! A read-only mount also refuses what Landlock does not cover: changes of modes, owners, times and
//! attributes.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};

use super::resolved::ResolvedPolicy;
use super::syscalls;
use crate::SandboxError;
use crate::policy::Guard;

pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Folders for temporary files that a private one replaces.
pub(super) use crate::temp::SHARED as TEMPORARY;

/// Devices that give access to nothing.
pub(super) const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    // Without a controlling terminal it cannot be opened; with one, it is a terminal of this sandbox.
    "/dev/tty",
];
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("pts/ptmx", "/dev/ptmx"),
];

const NO_PROGRAMS: MountFlags = MountFlags::NOSUID.union(MountFlags::NOEXEC);

/// A part of the file system that is mounted again after everything has become read-only.
struct Tree {
    path: PathBuf,
    mount: OwnedFd,
}

impl Tree {
    fn of(path: &Path) -> io::Result<Self> {
        Self::at(path, path)
    }

    fn at(source: &Path, path: &Path) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        Ok(Self {
            path: path.to_owned(),
            mount: open_tree(CWD, source, flags)?,
        })
    }

    fn mount(self) -> Result<(), SandboxError> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        let moved = move_mount(&self.mount, c"", CWD, &self.path, flags);
        moved.map_err(|error| failed("mounting", &self.path, error))
    }
}

/// Mounts the file system of the commands. Must run in a mount namespace.
///
/// # Errors
/// If the kernel refuses a mount.
pub(super) fn mount_all(policy: &ResolvedPolicy) -> Result<(), SandboxError> {
    if !policy.has(Guard::Mounts) {
        return shared_memory(policy);
    }
    // While `/proc` can be written.
    if policy.has(Guard::Processes) {
        limit_processes(policy.limits.processes);
    }
    // Taken before anything changes, so that each tree keeps its own flags.
    let trees = trees(policy)?;
    let more = policy.visible.iter().filter(|path| path.starts_with("/dev"));
    let devices: Vec<Tree> = DEVICES
        .iter()
        .map(Path::new)
        .chain(more.map(PathBuf::as_path))
        .filter_map(|path| Tree::of(path).ok())
        .collect();
    if !policy.writes_everywhere() {
        syscalls::read_only_below(Path::new("/"))
            .map_err(|error| SandboxError::system("making the file system read-only", error))?;
    }
    for tree in trees {
        mount_point(&tree)?;
        tree.mount()?;
    }
    own_devices(devices, policy.limits.memory)?;
    if policy.has(Guard::Processes) {
        let flags = NO_PROGRAMS | MountFlags::NODEV | MountFlags::RDONLY;
        mount(c"proc", c"/proc", c"proc", flags, c"")
            .map_err(|error| SandboxError::system("mounting /proc", error))?;
    }
    Ok(())
}

/// Numbers that the kernel gives to the first processes of a namespace and never again.
const RESERVED: u64 = 301;

/// Limits the number of processes in the PID namespace. The usual limit is per user, and does not apply to
/// root. Best effort: before version 6.14 of the kernel, the limit is the whole machine's, and left alone.
fn limit_processes(processes: Option<u64>) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    if let Some(processes) = processes.filter(|_| version >= (6, 14)) {
        let _ = fs::write(
            "/proc/sys/kernel/pid_max",
            processes.saturating_add(RESERVED).to_string(),
        );
    }
}

/// Returns the folders that stay writable, and those that would disappear with the shared temporary folders.
fn trees(policy: &ResolvedPolicy) -> Result<Vec<Tree>, SandboxError> {
    let mut trees = Vec::new();
    if let Some(temp) = &policy.temp {
        for place in TEMPORARY
            .map(Path::new)
            .into_iter()
            .filter(|place| place.is_dir())
        {
            trees.push(Tree::at(temp, place).map_err(|error| failed("opening", temp, error))?);
        }
    }
    let replaced = |path: &Path| {
        policy.temp.is_some()
            && TEMPORARY
                .iter()
                .any(|temp| path.starts_with(temp) && path != Path::new(temp))
    };
    let mut places: Vec<(&PathBuf, bool)> = Vec::new();
    let everywhere = policy.writes_everywhere();
    let back = policy.write.iter().filter(|path| !everywhere || replaced(path));
    places.extend(back.map(|path| (path, true)));
    let visible = policy
        .visible
        .iter()
        .filter(|path| replaced(path) && path.exists());
    places.extend(visible.map(|path| (path, false)));
    places.sort();
    for (path, writable) in places {
        if policy.temp.is_some() && TEMPORARY.iter().any(|temp| path == Path::new(temp)) {
            continue;
        }
        let tree = Tree::of(path).map_err(|error| failed("opening", path, error))?;
        if !writable {
            syscalls::read_only(&tree.mount).map_err(|error| failed("protecting", path, error))?;
        }
        trees.push(tree);
    }
    Ok(trees)
}

/// Creates the folder that a tree is mounted on. It is missing only inside a private temporary folder.
fn mount_point(tree: &Tree) -> Result<(), SandboxError> {
    if tree.path.exists() {
        return Ok(());
    }
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&tree.path);
    made.map_err(|error| SandboxError::system(format!("creating {}", tree.path.display()), error))
}

fn own_devices(devices: Vec<Tree>, memory: Option<u64>) -> Result<(), SandboxError> {
    let dev = |what: &str, error: io::Error| SandboxError::system(what, error);
    mount(c"tmpfs", c"/dev", c"tmpfs", NO_PROGRAMS, c"mode=755,size=64k")
        .map_err(|error| dev("mounting /dev", error.into()))?;
    for device in devices {
        if let Some(folder) = device.path.parent() {
            fs::create_dir_all(folder).map_err(|error| dev("creating a folder of devices", error))?;
        }
        fs::File::create(&device.path).map_err(|error| dev("creating a device", error))?;
        device.mount()?;
    }
    for (target, link) in LINKS {
        symlink(target, link).map_err(|error| dev("creating a link to a device", error))?;
    }
    for folder in ["/dev/pts", SHARED_MEMORY] {
        fs::create_dir(folder).map_err(|error| dev("creating a folder of devices", error))?;
    }
    let terminals = c"newinstance,ptmxmode=0666,mode=620";
    mount(c"devpts", c"/dev/pts", c"devpts", NO_PROGRAMS, terminals)
        .map_err(|error| dev("mounting /dev/pts", error.into()))?;
    mount_memory(memory)?;
    syscalls::read_only_mount(Path::new("/dev")).map_err(|error| dev("protecting /dev", error))
}

/// Mounts private shared memory over the machine's.
fn shared_memory(policy: &ResolvedPolicy) -> Result<(), SandboxError> {
    let used = |path: &PathBuf| path.starts_with(SHARED_MEMORY);
    if !Path::new(SHARED_MEMORY).is_dir() || policy.write.iter().chain(&policy.denied).any(used) {
        return Ok(());
    }
    mount_memory(policy.limits.memory)
}

/// Mounts private shared memory with room for as much as a command may use.
fn mount_memory(memory: Option<u64>) -> Result<(), SandboxError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let size = memory.map(|memory| format!(",size={memory}")).unwrap_or_default();
    let options = CString::new(format!("mode=1777{size}")).unwrap_or_default();
    mount(c"tmpfs", SHARED_MEMORY, c"tmpfs", flags, options.as_c_str())
        .map_err(|error| SandboxError::system("mounting /dev/shm", error))
}

fn failed(what: &str, path: &Path, error: impl Into<io::Error>) -> SandboxError {
    SandboxError::system(format!("{what} {}", path.display()), error.into())
}
