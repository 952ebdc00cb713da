//! A terminal for a program that is measured: it takes keys, answers what programs ask terminals, and tells when a picture
//! was there.
//!
//! One thread writes, waits for output, notes the time and looks at the picture afterwards, so that neither the looking nor
//! another thread's wakeup counts.

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
/// How long a program has to leave by itself when its terminal closes.
const LEAVING: Duration = Duration::from_secs(2);
/// After so much silence a program is done with what it was doing.
const SILENCE: Duration = Duration::from_millis(500);

/// A program on a terminal of 120 columns and 40 rows. Dropped, the terminal is closed and the program ended.
pub(crate) struct Terminal {
    child: Child,
    /// `None` once it is closed.
    pty: Option<Pty>,
    parser: vt100::Parser<Answers>,
    /// When the program was started.
    pub(crate) begun: u64,
    /// How many bytes it has written.
    pub(crate) bytes: u64,
    piece: Vec<u8>,
}

impl Terminal {
    /// Starts a program on a terminal of its own.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let (pty, inner) = open().context("cannot make a terminal")?;
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

    /// The program's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What is on the screen.
    pub(crate) fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    /// Sends bytes as a keyboard does.
    pub(crate) fn press(&mut self, keys: &str) -> Result<()> {
        let pty = self.pty.as_mut().context("the terminal is closed")?;
        pty.write_all(keys.as_bytes())?;
        Ok(())
    }

    /// Writes as a person does: what comes at once is taken for a paste, and Enter for a part of it.
    pub(crate) fn write(&mut self, line: &str) -> Result<()> {
        for letter in line.chars() {
            self.press(letter.encode_utf8(&mut [0; 4]))?;
            self.rest(Duration::from_millis(60))?;
        }
        self.settle(Duration::from_secs(10))
    }

    /// Waits until the screen passes a test; when the output had come after which it did.
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
                    "after {limit:?} there is no {what}; the screen says:\n{}",
                    self.contents()
                );
            }
        }
    }

    /// Reads for so long.
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

    /// Reads until nothing was written for a while, or for as long as the limit is.
    pub(crate) fn settle(&mut self, limit: Duration) -> Result<()> {
        let deadline = Instant::now() + limit;
        while self.read(SILENCE)?.is_some() && Instant::now() < deadline {}
        Ok(())
    }

    /// Waits for output and takes it; when it came.
    fn read(&mut self, limit: Duration) -> Result<Option<u64>> {
        let pty = self.pty.as_mut().context("the terminal is closed")?;
        let limit = Timespec::try_from(limit)?;
        if poll(&mut [PollFd::new(pty, PollFlags::IN)], Some(&limit))? == 0 {
            return Ok(None);
        }
        // A terminal whose other side is closed answers with an error.
        let count = pty.read(&mut self.piece).unwrap_or(0);
        let came = now();
        if count == 0 {
            bail!("the program has ended; the screen says:\n{}", self.contents());
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
