//! A spinner on a terminal while nothing else is printed.

use std::io::Write;
use std::time::Instant;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// One line on standard error that is redrawn and finally cleared.
pub(super) struct Spinner {
    on: bool,
    color: bool,
    shown: bool,
    since: Instant,
    label: String,
    frame: usize,
}

impl Spinner {
    pub(super) fn new(on: bool, color: bool) -> Self {
        Self {
            on,
            color,
            shown: false,
            since: Instant::now(),
            label: "thinking".to_owned(),
            frame: 0,
        }
    }

    /// Sets the text to show while waiting.
    pub(super) fn wait_for(&mut self, label: &str) {
        self.label = label.to_owned();
        self.since = Instant::now();
    }

    /// Draws the next frame.
    pub(super) fn tick(&mut self) {
        if !self.on {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let frame = FRAMES.get(self.frame).copied().unwrap_or_default();
        let seconds = self.since.elapsed().as_secs();
        let time = if seconds > 0 {
            format!(" {seconds}s")
        } else {
            String::new()
        };
        let mut out = std::io::stderr();
        let (dim, normal) = if self.color {
            ("\x1b[2m", "\x1b[0m")
        } else {
            ("", "")
        };
        let _ = write!(out, "\r\x1b[K{dim}{frame} {}{time}{normal}", self.label);
        let _ = out.flush();
        self.shown = true;
    }

    /// Clears the line, so that something else can be written.
    pub(super) fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}
