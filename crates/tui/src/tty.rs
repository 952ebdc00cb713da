//! The real terminal: its modes, its size, and a writer that never blocks on it.
//!
//! KeyBindings are read elsewhere, after the terminal was opened here.

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

/// Maximum wait for the last frame before the terminal is released.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum wait until a stop signal takes effect.
const STOP: Duration = Duration::from_millis(200);
/// Size assumed if the terminal does not report one.
const USUAL: (u16, u16) = (80, 24);

/// Error that prevents drawing on the terminal.
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
    #[error("the program cannot be suspended")]
    Suspend(#[source] std::io::Error),
}

/// The terminal while it belongs to the UI. Dropping it restores the previous state.
#[derive(Debug)]
pub(crate) struct Tty {
    writer: Writer,
}

impl Tty {
    /// Opens the terminal; standard input and standard output must both be one.
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

    /// Size as columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        rustix::termios::tcgetwinsize(std::io::stdout())
            .map(|size| (size.ws_col, size.ws_row))
            .ok()
            .filter(|(columns, rows)| *columns > 0 && *rows > 0)
            .unwrap_or(USUAL)
    }

    /// Hands a frame to the writer. Returns false if the writer is busy or the terminal is gone; the frame is
    /// then lost. A painter that composed a lost frame has a wrong idea of the screen, so check
    /// [`Tty::is_free`] before composing.
    pub(crate) fn write(&self, frame: Vec<u8>) -> bool {
        self.writer.offer(frame)
    }

    /// True if a frame would be accepted now.
    pub(crate) fn is_free(&self) -> bool {
        self.writer.is_free()
    }

    /// True if the terminal is gone: a write has failed, and none will be tried again.
    pub(crate) fn is_gone(&self) -> bool {
        self.writer.is_gone()
    }

    /// Fires when the terminal hangs up. The signal only reaches processes whose controlling terminal it is,
    /// and reading keys from a lost terminal returns nothing, immediately and forever. If the watching thread
    /// cannot be started, it never fires.
    pub(crate) fn watch(&self) -> oneshot::Receiver<()> {
        let (gone, is_gone) = oneshot::channel();
        let watch = move || {
            let terminal = std::io::stdin();
            // No events are requested, so only a hangup is reported.
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

    /// Waits until the writer is free or the terminal is gone. Call it only with something to write.
    pub(crate) async fn written(&self) {
        self.writer.idle().await;
    }

    /// Waits for the last frame, with a time limit.
    pub(crate) fn drain(&self) {
        self.writer.drain(PATIENCE);
    }

    /// Records the active screen: `true` before the bytes that enter the alternate screen, `false` after
    /// those that leave it.
    pub(crate) fn set_full(&self, is_full: bool) {
        modes::set_full(is_full);
    }

    /// Releases the terminal, stops the program like Ctrl+Z, and takes the terminal back when it continues.
    /// The live area must be erased before and forgotten after.
    pub(crate) async fn suspend(&self) -> Result<(), TtyError> {
        let go_on = SignalKind::from_raw(Signal::CONT.as_raw());
        let mut continued = signal(go_on).map_err(TtyError::Suspend)?;
        self.release();
        // Stops the whole group, as the terminal would: a shell waiting for a script around us must see it
        // stop.
        let stopped = kill_current_process_group(Signal::TSTP);
        if stopped.is_ok() {
            // Any thread may be stopped first while this one keeps running. Without a shell to return to, the
            // signal stops nothing and no continue follows, hence the limit.
            let _ = tokio::time::timeout(STOP, continued.recv()).await;
        }
        self.take()?;
        stopped.map_err(|error| TtyError::Suspend(error.into()))
    }

    /// Releases the terminal to another program, after the last frame. The live area must be erased before.
    pub(crate) fn release(&self) {
        self.writer.drain(PATIENCE);
        restore();
    }

    /// Takes the terminal back. Its content must be forgotten.
    pub(crate) fn take(&self) -> Result<(), TtyError> {
        modes::enter().map_err(TtyError::Raw)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.release();
    }
}

/// Restores the terminal's previous state. Does nothing if already restored, never blocks for long, and may
/// be called from anywhere but a signal handler.
pub(crate) fn restore() {
    modes::leave();
}

/// Restores the terminal before a panic is reported. Has an effect only once.
pub(crate) fn guard_panics() {
    static GUARD: Once = Once::new();
    GUARD.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if modes::leave() {
                // The cursor is somewhere in the live area; the report goes below it.
                modes::say(b"\r\n\x1b[J");
            }
            report(panic);
        }));
    });
}
