//! The answer as text, and the progress as complete lines that are never redrawn. For screen readers, simple
//! terminals and logs.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use windlass_api::{CallId, DENIED_TEXT, Envelope, Event, StepStatus};
use windlass_service::format::cut;

use super::text::{Style, TextPrinter, millis};
use super::{Printer, RunResult};
use crate::terminal::{plain, tell};

/// A call that takes longer than this is announced before it ends.
const LONG: Duration = Duration::from_secs(5);
/// Maximum length of the reason why a call failed, in characters.
const REASON: usize = 120;

pub(super) struct PlainPrinter {
    style: Style,
    text: TextPrinter,
    /// Running calls.
    steps: HashMap<CallId, Step>,
}

struct Step {
    /// The tool in brackets, then its subject.
    title: String,
    since: Instant,
    is_told: bool,
    /// The reason why the call failed.
    reason: Option<String>,
}

impl PlainPrinter {
    pub(super) fn new(style: Style) -> Self {
        let style = Style {
            color: false,
            spinner: false,
            ..style
        };
        Self {
            style,
            text: TextPrinter::new(style),
            steps: HashMap::new(),
        }
    }

    fn tell(&self, line: &str) {
        if !self.style.quiet {
            tell!("{}", plain(line));
        }
    }

    fn ended(&mut self, call: &CallId, status: StepStatus, duration_ms: u64) {
        let step = self.steps.remove(call);
        let (title, reason) = step.map(|step| (step.title, step.reason)).unwrap_or_default();
        let seconds = millis(duration_ms);
        let how = match (status, reason) {
            (StepStatus::Completed, _) => format!("done in {seconds:.1} s"),
            (StepStatus::Error, None) => format!("failed after {seconds:.1} s"),
            (StepStatus::Error, Some(reason)) => format!("failed after {seconds:.1} s: {reason}"),
        };
        self.tell(&format!("{title} … {how}"));
    }
}

impl Printer for PlainPrinter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        match &envelope.event {
            Event::StepStart { call_id, title, .. } => {
                self.text.pause()?;
                let step = Step {
                    title: bracketed(title),
                    since: Instant::now(),
                    is_told: false,
                    reason: None,
                };
                self.steps.insert(call_id.clone(), step);
            }
            Event::ToolResult {
                call_id,
                content,
                is_error,
                ..
            } => {
                if let Some(step) = self.steps.get_mut(call_id).filter(|_| *is_error) {
                    step.reason = match content.as_str() {
                        DENIED_TEXT => Some("not run".to_owned()),
                        content => first_line(content),
                    };
                }
            }
            Event::StepComplete {
                call_id,
                status,
                duration_ms,
            } => self.ended(call_id, *status, *duration_ms),
            _ => self.text.event(envelope)?,
        }
        Ok(())
    }

    fn idle(&mut self) -> io::Result<()> {
        self.text.idle()
    }

    fn tick(&mut self) {
        let late = |step: &&mut Step| !step.is_told && step.since.elapsed() > LONG;
        let mut lines = Vec::new();
        for step in self.steps.values_mut().filter(late) {
            step.is_told = true;
            lines.push(format!("{} …", step.title));
        }
        for line in lines {
            self.tell(&line);
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        self.text.pause()
    }

    fn aside(&mut self, line: &str) {
        self.text.aside(line);
    }

    fn finish(&mut self, result: &RunResult) -> io::Result<()> {
        self.steps.clear();
        self.text.finish(result)
    }
}

/// Formats `bash make test` as `[bash] make test`.
fn bracketed(title: &str) -> String {
    match title.split_once(' ') {
        Some((tool, about)) => format!("[{tool}] {about}"),
        None => format!("[{title}]"),
    }
}

/// Returns the first non-blank line, shortened.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(cut(line, REASON))
}
