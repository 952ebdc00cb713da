//! What is switched on in the terminal, and how it is switched off from anywhere: at the end, in a panic, on a signal.
//!
//! There is one terminal per process, and a panic hook knows nothing but statics; hence these.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Bracketed paste, focus events, keys that can be told apart.
const ENTER: &[u8] = b"\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// The keyboard flags that were pushed last.
const TAKE_OFF: &[u8] = b"\x1b[<1u";
/// The other screen has keyboard flags of its own.
const LEAVE_FULL: &[u8] = b"\x1b[<1u\x1b[?1049l";
/// The end of a frame, wrapping, mouse, focus, paste, keys, look, cursor.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[?7h\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1004l\x1b[?2004l\x1b[<1u\x1b[m\x1b[?25h";

/// How long a terminal that does not read is waited for.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// How many writes a few dozen bytes may take.
const ATTEMPTS: usize = 8;

static HELD: AtomicBool = AtomicBool::new(false);
static FULL: AtomicBool = AtomicBool::new(false);
static SIDE_DOOR: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Switches everything on.
pub(super) fn enter() -> std::io::Result<()> {
    SIDE_DOOR.get_or_init(open_side_door);
    if HELD.swap(false, Ordering::SeqCst) {
        // Taken again without having been left: whoever was in front meanwhile may have changed the mode, and what is
        // pushed twice would have to be taken off twice.
        say(TAKE_OFF);
        let _ = crossterm::terminal::disable_raw_mode();
    }
    crossterm::terminal::enable_raw_mode()?;
    HELD.store(true, Ordering::SeqCst);
    say(ENTER);
    Ok(())
}

/// Switches everything off, once; says whether it was on. Takes no lock that a stuck write could hold.
pub(super) fn leave() -> bool {
    if !HELD.swap(false, Ordering::SeqCst) {
        return false;
    }
    if FULL.swap(false, Ordering::SeqCst) {
        say(LEAVE_FULL);
    }
    say(LEAVE);
    // Nobody is left to tell.
    let _ = crossterm::terminal::disable_raw_mode();
    true
}

/// Remembers which screen is shown. A terminal that is told to leave the other screen without being there may move its
/// cursor all the same, so it is not told on suspicion.
pub(super) fn set_full(is_full: bool) {
    FULL.store(is_full, Ordering::SeqCst);
}

/// Writes past the writer thread, which may be stuck in a write, and gives up on a terminal that does not read.
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

/// The terminal opened once more, because only an open of one's own can be made not to block without changing what the
/// shell and other programs see.
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

/// Standard output without the lock and the buffer of the standard library.
#[derive(Debug)]
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let stdout = std::io::stdout();
        loop {
            match rustix::io::write(&stdout, bytes) {
                // Another program on this terminal may have left it so.
                Err(Errno::AGAIN) if can_write(stdout.as_fd(), None) => {}
                written => return written.map_err(Into::into),
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
