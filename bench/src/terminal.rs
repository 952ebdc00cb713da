//! A terminal for a measured program: it sends keys, responds to terminal queries, and notes when a picture
//! was complete.
//!
//! One thread writes, waits for output, notes the time and parses the picture afterwards, so that neither the
//! parsing nor the wakeup of another thread counts.

mod answers;

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pty_process::Size;
use pty_process::blocking::{Pty, open};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use self::answers::Answers;
use crate::clock::now;
use crate::process::tree;

const COLUMNS: u16 = 120;
const ROWS: u16 = 40;
/// Maximum time for a program to exit after its terminal closes.
const LEAVING: Duration = Duration::from_secs(2);
/// Period of silence after which a program counts as idle.
const SILENCE: Duration = Duration::from_millis(500);

/// A program on a terminal of 120 columns and 40 rows. Dropping it closes the terminal and ends the program.
pub(crate) struct Terminal {
    child: Child,
    /// `None` once it is closed.
    pty: Option<Pty>,
    parser: vt100::Parser<Answers>,
    /// Time at which the program was started.
    pub(crate) begun: u64,
    /// Number of bytes the program has written.
    pub(crate) bytes: u64,
    piece: Vec<u8>,
}

impl Terminal {
    /// Starts a program on its own terminal.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let (pty, inner) = open().context("cannot create a terminal")?;
        pty.resize(Size::new(ROWS, COLUMNS))?;
        command
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor");
        let rows = NonZeroU16::new(ROWS).unwrap_or(NonZeroU16::MIN);
        let columns = NonZeroU16::new(COLUMNS).unwrap_or(NonZeroU16::MIN);
        let parser = vt100::Parser::new_with_callbacks(rows, columns, 0, Answers::default());
        let piece = vec![0; 64 * 1024];
        let begun = now();
        let child = pty_process::blocking::Command::from(command)
            .spawn(inner)
            .context("cannot start on a terminal")?;
        Ok(Self {
            child,
            pty: Some(pty),
            parser,
            begun,
            bytes: 0,
            piece,
        })
    }

    /// Returns the program's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the text on the screen.
    pub(crate) fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    /// Sends bytes as a keyboard does.
    pub(crate) fn press(&mut self, keys: &str) -> Result<()> {
        let pty = self.pty.as_mut().context("the terminal is closed")?;
        pty.write_all(keys.as_bytes())?;
        Ok(())
    }

    /// Types like a person: text that arrives at once would count as a paste, including Enter.
    pub(crate) fn write(&mut self, line: &str) -> Result<()> {
        for letter in line.chars() {
            self.press(letter.encode_utf8(&mut [0; 4]))?;
            self.rest(Duration::from_millis(60))?;
        }
        self.settle(Duration::from_secs(10))
    }

    /// Waits until the screen passes a test; returns the arrival time of the output that made it pass.
    pub(crate) fn wait(
        &mut self,
        what: &str,
        limit: Duration,
        test: impl Fn(&vt100::Screen) -> bool,
    ) -> Result<u64> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(read) = self.read(left)?
                && test(self.parser.screen())
            {
                return Ok(read);
            }
            if left.is_zero() {
                bail!(
                    "no {what} after {limit:?}; the screen shows:\n{}",
                    self.contents()
                );
            }
        }
    }

    /// Reads for this long.
    pub(crate) fn rest(&mut self, time: Duration) -> Result<()> {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.read(left)?;
        }
    }

    /// Reads until there was no output for a while, or the limit has passed.
    pub(crate) fn settle(&mut self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while self.read(SILENCE)?.is_some() && Instant::now() < deadline {}
        Ok(())
    }

    /// Waits for output and takes it; returns its arrival time.
    fn read(&mut self, limit: Duration) -> Result<Option<u64>> {
        let pty = self.pty.as_mut().context("the terminal is closed")?;
        let limit = Timespec::try_from(limit)?;
        if poll(&mut [PollFd::new(pty, PollFlags::IN)], Some(&limit))? == 0 {
            return Ok(None);
        }
        // A terminal whose other side is closed returns an error.
        let count = pty.read(&mut self.piece).unwrap_or(0);
        let came = now();
        if count == 0 {
            bail!("the program has exited; the screen shows:\n{}", self.contents());
        }
        self.bytes += count as u64;
        self.parser.process(self.piece.get(..count).unwrap_or_default());
        let answers = self.parser.callbacks_mut().take();
        if !answers.is_empty() {
            pty.write_all(&answers)?;
        }
        Ok(Some(came))
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let family = tree(self.child.id());
        drop(self.pty.take());
        let deadline = Instant::now() + LEAVING;
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        if self.has_ended() {
            return;
        }
        for pid in family {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = self.child.wait();
    }
}
