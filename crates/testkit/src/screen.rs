//! The binary on a terminal of its own: keys go in, and what a person would see comes out.

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

/// How many rows that scrolled away are kept.
const SCROLLBACK: usize = 10_000;
/// How many received bytes are kept.
const RAW: usize = 16 * 1024 * 1024;

/// One start of the binary in a terminal. Dropped, the binary is killed.
#[derive(Debug)]
pub struct Screen {
    child: Child,
    /// `None` once the terminal is gone.
    pty: Option<Pipes>,
    shared: Arc<Shared>,
}

/// Our ends of the terminal. The reader has a copy of its own.
struct Pipes {
    pty: Pty,
    /// Closed to wake the reader up.
    wake: PipeWriter,
    reader: JoinHandle<()>,
}

struct Shared {
    state: Mutex<State>,
    /// Something was read, or how to go on has changed.
    changed: Condvar,
}

struct State {
    parser: vt100::Parser<Asked>,
    raw: Vec<u8>,
    is_paused: bool,
    is_closing: bool,
    /// The binary and its children have let go of the terminal.
    has_ended: bool,
}

/// What the binary asked of the terminal that the parser does not keep.
#[derive(Debug, Default)]
struct Asked {
    /// How many times keyboard flags were pushed and not popped.
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
    /// Starts it on a terminal of so many columns and rows. `TERM` and `LANG` are those of a usual terminal unless they are
    /// set; what was to be piped in is not.
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
        let (pty, inner) = must(open(), "make a terminal");
        must(pty.resize(Size::new(rows, columns)), "give the terminal its size");
        let child = must(Command::from(command).spawn(inner), "start the binary");
        let (wakes, wake) = must(std::io::pipe(), "make a pipe");
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

    /// Sends text as if it were typed.
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

    /// Pastes text as a terminal does that was asked to mark it.
    #[track_caller]
    pub fn paste(&mut self, text: &str) {
        self.send(format!("\u{1b}[200~{text}\u{1b}[201~").as_bytes());
    }

    #[track_caller]
    fn send(&mut self, bytes: &[u8]) {
        match &mut self.pty {
            Some(pipes) => must(pipes.pty.write_all(bytes), "type"),
            None => panic!("there is no terminal to type on"),
        }
    }

    /// Waits until the visible screen contains `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(&format!("the screen says `{text}`"), |contents| {
            contents.contains(text)
        });
    }

    /// Waits until the visible screen passes a test; `what` is the sentence that is true then.
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
                    "the program has ended and".to_owned()
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

    /// The visible screen as text.
    pub fn contents(&self) -> String {
        self.shared.state().parser.screen().contents()
    }

    /// Everything that was printed and is not overwritten, with what scrolled away, one row per line.
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

    /// The screen with everything a terminal knows of it: colours, the cursor, modes.
    pub fn screen(&self) -> vt100::Screen {
        self.shared.state().parser.screen().clone()
    }

    /// All bytes received so far, up to 16 MB.
    pub fn raw(&self) -> Vec<u8> {
        self.shared.state().raw.clone()
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.shared.state().parser.set_size(size(rows), size(columns));
        if let Some(pipes) = &self.pty {
            must(
                pipes.pty.resize(Size::new(rows, columns)),
                "give the terminal its size",
            );
        }
    }

    /// The process id of the binary.
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

    /// Stops reading: what the binary writes piles up until it can write no more.
    pub fn pause_reading(&mut self) {
        self.shared.state().is_paused = true;
    }

    /// Reads on.
    pub fn resume_reading(&mut self) {
        self.shared.state().is_paused = false;
        self.shared.changed.notify_all();
    }

    /// Closes the terminal, as a window that is closed or a connection that is lost.
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

    /// Waits for the end of the binary and gives its exit code, which a signal leaves without one.
    #[track_caller]
    pub fn wait_exit(&mut self) -> Option<i32> {
        let mut status = None;
        let ended = eventually(PATIENCE, || {
            status = must(self.child.try_wait(), "wait for the binary");
            status.is_some()
        });
        assert!(
            ended,
            "it did not end within {PATIENCE:?}\n{}",
            drawn(&self.screen())
        );
        // Its last words may still be on their way. Others may hold the terminal open; then what is there counts.
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
            // A terminal whose other side is closed answers with an error.
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

    /// Waits while reading is paused; false when it is over.
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

/// The screen in a frame, with what a failed test wants to know.
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
