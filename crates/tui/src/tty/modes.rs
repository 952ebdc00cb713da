//! Terminal modes, and how to switch them off from anywhere: at exit, in a panic, on a signal.
//!
//! There is one terminal per process, and a panic hook has access to nothing but statics; hence these.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Saves the title; bracketed paste, focus events, unambiguous keys.
const ENTER: &[u8] = b"\x1b[22;2t\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// Pops the keyboard flags.
const TAKE_OFF: &[u8] = b"\x1b[<1u";
/// Leaves the alternate screen, which has its own keyboard flags.
const LEAVE_FULL: &[u8] = b"\x1b[<1u\x1b[?1049l";
/// Ends the frame and resets wrapping, mouse, focus, paste, keys, style, cursor and title.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[?7h\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[<1u\x1b[m\x1b[?25h\x1b[23;2t";

/// Maximum wait for a terminal that does not read.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Maximum number of writes for a few dozen bytes.
const ATTEMPTS: usize = 8;

static HELD: AtomicBool = AtomicBool::new(false);
static FULL: AtomicBool = AtomicBool::new(false);
static SIDE_DOOR: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Enables all modes.
pub(super) fn enter() -> std::io::Result<()> {
    SIDE_DOOR.get_or_init(open_side_door);
    if HELD.swap(false, Ordering::SeqCst) {
        // Taken back without being released: another program may have changed the mode, and flags pushed
        // twice would have to be popped twice.
        say(TAKE_OFF);
        let _ = crossterm::terminal::disable_raw_mode();
    }
    crossterm::terminal::enable_raw_mode()?;
    HELD.store(true, Ordering::SeqCst);
    say(ENTER);
    Ok(())
}

/// Disables all modes, once. Returns true if they were enabled. Takes no lock that a stuck write could hold.
pub(super) fn leave() -> bool {
    if !HELD.swap(false, Ordering::SeqCst) {
        return false;
    }
    if FULL.swap(false, Ordering::SeqCst) {
        say(LEAVE_FULL);
    }
    say(LEAVE);
    // There is nobody left to report an error to.
    let _ = crossterm::terminal::disable_raw_mode();
    true
}

/// Records the active screen. A terminal that is told to leave the alternate screen without being there may
/// move its cursor, so the sequence is not sent on suspicion.
pub(super) fn set_full(is_full: bool) {
    FULL.store(is_full, Ordering::SeqCst);
}

/// Writes past the writer thread, which may be stuck in a write, and gives up on a terminal that does not
/// read.
pub(super) fn say(bytes: &[u8]) {
    let stdout = std::io::stdout();
    let door = SIDE_DOOR.get().and_then(Option::as_ref);
    let door = door.map_or(stdout.as_fd(), AsFd::as_fd);
    let mut rest = bytes;
    for _ in 0..ATTEMPTS {
        match rustix::io::write(door, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if can_write(door, Some(&PATIENCE)) => {}
            Err(_) => return,
        }
        if rest.is_empty() {
            return;
        }
    }
}

/// Opens the terminal again, because only a separate open file description can be made non-blocking without
/// affecting the shell and other programs.
fn open_side_door() -> Option<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let by_name = rustix::termios::ttyname(std::io::stdout().as_fd(), Vec::new())
        .and_then(|name| rustix::fs::open(name, flags, Mode::empty()));
    by_name
        .or_else(|_| rustix::fs::open("/dev/tty", flags, Mode::empty()))
        .ok()
}

fn can_write(terminal: BorrowedFd<'_>, limit: Option<&Timespec>) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(terminal, PollFlags::OUT)];
    match poll(&mut wanted, limit) {
        Ok(ready) => ready > 0,
        Err(error) => error == Errno::INTR,
    }
}

/// Standard output without the standard library's lock and buffer.
#[derive(Debug)]
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let stdout = std::io::stdout();
        loop {
            match rustix::io::write(&stdout, bytes) {
                // Another program on this terminal may have left it non-blocking.
                Err(Errno::AGAIN) if can_write(stdout.as_fd(), None) => {}
                written => return written.map_err(Into::into),
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
