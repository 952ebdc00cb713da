//! Follows a process until it ends, times out or is cancelled.

use std::io;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio_util::sync::CancellationToken;
use windlass_core::tool::{Kept, ToolContext, ToolError};

use super::capture::{Capture, Keeping, Step};
use super::notes::{NO_OUTPUT, compose, notes_on, seconds};
use windlass_sandbox::process::Tree;

/// Maximum time to wait for output of processes that outlive the command: in total, and since the last
/// output.
const DRAIN: Duration = Duration::from_secs(2);
const DRAIN_SILENCE: Duration = Duration::from_millis(500);
/// Time for the disk to store the end of an output: normally, and when a caller waits for cancellation.
const DISK_TIME: Duration = Duration::from_secs(2);
const DISK_TIME_CANCELED: Duration = Duration::from_millis(50);

/// Line in the output of a command that tries to reach another machine.
const NO_NETWORK: &str = "[there is no network in the sandbox, and the command tries to reach another machine; a call with network: \
true asks the user for it]";

/// Result of a process.
pub(crate) struct Finished {
    /// Output for the model, with a note on how the process ended unless it succeeded.
    pub(crate) content: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) duration_ms: u64,
    pub(crate) truncated: bool,
    /// Location of the full output, if it is longer than the content.
    pub(crate) kept: Option<Kept>,
}

/// Follows a process that has just been started: shows its output, and ends its tree on timeout or
/// cancellation.
pub(crate) async fn finish(
    tree: Tree,
    pipe: Receiver,
    limit: Duration,
    keeping: &Keeping,
    cx: &ToolContext,
) -> Result<Finished, ToolError> {
    let started = Instant::now();
    let mut capture = Capture::new(pipe, keeping.clone(), cx.progress.clone());
    let ending = follow(tree, &mut capture, &cx.cancel, limit).await;
    let disk_time = match ending {
        Ending::Canceled => DISK_TIME_CANCELED,
        _ => DISK_TIME,
    };
    let captured = capture.finish(disk_time).await;
    let (exit_code, notes) = match ending {
        Ending::Canceled => return Err(ToolError::Canceled(captured.text)),
        Ending::TimedOut => (None, vec![format!("[timed out after {} s]", seconds(limit))]),
        Ending::Unknown(error) => (None, vec![format!("[the exit status is unknown: {error}]")]),
        Ending::Exited { status, left_running } => (status.code(), notes_on(status, left_running)),
    };
    Ok(Finished {
        content: compose(captured.text, NO_OUTPUT, &notes),
        exit_code,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        truncated: captured.truncated,
        kept: captured.kept,
    })
}

enum Ending {
    Exited {
        status: ExitStatus,
        /// True if a process that the command started still holds the output.
        left_running: bool,
    },
    TimedOut,
    Canceled,
    Unknown(io::Error),
}

/// Reads output until the command ends, times out, or is cancelled.
async fn follow(
    mut tree: Tree,
    capture: &mut Capture,
    cancel: &CancellationToken,
    limit: Duration,
) -> Ending {
    let mut canceled = pin!(cancel.cancelled());
    let mut time_is_up = pin!(tokio::time::sleep(limit));
    let mut network_missed = pin!(tree.network_missed());
    let mut told = false;
    let status = loop {
        tokio::select! {
            biased;
            () = &mut canceled => {
                // The kill continues in the background, so that cancelling does not wait for it.
                drop(tree.kill());
                capture.take_rest();
                return Ending::Canceled;
            }
            status = tree.wait() => break status,
            () = &mut time_is_up => {
                return end_for_time(tree, capture, cancel).await;
            }
            () = &mut network_missed, if !told => {
                told = true;
                capture.note(NO_NETWORK);
            }
            _ = capture.step() => {}
        }
    };
    let status = match status {
        Ok(status) => status,
        Err(error) => return Ending::Unknown(error),
    };
    match drain(capture, cancel).await {
        Drained::Whole => Ending::Exited {
            status,
            left_running: false,
        },
        Drained::Held => {
            capture.abandon();
            Ending::Exited {
                status,
                left_running: true,
            }
        }
        Drained::Canceled => {
            drop(tree.kill());
            capture.take_rest();
            Ending::Canceled
        }
    }
}

async fn end_for_time(tree: Tree, capture: &mut Capture, cancel: &CancellationToken) -> Ending {
    let mut killed = pin!(tree.kill().finished());
    let mut canceled = pin!(cancel.cancelled());
    loop {
        tokio::select! {
            biased;
            () = &mut canceled => {
                capture.take_rest();
                return Ending::Canceled;
            }
            () = &mut killed => {
                capture.take_rest();
                return Ending::TimedOut;
            }
            _ = capture.step() => {}
        }
    }
}

enum Drained {
    Whole,
    Held,
    Canceled,
}

/// Reads the remaining output after the command ended. A background process may hold the pipe forever, so the
/// wait is short.
async fn drain(capture: &mut Capture, cancel: &CancellationToken) -> Drained {
    let mut canceled = pin!(cancel.cancelled());
    let mut over = pin!(tokio::time::sleep(DRAIN));
    let mut silent = pin!(tokio::time::sleep(DRAIN_SILENCE));
    while capture.is_open() {
        tokio::select! {
            biased;
            () = &mut canceled => return Drained::Canceled,
            step = capture.step() => {
                if step == Step::Read {
                    silent.as_mut().reset(tokio::time::Instant::now() + DRAIN_SILENCE);
                }
            }
            () = &mut silent => return Drained::Held,
            () = &mut over => return Drained::Held,
        }
    }
    Drained::Whole
}
