//! The binary on its own terminal: takes keys and returns the visible screen.

mod keys;

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::{PATIENCE, Run, eventually, must};

/// Number of scrollback rows to keep.
const SCROLLBACK: usize = 10_000;
/// Number of received bytes to keep.
const RAW: usize = 16 * 1024 * 1024;

/// One start of the binary in a terminal. Dropping it kills the binary.
#[derive(Debug)]
pub struct Screen {
    child: Child,
    /// `None` once the terminal is closed.
    pty: Option<Pipes>,
    shared: Arc<Shared>,
}

/// Our ends of the terminal. The reader has its own copy.
struct Pipes {
    pty: Pty,
    /// Dropped to wake the reader.
    wake: PipeWriter,
    reader: JoinHandle<()>,
}

struct Shared {
    state: Mutex<State>,
    /// Signals that something was read, or that the reader's state has changed.
    changed: Condvar,
}

struct State {
    parser: vt100::Parser<Asked>,
    raw: Vec<u8>,
    is_paused: bool,
    is_closing: bool,
    /// Set when the binary and its children have closed the terminal.
    has_ended: bool,
}

/// Terminal modes requested by the binary that the parser does not track.
#[derive(Debug, Default)]
struct Asked {
    /// Number of keyboard flags pushed and not popped.
    keyboard: usize,
}

impl vt100::Callbacks for Asked {
    fn unhandled_csi(
        &mut self,
        _: &mut vt100::Screen,
        intermediate: Option<u8>,
        _: Option<u8>,
        _: &[&[u16]],
        last: char,
    ) {
        match (intermediate, last) {
            (Some(b'>'), 'u') => self.keyboard += 1,
            (Some(b'<'), 'u') => self.keyboard = self.keyboard.saturating_sub(1),
            _ => {}
        }
    }
}

impl Run {
    /// Starts the binary on a terminal of this size. `TERM` and `LANG` are those of a usual terminal unless
    /// set; standard input set on the run is ignored.
    pub fn on_screen(self, columns: u16, rows: u16) -> Screen {
        let mut command = self.into_command();
        for (name, value) in [("TERM", "xterm-256color"), ("LANG", "C.UTF-8")] {
            if !command.get_envs().any(|(set, _)| set == name) {
                command.env(name, value);
            }
        }
        Screen::start(command, columns, rows)
    }
}

