//! Files that redirect git to other settings and hooks. No placeholder can keep their place, because git would follow
//! it. So their folders are watched: a file that a command creates is removed at once, and everything in the sandbox
//! ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// Bytes of notifications that are read at once.
const NOTICES: usize = 4096;

/// The files that must stay absent while a launcher runs. Dropping this ends the watch.
#[derive(Debug)]
pub(super) struct Redirects {
    files: Arc<Files>,
    /// The thread ends when this is closed.
    _alive: OwnedFd,
}

#[derive(Debug)]
struct Files {
    paths: Vec<PathBuf>,
    was_created: AtomicBool,
}

impl Redirects {
    /// Watches the files. `socket` is the connection to the launcher, and is shut down if one of them appears.
    ///
    /// # Errors
    /// If the system refuses to watch a folder.
    pub(super) fn watch(paths: Vec<PathBuf>, socket: OwnedFd) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        for folder in paths.iter().filter_map(|path| path.parent()) {
            inotify::add_watch(&queue, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        }
        let (stopped, alive) = io::pipe()?;
        let files = Arc::new(Files {
            paths,
            was_created: AtomicBool::new(false),
        });
        let watched = Arc::clone(&files);
        std::thread::Builder::new().spawn(move || {
            let stopped = OwnedFd::from(stopped);
            while wait(&queue, &stopped) {
                if watched.remove() {
                    let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
                }
            }
        })?;
        Ok(Self {
            files,
            _alive: alive.into(),
        })
    }

    /// Removes the files that exist. Returns true if one was ever created.
    pub(super) fn remove(&self) -> bool {
        self.files.remove()
    }
}

impl Files {
    fn remove(&self) -> bool {
        for path in &self.paths {
            // Git does not follow anything that is not a file.
            if rustix::fs::unlink(path).is_ok() {
                self.was_created.store(true, Ordering::Release);
            }
        }
        self.was_created.load(Ordering::Acquire)
    }
}

/// Waits until something was created in one of the folders. Returns false at the end of the watch.
fn wait(queue: &OwnedFd, stopped: &OwnedFd) -> bool {
    let mut ready = [queue, stopped].map(|file| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN));
    match poll(&mut ready, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(_) => return false,
    }
    let [_, end] = ready;
    let mut notices = [0; NOTICES];
    while matches!(rustix::io::read(queue, &mut notices), Ok(1..)) {}
    end.revents().is_empty()
}
