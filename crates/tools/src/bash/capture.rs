//! Reads the output of a command, shows it live and keeps the relevant part.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use windlass_core::tool::{Kept, Progress};

use super::live::Live;
use super::output::Clip;
use super::pipe::{Piece, Pipe};
use crate::ToolsConfig;
use crate::outputs::{OutputStore, Spill};

/// Amount of output kept in memory, and the store for the full output if it is longer.
#[derive(Clone)]
pub(crate) struct Keeping {
    pub(super) bytes: usize,
    pub(super) store: Option<Arc<OutputStore>>,
    /// Name of the tool that produces the output.
    pub(super) tool: String,
}

impl Keeping {
    pub(crate) fn new(config: &ToolsConfig, tool: &str) -> Self {
        Self {
            bytes: config.max_command_output,
            store: config.outputs.clone(),
            tool: tool.to_owned(),
        }
    }

    /// Starts storing the full output.
    pub(super) fn spill(&self) -> Option<Spill> {
        let store = self.store.as_ref()?;
        Some(Spill::begin(store, &self.tool))
    }
}

/// Output of one command.
pub(super) struct Capture {
    pipe: Pipe,
    clip: Clip,
    live: Live,
    keeping: Keeping,
    /// Started when memory is about to lose output.
    spill: Option<Spill>,
    /// Output so far, until memory is about to lose some.
    early: Option<Piece>,
}

/// Captured output.
pub(super) struct Captured {
    pub(super) text: String,
    /// True if the text is incomplete.
    pub(super) truncated: bool,
    /// Location of the full output, if the text is incomplete.
    pub(super) kept: Option<Kept>,
}

/// Result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Output, or its end.
    Read,
    /// Only time passed.
    Shown,
}

impl Capture {
    pub(super) fn new(pipe: Receiver, keeping: Keeping, progress: Progress) -> Self {
        Self {
            pipe: Pipe::new(pipe),
            clip: Clip::new(keeping.bytes),
            live: Live::new(progress),
            keeping,
            spill: None,
            early: Some(Piece::default()),
        }
    }

    /// Returns true if more output may come.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_open()
    }

    /// Waits for output, or until pending output is due to be shown. Cancel safe. Does not return after the
    /// end of the output.
    pub(super) async fn step(&mut self) -> Step {
        if let Some(spill) = &mut self.spill {
            spill.settle().await;
        }
        let piece = match self.live.deadline() {
            None => self.pipe.read().await,
            Some(deadline) => tokio::select! {
                biased;
                piece = self.pipe.read() => piece,
                () = tokio::time::sleep_until(deadline.into()) => {
                    self.live.flush();
                    return Step::Shown;
                }
            },
        };
        self.take(&piece);
        Step::Read
    }

    /// Adds a line of our own.
    pub(super) fn note(&mut self, text: &str) {
        let text = format!("{text}\n");
        self.take(&Piece {
            bytes: text.clone().into_bytes(),
            text,
        });
    }

    /// Takes the output written so far, without waiting.
    pub(super) fn take_rest(&mut self) {
        let rest = self.pipe.rest();
        self.take(&rest);
    }

    /// Stops listening while processes may still write. They keep running: the rest is read and discarded.
    pub(super) fn abandon(&mut self) {
        self.pipe.abandon();
    }

    /// Shows the remaining output. Waits for the disk for a limited time.
    pub(super) async fn finish(mut self, patience: Duration) -> Captured {
        let last = self.pipe.finish();
        self.take(&last);
        self.live.flush();
        let truncated = self.clip.is_cut();
        let kept = match self.spill {
            Some(spill) if truncated => spill.close(patience).await,
            Some(spill) => {
                spill.discard().await;
                None
            }
            None => None,
        };
        Captured {
            text: self.clip.text(kept.as_ref()),
            truncated,
            kept,
        }
    }

    fn take(&mut self, piece: &Piece) {
        let text = piece.text.as_str();
        if self.clip.may_lose(text)
            && let Some(early) = self.early.take()
        {
            self.spill = self.keeping.spill();
            if let Some(spill) = &mut self.spill {
                spill.push(&early.bytes, &early.text);
            }
        }
        if let Some(early) = &mut self.early {
            early.bytes.extend_from_slice(&piece.bytes);
            early.text.push_str(text);
        }
        if let Some(spill) = &mut self.spill {
            spill.push(&piece.bytes, text);
        }
        self.clip.push(text);
        self.live.push(text);
    }
}
