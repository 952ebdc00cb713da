//! Reads what a command writes, shows it live and keeps the part that is worth keeping.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use windlass_core::tool::{Kept, Progress};

use super::live::Live;
use super::output::Clip;
use super::pipe::Pipe;
use crate::ToolsConfig;
use crate::outputs::{OutputStore, Spill};

/// How much of an output is kept in memory, and where all of it goes when it is more.
#[derive(Clone)]
pub(crate) struct Keeping {
    pub(super) bytes: usize,
    pub(super) store: Option<Arc<OutputStore>>,
    /// Whose output it is.
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

    /// Begins to keep all of an output.
    pub(super) fn spill(&self) -> Option<Spill> {
        let store = self.store.as_ref()?;
        Some(Spill::begin(store, &self.tool))
    }
}

/// The output of one command.
pub(super) struct Capture {
    pipe: Pipe,
    clip: Clip,
    live: Live,
    keeping: Keeping,
    /// Begins when memory is about to lose something.
    spill: Option<Spill>,
}

/// What was captured.
pub(super) struct Captured {
    pub(super) text: String,
    /// Some of it is missing from the text.
    pub(super) truncated: bool,
    /// Where all of it is, if some is missing.
    pub(super) kept: Option<Kept>,
}

/// What one step brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Output, or the end of it.
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
        }
    }

    /// Whether more may come.
    pub(super) fn is_open(&self) -> bool {
        self.pipe.is_open()
    }

    /// Waits for output, or for the time to show what has come. Loses nothing when it is dropped. Does not return
    /// after the end of the output.
    pub(super) async fn step(&mut self) -> Step {
        if let Some(spill) = &mut self.spill {
            spill.settle().await;
        }
        let text = match self.live.deadline() {
            None => self.pipe.read().await,
            Some(deadline) => tokio::select! {
                biased;
                text = self.pipe.read() => text,
                () = tokio::time::sleep_until(deadline.into()) => {
                    self.live.flush();
                    return Step::Shown;
                }
            },
        };
        self.take(&text);
        Step::Read
    }

    /// Takes what has been written, without waiting.
    pub(super) fn take_rest(&mut self) {
        let rest = self.pipe.rest();
        self.take(&rest);
    }

    /// Stops listening while somebody may still write. Whoever does keeps running: the rest is read and dropped.
    pub(super) fn abandon(&mut self) {
        self.pipe.abandon();
    }

    /// Shows the last of it. Waits for the disk only so long.
    pub(super) async fn finish(mut self, patience: Duration) -> Captured {
        let last = self.pipe.finish();
        self.take(last);
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

    fn take(&mut self, text: &str) {
        if self.spill.is_none() && self.clip.may_lose(text) {
            self.spill = self.keeping.spill();
            if let Some(spill) = &mut self.spill {
                self.clip.parts().for_each(|part| spill.push(part));
            }
        }
        if let Some(spill) = &mut self.spill {
            spill.push(text);
        }
        self.clip.push(text);
        self.live.push(text);
    }
}
