//! The real terminal: its modes, its size, and a writer that never waits for it.
//!
//! Keys are read elsewhere; they need the terminal opened here first.

mod modes;
mod writer;

use std::io::IsTerminal;
use std::sync::Once;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, kill_current_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use self::modes::Stdout;
use self::writer::Writer;

/// How long the last frame is waited for before the terminal is left.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long it may take until a stop signal has stopped us.
const STOP: Duration = Duration::from_millis(200);
/// Where the terminal does not say.
const USUAL: (u16, u16) = (80, 24);

/// Why there is no terminal to draw on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TtyError {
    #[error("standard input is not a terminal")]
    Input,
    #[error("standard output is not a terminal")]
    Output,
    #[error("the terminal cannot be switched to raw mode")]
    Raw(#[source] std::io::Error),
    #[error("the thread that writes to the terminal cannot be started")]
    Thread(#[source] std::io::Error),
    #[error("the program cannot be stopped")]
    Suspend(#[source] std::io::Error),
}

/// The terminal while it is ours. Dropped, it is as it was.
#[derive(Debug)]
pub(crate) struct Tty {
    writer: Writer,
}

impl Tty {
    /// Takes the terminal that both standard input and standard output are.
    pub(crate) fn open() -> Result<Self, TtyError> {
        if !std::io::stdin().is_terminal() {
            return Err(TtyError::Input);
        }
        if !std::io::stdout().is_terminal() {
            return Err(TtyError::Output);
        }
        let writer = Writer::start(Stdout).map_err(TtyError::Thread)?;
        let tty = Self { writer };
        tty.take()?;
        Ok(tty)
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        rustix::termios::tcgetwinsize(std::io::stdout())
            .map(|size| (size.ws_col, size.ws_row))
            .ok()
            .filter(|(columns, rows)| *columns > 0 && *rows > 0)
            .unwrap_or(USUAL)
    }

    /// Hands a frame to the writer. False when it is still busy with the last one or the terminal is gone; then the frame
    /// is lost. A painter that composed a lost frame knows a wrong screen, so ask [`Tty::is_free`] before composing.
    pub(crate) fn write(&self, frame: Vec<u8>) -> bool {
        self.writer.offer(frame)
    }

    /// Whether a frame would be taken now.
    pub(crate) fn is_free(&self) -> bool {
        self.writer.is_free()
    }

    /// Whether the terminal is gone: a write has failed, and none will be tried again.
    pub(crate) fn is_gone(&self) -> bool {
        self.writer.is_gone()
    }

    /// Answers when the terminal is hung up. A signal tells only those whose controlling terminal it is, and whoever reads
    /// keys from a terminal that is gone reads nothing, for ever and at once. Without a thread for it there is no answer.
    pub(crate) fn watch(&self) -> oneshot::Receiver<()> {
        let (gone, is_gone) = oneshot::channel();
        let watch = move || {
            let terminal = std::io::stdin();
            // Nothing is asked for, so nothing but the end is told.
            let mut watched = [PollFd::new(&terminal, PollFlags::empty())];
            while poll(&mut watched, None).is_err_and(|error| error == rustix::io::Errno::INTR) {}
            if watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                let _ = gone.send(());
            }
        };
        let _ = std::thread::Builder::new()
            .name("hang-up".to_owned())
            .spawn(watch);
        is_gone
    }

    /// Waits until the writer is free or the terminal gone; at once when that is so already. Wait for it only with
    /// something to write.
    pub(crate) async fn written(&self) {
        self.writer.idle().await;
    }

    /// Waits for the last frame, but not for ever.
    pub(crate) fn drain(&self) {
        self.writer.drain(PATIENCE);
    }

    /// Says which screen is shown: `true` before the bytes that enter the other one, `false` after those that leave it.
    pub(crate) fn set_full(&self, is_full: bool) {
        modes::set_full(is_full);
    }

    /// Leaves the terminal, stops the program as Ctrl+Z does elsewhere, and takes the terminal again once it goes on.
    /// The live area must be erased before and forgotten after.
    pub(crate) async fn suspend(&self) -> Result<(), TtyError> {
        let go_on = SignalKind::from_raw(Signal::CONT.as_raw());
        let mut continued = signal(go_on).map_err(TtyError::Suspend)?;
        self.release();
        // The whole group, as the terminal would: a shell that waits for a script around us must see it stop too.
        let stopped = kill_current_process_group(Signal::TSTP);
        if stopped.is_ok() {
            // Any thread may be the one to be stopped first, and this one would run on. Without a shell to go back to,
            // the signal stops nothing and no other follows, hence the limit.
            let _ = tokio::time::timeout(STOP, continued.recv()).await;
        }
        self.take()?;
        stopped.map_err(|error| TtyError::Suspend(error.into()))
    }

    /// Leaves the terminal to another program, after the last frame. The live area must be erased before.
    pub(crate) fn release(&self) {
        self.writer.drain(PATIENCE);
        restore();
    }

    /// Takes the terminal again. What is on it must be forgotten.
    pub(crate) fn take(&self) -> Result<(), TtyError> {
        modes::enter().map_err(TtyError::Raw)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.release();
    }
}

/// Leaves the terminal as it was found. Does nothing when that is so already, never blocks for long, and may be called
/// from everywhere but a signal handler.
pub(crate) fn restore() {
    modes::leave();
}

/// Lets a panic restore the terminal before it is reported, once however often this is called.
pub(crate) fn guard_panics() {
    static GUARD: Once = Once::new();
    GUARD.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if modes::leave() {
                // The cursor is somewhere in the live area; the report comes below it.
                modes::say(b"\r\n\x1b[J");
            }
            report(panic);
        }));
    });
}