impl Screen {
    fn start(command: std::process::Command, columns: u16, rows: u16) -> Self {
        let (pty, inner) = must(open(), "create a terminal");
        must(pty.resize(Size::new(rows, columns)), "resize the terminal");
        let child = must(Command::from(command).spawn(inner), "start the binary");
        let (wakes, wake) = must(std::io::pipe(), "create a pipe");
        let output = File::from(must(pty.as_fd().try_clone_to_owned(), "share the terminal"));
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                parser: vt100::Parser::new_with_callbacks(
                    size(rows),
                    size(columns),
                    SCROLLBACK,
                    Asked::default(),
                ),
                raw: Vec::new(),
                is_paused: false,
                is_closing: false,
                has_ended: false,
            }),
            changed: Condvar::new(),
        });
        let theirs = Arc::clone(&shared);
        let reader = std::thread::spawn(move || theirs.read(output, &wakes));
        Self {
            child,
            pty: Some(Pipes { pty, wake, reader }),
            shared,
        }
    }

    /// Sends text as if typed.
    #[track_caller]
    pub fn type_keys(&mut self, keys: &str) {
        self.send(keys.as_bytes());
    }

    /// Presses one key: `enter`, `esc`, `tab`, `shift-tab`, `up`, `ctrl-r`, `alt-enter`, `pageup`, `x`.
    #[track_caller]
    pub fn press(&mut self, key: &str) {
        let tells_apart = self.shared.state().parser.callbacks().keyboard > 0;
        self.send(&keys::bytes(key, tells_apart));
    }

    /// Pastes text as a terminal with bracketed paste does.
    #[track_caller]
    pub fn paste(&mut self, text: &str) {
        self.send(format!("\u{1b}[200~{text}\u{1b}[201~").as_bytes());
    }

    #[track_caller]
    fn send(&mut self, bytes: &[u8]) {
        match &mut self.pty {
            Some(pipes) => must(pipes.pty.write_all(bytes), "type"),
            None => panic!("the terminal is closed"),
        }
    }

    /// Waits until the visible screen contains `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(&format!("the screen contains `{text}`"), |contents| {
            contents.contains(text)
        });
    }

    /// Waits until the visible screen passes a test; `what` describes it for the failure message.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, test: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.shared.state();
        loop {
            if test(&state.parser.screen().contents()) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || state.has_ended {
                let why = if state.has_ended {
                    "the program has exited, and".to_owned()
                } else {
                    format!("after {PATIENCE:?}")
                };
                let drawn = drawn(state.parser.screen());
                drop(state);
                panic!("{why} it is still not true that {what}\n{drawn}");
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the visible screen as text.
    pub fn contents(&self) -> String {
        self.shared.state().parser.screen().contents()
    }

    /// Returns everything printed and not overwritten, including the scrollback, one row per line.
    pub fn scrollback(&self) -> String {
        let mut screen = self.screen();
        let columns = screen.size().1.get();
        let mut rows = Vec::new();
        for offset in (1..=screen.scrollback_len()).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, columns).next());
        }
        screen.set_scrollback(0);
        rows.extend(screen.rows(0, columns));
        rows.join("\n").trim_end().to_owned()
    }

    /// Returns the screen with its colours, cursor and modes.
    pub fn screen(&self) -> vt100::Screen {
        self.shared.state().parser.screen().clone()
    }

    /// Returns all bytes received so far, up to 16 MB.
    pub fn raw(&self) -> Vec<u8> {
        self.shared.state().raw.clone()
    }

    /// Resizes the terminal.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.shared.state().parser.set_size(size(rows), size(columns));
        if let Some(pipes) = &self.pty {
            must(pipes.pty.resize(Size::new(rows, columns)), "resize the terminal");
        }
    }

    /// Returns the process id of the binary.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the binary.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            must(kill_process(pid, signal), "send a signal");
        }
    }

    /// Stops reading, so that the output of the binary piles up until it can write no more.
    pub fn pause_reading(&mut self) {
        self.shared.state().is_paused = true;
    }

    /// Resumes reading.
    pub fn resume_reading(&mut self) {
        self.shared.state().is_paused = false;
        self.shared.changed.notify_all();
    }

    /// Closes the terminal, like a closed window or a lost connection.
    pub fn hang_up(&mut self) {
        let Some(Pipes { pty, wake, reader }) = self.pty.take() else {
            return;
        };
        self.shared.state().is_closing = true;
        self.shared.changed.notify_all();
        drop(wake);
        let _ = reader.join();
        drop(pty);
    }

    /// Waits for the end of the binary and returns its exit code, or `None` if a signal ended it.
    #[track_caller]
    pub fn wait_exit(&mut self) -> Option<i32> {
        let mut status = None;
        let ended = eventually(PATIENCE, || {
            status = must(self.child.try_wait(), "wait for the binary");
            status.is_some()
        });
        assert!(
            ended,
            "the program did not exit within {PATIENCE:?}\n{}",
            drawn(&self.screen())
        );
        // The last output may still be on its way. Other processes may hold the terminal open; then the
        // output read so far counts.
        let is_read = || {
            let state = self.shared.state();
            state.has_ended || state.is_closing || state.is_paused
        };
        eventually(Duration::from_secs(5), is_read);
        status.and_then(|status| status.code())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.hang_up();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the terminal is closed on either side.
    fn read(&self, mut output: File, wake: &PipeReader) {
        let mut piece = vec![0; 64 * 1024];
        while self.may_read() {
            let mut watched = [
                PollFd::new(&output, PollFlags::IN),
                PollFd::new(wake, PollFlags::IN),
            ];
            if poll(&mut watched, None).is_err() || !self.may_read() {
                continue;
            }
            // A terminal whose other side is closed returns an error.
            let count = output.read(&mut piece).unwrap_or(0);
            let mut state = self.state();
            let bytes = piece.get(..count).unwrap_or_default();
            let room = RAW.saturating_sub(state.raw.len());
            state.raw.extend(bytes.iter().take(room));
            state.parser.process(bytes);
            state.has_ended = bytes.is_empty();
            self.changed.notify_all();
            if state.has_ended {
                return;
            }
        }
    }

    /// Waits while reading is paused; false if reading is over.
    fn may_read(&self) -> bool {
        let waiting = |state: &mut State| state.is_paused && !state.is_closing;
        let waited = self.changed.wait_while(self.state(), waiting);
        !waited.unwrap_or_else(PoisonError::into_inner).is_closing
    }
}

impl std::fmt::Debug for Pipes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Pipes")
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&drawn(self.state().parser.screen()))
    }
}

fn size(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).unwrap_or(NonZeroU16::MIN)
}

/// Draws the screen in a frame, for the message of a failed test.
fn drawn(screen: &vt100::Screen) -> String {
    let columns = screen.size().1.get();
    let edge = "─".repeat(usize::from(columns));
    let mut drawn = format!("┌{edge}┐\n");
    for row in screen.rows(0, columns) {
        drawn.push_str(&format!("│{row}\n"));
    }
    let (row, column) = screen.cursor_position();
    let cursor = if screen.hide_cursor() { "hidden" } else { "shown" };
    drawn.push_str(&format!("└{edge}┘ cursor {cursor} at column {column}, row {row}"));
    drawn
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
