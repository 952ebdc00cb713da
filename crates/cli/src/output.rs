//! Output of a run: the answer on standard output, everything else on standard error.

pub(crate) mod json;
mod outcome;
mod plain;
mod spinner;
mod stream_json;
mod text;

use std::io;
use std::time::Instant;

use windlass_api::{Envelope, Event, SessionEvent, Usage};

pub(crate) use self::outcome::Outcome;
pub(crate) use self::text::Style;
use self::{json::JsonPrinter, plain::PlainPrinter, stream_json::StreamJsonPrinter, text::TextPrinter};
use crate::exit::Exit;
use crate::terminal::{plain, tell};
use windlass_args::OutputFormat;
use windlass_config::{Problem, ProblemKind};

/// Next step without a key, for scripts; the message has all of them.
const NO_KEY_HINT: &str = "set the variable of the provider's key, or store one with `windlass connect`; `windlass doctor` lists the variables";

/// Prints the events of a run.
pub(crate) trait Printer: Send {
    /// Handles one event. An error means that the reader of the output is gone.
    fn event(&mut self, envelope: &Envelope) -> io::Result<()>;

    /// Called when no event is waiting, to flush the output.
    fn idle(&mut self) -> io::Result<()>;

    /// Called regularly while nothing happens.
    fn tick(&mut self) {}

    /// Called before other code writes to the terminal.
    fn pause(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Prints a line beside the answer. The answer may be in the middle of a line, and is left as it is.
    fn aside(&mut self, line: &str) {
        tell!("{}", plain(line));
    }

    /// Called at the end of the run.
    fn finish(&mut self, result: &RunResult) -> io::Result<()>;
}

/// Result of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunResult {
    pub(crate) session: String,
    pub(crate) exit: Exit,
    /// The answer, if there is one.
    pub(crate) answer: Option<String>,
    /// The answer as a value, if a schema was given and the answer matches.
    pub(crate) structured: Option<serde_json::Value>,
    /// The reason why there is no answer, or no valid one.
    pub(crate) problem: Option<Trouble>,
    pub(crate) totals: Totals,
    pub(crate) duration_ms: u64,
}

impl RunResult {
    /// The result of a run that could not start.
    pub(crate) fn not_started(problem: &Problem, begun: Instant) -> Self {
        let kind = match problem.kind {
            ProblemKind::Failed => "failed",
            ProblemKind::Usage => "usage",
            ProblemKind::Config => "config",
            ProblemKind::Busy => "busy",
            ProblemKind::Denied => "permission_denied",
            ProblemKind::Provider => "provider",
            ProblemKind::Auth => "auth",
            ProblemKind::Store => "store",
            ProblemKind::Interrupted | ProblemKind::BrokenPipe => "canceled",
        };
        let hint = (problem.kind == ProblemKind::Auth).then(|| NO_KEY_HINT.to_owned());
        let outcome = Outcome::failed(problem.kind.into(), kind, problem.message.clone(), hint);
        Self {
            session: String::new(),
            exit: outcome.exit,
            answer: None,
            structured: None,
            problem: outcome.problem,
            totals: Totals::default(),
            duration_ms: millis_since(begun),
        }
    }
}

/// Returns the milliseconds since a moment.
pub(crate) fn millis_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A problem, described for the user.
#[derive(Debug, Clone)]
pub(crate) struct Trouble {
    pub(crate) kind: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Usage of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Totals {
    pub(crate) usage: Usage,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) model_calls: u32,
    pub(crate) tool_calls: u32,
    pub(crate) provider: String,
    pub(crate) model: String,
}

impl Totals {
    /// Counts an event.
    pub(crate) fn count(&mut self, event: &Event) {
        match event {
            Event::Start { provider, model } => {
                self.provider.clone_from(provider);
                self.model.clone_from(model);
            }
            Event::Usage { usage, cost_usd, .. } => self.spent(usage, *cost_usd),
            Event::ToolCall { .. } => self.tool_calls += 1,
            Event::Session(SessionEvent::Agent(event)) => {
                if let Some((usage, cost)) = event.usage() {
                    self.spent(&usage, cost);
                }
            }
            _ => {}
        }
    }

    /// Counts a model call.
    fn spent(&mut self, usage: &Usage, cost_usd: Option<f64>) {
        self.usage.add(usage);
        self.model_calls += 1;
        if let Some(cost) = cost_usd {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

/// Returns the printer for `format`.
pub(crate) fn printer(format: OutputFormat, style: Style) -> Box<dyn Printer> {
    match format {
        OutputFormat::Text => Box::new(TextPrinter::new(style)),
        OutputFormat::Json => Box::new(JsonPrinter::new(style)),
        OutputFormat::StreamJson => Box::new(StreamJsonPrinter::new(style)),
    }
}

/// Returns the printer for an interactive session, which streams the text even without a terminal.
pub(crate) fn talking(style: Style, is_plain: bool) -> Box<dyn Printer> {
    let style = Style { live: true, ..style };
    if is_plain {
        Box::new(PlainPrinter::new(style))
    } else {
        Box::new(TextPrinter::new(style))
    }
}
