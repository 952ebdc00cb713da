//! The warden of a server: a small process beside it that ends what the server started if the server no longer can.
//!
//! A server that was killed, stopped by a signal or starved cannot end its own processes. Its warden can: it holds a
//! handle on the server and a page of memory with a deadline, which the server moves while it is in contact with its
//! store. When the server has ended, or the deadline passes, every process that descends from the server or carries
//! its mark gets KILL. The warden has a session of its own, ignores the signals that end a server, holds no other
//! file, and exits after the server has ended.
//!
//! Processes of a server that is alive are found through their parents. After its end they are found through the
//! mark in their environment, or because they were there at the previous deadline. Only a process that removed the
//! mark, lost its parent and was never seen escapes; in a sandbox none does, because the kernel ends it.

use std::io;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

use crate::backend;

/// Environment variable that marks every process of a server with a warden.
pub const WARDEN_MARK: &str = "WINDLASS_WARDEN";

static MARK: OnceLock<String> = OnceLock::new();

/// The running warden of this program.
#[derive(Debug)]
pub struct Warden {
    running: Mutex<backend::warden::Running>,
    mark: &'static str,
    helper: Option<Box<Path>>,
}

impl Warden {
    /// Starts the warden of this program, and waits until it is ready. Without a deadline it acts only at the end of
    /// the program, and [`Self::set_deadline`] has no effect. From now on every process of a session carries the mark.
    ///
    /// # Errors
    /// If it cannot be started, or [`io::ErrorKind::Unsupported`] where no process table can be read.
    pub fn start(deadline: Option<Duration>) -> io::Result<Self> {
        Self::with_helper(deadline, None)
    }

    /// Like [`Self::start`], with another program that calls [`crate::enter`] as the helper.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn with_helper(deadline: Option<Duration>, helper: Option<&Path>) -> io::Result<Self> {
        let mark = MARK.get_or_init(|| Uuid::new_v4().simple().to_string());
        Ok(Self {
            running: Mutex::new(backend::warden::Running::start(deadline, mark, helper)?),
            mark,
            helper: helper.map(Box::from),
        })
    }

    /// Moves the deadline, a time on the clock of [`since_boot`]. Starts the warden again if it was killed.
    ///
    /// # Errors
    /// If it cannot be started again.
    pub fn set_deadline(&self, deadline: Duration) -> io::Result<()> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !running.is_alive() {
            *running = backend::warden::Running::start(Some(deadline), self.mark, self.helper.as_deref())?;
        }
        running.set_deadline(deadline)
    }
}

/// Returns the variable that marks the processes of this program, if it has a warden. Every environment that is put
/// together for a child process gets it.
pub fn warden_mark() -> Option<(&'static str, &'static str)> {
    MARK.get().map(|mark| (WARDEN_MARK, mark.as_str()))
}

/// Returns the time since the machine was started, including the time that it was suspended. Nobody sets this clock.
pub fn since_boot() -> Duration {
    let now = clock_gettime(BOOT_CLOCK);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(now.tv_sec).unwrap_or_default(), nanoseconds)
}

#[cfg(all(target_os = "linux", not(windlass_portable)))]
const BOOT_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
const BOOT_CLOCK: ClockId = ClockId::Monotonic;
