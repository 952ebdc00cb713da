//! Watches folders with inotify.
//!
//! A thread reads the notices as they come, because the queue of the kernel is short. Not reported by inotify,
//! and handled here: a file with several names is watched itself, since a change is reported in the folder of
//! the name that was used; a mount inside the workspace hides what is there, so the mounts are compared; file
//! systems that change elsewhere, such as NFS, are not watched at all. A change through a memory mapping is
//! reported when the mapping ends.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::{Added, Depth, Touched};

/// Names that may wait to be looked at. A scan is cheaper than more of them.
const MOST_NAMES: usize = 50_000;
const BUFFER: usize = 64 << 10;

/// Notices about the names in a folder.
const FOLDER: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// Notices about a file itself.
const FILE: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE);

/// Local file systems, of which the kernel sees every change: ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS,
/// bcachefs and overlayfs.
const LOCAL: [u64; 8] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0xF2F5_2010,
    0x2FC1_2FC1,
    0xCA45_1A4E,
    0x794C_7630,
];

const MOUNTS: &str = "/proc/self/mountinfo";

/// Watched folders.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    stop: OwnedFd,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    queue: OwnedFd,
    root: PathBuf,
    /// Maximum number of watches.
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Targets of each watch. A file has several names, and a folder that was moved has two for a while.
    watches: HashMap<i32, Vec<Target>>,
    folders: HashMap<Arc<[u8]>, i32>,
    touched: Touched,
    count: usize,
    /// True if notices may be missing since the last time they were taken.
    lost: bool,
    /// True if something cannot be watched.
    failed: bool,
    /// Mounts inside the workspace.
    mounts: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
struct Target {
    folder: Arc<[u8]>,
    /// The file in the folder; `None` for the folder itself.
    name: Option<Box<[u8]>>,
}

impl Watch {
    /// Starts to watch at most `most` folders and files. Returns `None` if the system has no room for another
    /// watcher.
    pub(crate) fn start(root: &Path, most: usize) -> Option<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
        let shared = Arc::new(Shared {
            queue,
            root: root.to_owned(),
            most,
            state: Mutex::default(),
        });
        let mounts = std::fs::File::open(MOUNTS).ok()?;
        shared.lock().mounts = mounts_below(root)?;
        let (ended, other) = (stop.try_clone().ok()?, Arc::clone(&shared));
        let reader = std::thread::Builder::new()
            .name("folder-watch".to_owned())
            .spawn(move || other.run(&ended, &mounts.into()))
            .ok()?;
        Some(Self {
            shared,
            stop,
            reader: Some(reader),
        })
    }

    /// Watches a folder from now on.
    pub(crate) fn add(&self, path: &Arc<[u8]>, folder: BorrowedFd<'_>) {
        let mut state = self.shared.lock();
        let is_local = rustix::fs::fstatfs(folder).is_ok_and(|data| is_local(&data));
        let target = Target {
            folder: Arc::clone(path),
            name: None,
        };
        let watch = is_local.then(|| self.shared.watch(&mut state, folder, FOLDER, target));
        match watch.flatten() {
            Some((watch, _)) => drop(state.folders.insert(Arc::clone(path), watch)),
            None => state.failed = true,
        }
    }

    /// Watches a file that has several names.
    pub(crate) fn add_linked(&self, path: &Arc<[u8]>, name: &[u8], file: BorrowedFd<'_>) -> Added {
        let mut state = self.shared.lock();
        let target = Target {
            folder: Arc::clone(path),
            name: Some(Box::from(name)),
        };
        match self.shared.watch(&mut state, file, FILE, target) {
            Some((_, added)) => added,
            None => {
                state.failed = true;
                Added::Failed
            }
        }
    }

    /// Stops watching a folder that is gone.
    pub(crate) fn forget(&self, path: &[u8]) {
        let mut state = self.shared.lock();
        let Some(watch) = state.folders.remove(path) else {
            return;
        };
        let Some(targets) = state.watches.get_mut(&watch) else {
            return;
        };
        targets.retain(|target| *target.folder != *path);
        if targets.is_empty() {
            state.watches.remove(&watch);
            let _ = inotify::remove_watch(&self.shared.queue, watch);
        }
    }

    /// Returns false if something cannot be watched: then only a scan finds everything.
    pub(crate) fn works(&self) -> bool {
        !self.shared.lock().failed
    }

    /// Returns the names that changed since the last call; `None` if they are not known completely.
    pub(crate) fn take(&self) -> Option<Touched> {
        let mut state = self.shared.lock();
        self.shared.read(&mut state);
        state.count = 0;
        let touched = std::mem::take(&mut state.touched);
        let is_complete = !std::mem::take(&mut state.lost) && !state.failed;
        is_complete.then_some(touched)
    }

    #[cfg(test)]
    pub(crate) fn lose(&self) {
        self.shared.lock().note(-1, ReadFlags::QUEUE_OVERFLOW, None);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads notices until `ended` is signaled.
    fn run(&self, ended: &OwnedFd, mounts: &OwnedFd) {
        loop {
            let mut waits = [
                PollFd::new(&self.queue, PollFlags::IN),
                PollFd::new(ended, PollFlags::IN),
                PollFd::new(mounts, PollFlags::PRI),
            ];
            match poll(&mut waits, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => {
                    self.lock().failed = true;
                    return;
                }
            }
            let [queue, ended, mounts] = waits.map(|wait| !wait.revents().is_empty());
            if ended {
                return;
            }
            if queue {
                self.read(&mut self.lock());
            }
            if mounts {
                let mut state = self.lock();
                let now = mounts_below(&self.root);
                // What is mounted now is watched by nobody.
                state.failed |= now.is_none_or(|now| now != state.mounts);
            }
        }
    }

    /// Reads everything that is queued. The lock is held meanwhile, so that no notice is on its way.
    fn read(&self, state: &mut State) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(std::ffi::CStr::to_bytes);
                    state.note(event.wd(), event.events(), name);
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    state.failed = true;
                    return;
                }
            }
        }
    }

    fn watch(
        &self,
        state: &mut State,
        handle: BorrowedFd<'_>,
        flags: WatchFlags,
        target: Target,
    ) -> Option<(i32, Added)> {
        if state.failed || state.watches.len() >= self.most {
            return None;
        }
        // By handle: a path could lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let watch = inotify::add_watch(&self.queue, path, flags).ok()?;
        let targets = state.watches.entry(watch).or_default();
        if targets.contains(&target) {
            return Some((watch, Added::Known));
        }
        targets.push(target);
        Some((watch, Added::New))
    }
}

