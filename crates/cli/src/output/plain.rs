//! The answer as text, and what is going on as whole lines: nothing moves, nothing is rewritten. For screen readers, for
//! terminals that can do no more, and for logs.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use windlass_api::{CallId, Envelope, Event, StepStatus};

use super::text::{Style, TextPrinter, millis};
use super::{Printer, RunResult};
use crate::terminal::{plain, tell};

/// A call that takes longer than this is told of before it has ended.
const LONG: Duration = Duration::from_secs(5);

pub(super) struct PlainPrinter {
    style: Style,
    text: TextPrinter,
    /// Calls that run.
    steps: HashMap<CallId, Step>,
}

struct Step {
    /// The tool in brackets, then what it is about.
    title: String,
    since: Instant,
    is_told: bool,
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
        let title = self.steps.remove(call).map(|step| step.title);
        let how = match status {
            StepStatus::Completed => "done in",
            StepStatus::Error => "failed after",
        };
        let title = title.unwrap_or_default();
        self.tell(&format!("{title} … {how} {:.1} s", millis(duration_ms)));
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
                };
                self.steps.insert(call_id.clone(), step);
            }
            Event::ToolResult { .. } => {}
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

/// `bash make test` as `[bash] make test`.
fn bracketed(title: &str) -> String {
    match title.split_once(' ') {
        Some((tool, about)) => format!("[{tool}] {about}"),
        None => format!("[{title}]"),
    }
}