impl State {
    fn note(&mut self, watch: i32, what: ReadFlags, name: Option<&[u8]>) {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.lost = true;
            return;
        }
        if what.contains(ReadFlags::UNMOUNT) {
            self.failed = true;
        }
        if what.contains(ReadFlags::IGNORED) {
            self.watches.remove(&watch);
            return;
        }
        if self.lost || self.failed {
            return;
        }
        let comes = ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::ATTRIB;
        let depth = if what.contains(ReadFlags::ISDIR) && what.intersects(comes) {
            Depth::Below
        } else {
            Depth::Name
        };
        let Some(targets) = self.watches.get(&watch) else {
            // Of a folder that is gone, or that was added again under another name.
            return;
        };
        for target in targets {
            let is_moved = what.intersects(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF);
            match (name, target.name.as_deref()) {
                (Some(name), None) | (None, Some(name)) if !is_moved => {
                    let names = self.touched.entry(Arc::clone(&target.folder)).or_default();
                    let known = names.entry(Box::from(name)).or_insert_with(|| {
                        self.count += 1;
                        depth
                    });
                    *known = depth.max(*known);
                }
                // The workspace itself. Of other folders the one around them is told.
                (None, None) if is_moved && target.folder.is_empty() => self.failed = true,
                _ => {}
            }
        }
        if self.count > MOST_NAMES {
            self.lost = true;
            self.touched.clear();
        }
    }
}

#[allow(
    clippy::cast_sign_loss,
    clippy::unnecessary_cast,
    clippy::cast_lossless,
    reason = "the type of a file system's number differs from machine to machine"
)]
fn is_local(data: &rustix::fs::StatFs) -> bool {
    LOCAL.contains(&(data.f_type as u64 & 0xFFFF_FFFF))
}

/// Returns the lines about mounts inside a folder.
fn mounts_below(root: &Path) -> Option<Vec<u8>> {
    let all = std::fs::read(MOUNTS).ok()?;
    // Spaces and backslashes in a path are written as numbers.
    let mut prefix = Vec::new();
    for byte in root.as_os_str().as_bytes() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => prefix.extend(format!("\\{byte:03o}").bytes()),
            byte => prefix.push(*byte),
        }
    }
    let is_below = |line: &&[u8]| {
        let place = line.split(|byte| *byte == b' ').nth(4).unwrap_or_default();
        place
            .strip_prefix(&*prefix)
            .is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
    };
    Some(
        all.split(|byte| *byte == b'\n')
            .filter(is_below)
            .collect::<Vec<_>>()
            .join(&b'\n'),
    )
}

#[cfg(test)]
#[path = "linux_tests.rs"]
mod tests;
