//! The answer as text, streamed to a terminal; progress goes to standard error.

use std::io::{self, IsTerminal, Write};

use windlass_api::{
    DENIED_TEXT, DeltaKind, Envelope, Event, GoalCompletion, GoalEvent, NoteKind, SessionEvent, StepStatus,
    goal_note,
};
use windlass_core::text::count;
use windlass_service::format::cut;

use super::spinner::Spinner;
use super::{Printer, RunResult};
use crate::terminal::{Stdout, plain, tell};
use windlass_args::ColorChoice;

/// Maximum length of a goal in the notice that it was reached, in characters.
const GOAL: usize = 100;

/// Maximum number of lines of a result with `--verbose`.
const MOST_VERBOSE: usize = 2_000;

/// Verbosity and colors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Print only errors.
    pub(crate) quiet: bool,
    /// Use colors on standard error.
    pub(crate) color: bool,
    /// Stream the model's text to standard output as it arrives.
    pub(crate) live: bool,
    /// Show a spinner on standard error.
    pub(crate) spinner: bool,
    /// Show what tools return.
    pub(crate) verbose: bool,
}

impl Style {
    /// Chooses the style for the terminal, or for the lack of one.
    pub(crate) fn detect(quiet: bool, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let terminal = io::stderr().is_terminal();
        let dumb = env("TERM").is_some_and(|term| term == "dumb");
        let forced = env("FORCE_COLOR").is_some_and(|value| !value.is_empty() && value != "0");
        let refused = env("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            quiet,
            color: !refused && (forced || (terminal && !dumb)),
            live: io::stdout().is_terminal(),
            spinner: terminal && !dumb && !quiet,
            verbose: false,
        }
    }

    /// Applies what the command line asks for.
    pub(crate) fn with(self, verbose: bool, color: ColorChoice) -> Self {
        let color = match color {
            ColorChoice::Auto => self.color,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        Self {
            verbose,
            color,
            ..self
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Prints a line about progress.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            tell!("{}", self.paint("2", &plain(text)));
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(self, text: &str) {
        if !self.quiet {
            tell!("{} {}", self.paint("33", "warning:"), plain(text));
        }
    }

    /// Prints an error.
    pub(crate) fn error(self, text: &str) {
        tell!("{} {}", self.paint("31", "error:"), plain(text));
    }

    /// Prints the events that every format reports on standard error.
    pub(super) fn notice_event(self, event: &Event) {
        match event {
            Event::Warning { message } => self.warn(message),
            Event::Error { message } => self.warn(message),
            Event::Retry {
                attempt,
                max_attempts,
                delay_ms,
                message,
                ..
            } => {
                #[allow(clippy::cast_precision_loss)]
                let seconds = *delay_ms as f64 / 1_000.0;
                self.warn(&format!(
                    "{message}; retrying in {seconds:.1} s ({attempt} of {max_attempts})"
                ));
            }
            Event::Session(SessionEvent::Compaction { before, after, .. }) => {
                self.note(&format!("Compacting: {before}→{after} tokens"));
            }
            Event::Session(event @ SessionEvent::Moved { .. }) => {
                event.moved_line().iter().for_each(|line| self.warn(line));
            }
            // The end of work without input says the same.
            Event::Session(SessionEvent::GoalCompleted {
                text,
                how: GoalCompletion::Phrase | GoalCompletion::Command,
            }) => {
                self.note(&format!("Goal reached: {}", cut(text, GOAL)));
            }
            Event::Session(SessionEvent::Agent(event)) => {
                event
                    .line()
                    .iter()
                    .for_each(|line| self.note(&format!("  · {line}")));
            }
            Event::Session(SessionEvent::Work(event)) => match goal_note(event) {
                Some((NoteKind::Bad, text)) => self.warn(&text),
                Some((_, text)) => self.note(&text),
                None => {}
            },
            _ => {}
        }
    }

    /// Prints why a run failed, and the hint.
    pub(super) fn trouble(self, result: &RunResult) {
        if let Some(trouble) = &result.problem {
            self.error(&trouble.message);
            if let Some(hint) = &trouble.hint {
                tell!("  {}", plain(hint));
            }
        }
    }
}

pub(super) struct TextPrinter {
    style: Style,
    spinner: Spinner,
    /// Text of this iteration that was streamed to standard output.
    shown: String,
    /// After a discarded reply: length of the part of `shown` that the new reply has repeated so far.
    replayed: Option<usize>,
    /// Events about the answer, to be printed after it: that the goal was reached, and claims.
    after: Vec<Event>,
}

impl TextPrinter {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            spinner: Spinner::new(style.spinner, style.color),
            shown: String::new(),
            replayed: None,
            after: Vec::new(),
        }
    }

    /// Streams a piece of the reply. When a reply starts over, the part that repeats the discarded one is not
    /// shown again.
    fn delta(&mut self, text: &str) -> io::Result<()> {
        let Some(from) = self.replayed else {
            return self.stream(text);
        };
        let expected = self.shown.get(from..).unwrap_or_default();
        if expected.starts_with(text) {
            self.replayed = Some(from + text.len());
            return Ok(());
        }
        self.replayed = None;
        if let Some(rest) = text.strip_prefix(expected) {
            let rest = rest.to_owned();
            return self.stream(&rest);
        }
        // The new reply differs: print it from its start, on a new line.
        let repeated = self.shown.get(..from).unwrap_or_default().to_owned();
        self.shown.clear();
        self.stream_raw("\n[the reply restarts]\n")?;
        self.stream(&format!("{repeated}{text}"))
    }

    fn stream(&mut self, text: &str) -> io::Result<()> {
        self.shown.push_str(text);
        self.stream_raw(text)
    }

    fn stream_raw(&mut self, text: &str) -> io::Result<()> {
        self.spinner.clear();
        Stdout.write_all(plain(text).as_bytes())
    }

    /// Ends the line of streamed text before something else is written.
    fn break_line(&mut self) -> io::Result<()> {
        if !self.shown.is_empty() {
            let end = if self.shown.ends_with('\n') { "" } else { "\n" };
            Stdout.write_all(end.as_bytes())?;
            Stdout.flush()?;
            self.shown.clear();
        }
        self.replayed = None;
        Ok(())
    }

    /// Prints a few lines of the result: the diff if there is one, otherwise the start of the text.
    fn step_result(&mut self, content: &str, is_error: bool, diff: Option<&str>) {
        let (lines, most): (Vec<&str>, usize) = match diff {
            Some(diff) => (
                diff.lines()
                    .skip_while(|line| !line.starts_with("@@"))
                    .skip(1)
                    .collect(),
                12,
            ),
            // The end of the turn says who denied it.
            None if content == DENIED_TEXT => (vec!["not run"], 3),
            None => (
                content.lines().filter(|line| !line.trim().is_empty()).collect(),
                3,
            ),
        };
        let most = if self.style.verbose { MOST_VERBOSE } else { most };
        for (index, line) in lines.iter().take(most).enumerate() {
            let sign = if is_error && index == 0 { "✗" } else { "│" };
            let code = match line.chars().next() {
                Some('+') if diff.is_some() => "32",
                Some('-') if diff.is_some() => "31",
                _ if is_error => "31",
                _ => "2",
            };
            let short: String = line.chars().take(160).collect();
            tell!(
                "{}",
                self.style.paint(code, &format!("  {sign} {}", plain(&short)))
            );
        }
        if let Some(left) = lines.len().checked_sub(most).filter(|left| *left > 0) {
            tell!(
                "{}",
                self.style
                    .paint("2", &format!("  │ … {}", count(left, "more line")))
            );
        }
    }
}

impl Printer for TextPrinter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        match &envelope.event {
            Event::Delta {
                kind: DeltaKind::Text,
                text,
            } if self.style.live => self.delta(text)?,
            Event::Retry { discard, .. } => {
                self.spinner.clear();
                if *discard && !self.shown.is_empty() {
                    self.replayed = Some(0);
                    // The notice goes on a separate line, in the middle of the reply.
                    self.stream_raw("\n")?;
                    Stdout.flush()?;
                }
                self.style.notice_event(&envelope.event);
            }
            Event::Session(SessionEvent::Moved { .. }) => {
                self.spinner.clear();
                if !self.shown.is_empty() {
                    self.replayed = Some(0);
                    self.stream_raw("\n")?;
                    Stdout.flush()?;
                }
                self.style.notice_event(&envelope.event);
            }
            Event::Text { text } => {
                if self.style.live {
                    self.break_line()?;
                } else {
                    self.style.note(text);
                }
            }
            Event::StepStart { title, .. } => {
                self.break_line()?;
                self.spinner.clear();
                if !self.style.quiet {
                    tell!("{} {}", self.style.paint("36", "●"), plain(title));
                }
                self.spinner.wait_for(&plain(title));
            }
            Event::ToolResult {
                content,
                is_error,
                details,
                ..
            } => {
                self.spinner.clear();
                if !self.style.quiet {
                    let diff = details.as_ref().map(diffs).unwrap_or_default();
                    self.step_result(
                        content,
                        *is_error,
                        Some(diff.as_str()).filter(|diff| !diff.is_empty()),
                    );
                }
            }
            Event::StepComplete {
                status, duration_ms, ..
            } => {
                if *status == StepStatus::Error && *duration_ms > 1_000 {
                    self.style
                        .note(&format!("  └ failed after {:.1} s", millis(*duration_ms)));
                }
                self.spinner.wait_for("thinking");
            }
            // The answer that reached the goal may still be on an unfinished line.
            Event::Session(
                SessionEvent::GoalCompleted {
                    how: GoalCompletion::Phrase,
                    ..
                }
                | SessionEvent::Work(GoalEvent::Claim(_)),
            ) => self.after.push(envelope.event.clone()),
            Event::Warning { .. } | Event::Error { .. } | Event::Session(_) => {
                self.spinner.clear();
                self.style.notice_event(&envelope.event);
            }
            _ => {}
        }
        Ok(())
    }

    fn idle(&mut self) -> io::Result<()> {
        Stdout.flush()
    }

    fn tick(&mut self) {
        if self.shown.is_empty() {
            self.spinner.tick();
        }
    }

    fn pause(&mut self) -> io::Result<()> {
        self.spinner.clear();
        self.break_line()
    }

    fn aside(&mut self, line: &str) {
        self.spinner.clear();
        // On a terminal the reply may be on an unfinished line; a program that reads standard output must not
        // see it ended.
        let is_open = !self.shown.is_empty() && !self.shown.ends_with('\n');
        if is_open && !self.style.quiet && io::stdout().is_terminal() && io::stderr().is_terminal() {
            tell!("");
        }
        self.style.note(line);
    }

    fn finish(&mut self, result: &RunResult) -> io::Result<()> {
        self.spinner.clear();
        let streamed = std::mem::take(&mut self.shown);
        self.replayed = None;
        if let Some(answer) = &result.answer {
            // The streamed text is already the answer, unless the answer came another way (`done`, a limit).
            if streamed.trim() == answer.trim() {
                Stdout.write_all(if streamed.ends_with('\n') { b"" } else { b"\n" })?;
            } else {
                let lead = if streamed.is_empty() || streamed.ends_with('\n') {
                    ""
                } else {
                    "\n"
                };
                let text = if self.style.live {
                    plain(answer)
                } else {
                    answer.clone()
                };
                writeln!(Stdout, "{lead}{text}")?;
            }
        } else if !streamed.is_empty() && !streamed.ends_with('\n') {
            writeln!(Stdout)?;
        }
        Stdout.flush()?;
        self.style.trouble(result);
        for event in std::mem::take(&mut self.after) {
            self.style.notice_event(&event);
        }
        if result.totals.model_calls > 0 {
            self.style.note(&summary(result));
        }
        Ok(())
    }
}

/// Formats the model, calls, tokens, cost and time on one line.
fn summary(result: &RunResult) -> String {
    let totals = &result.totals;
    let cost = match totals.cost_usd {
        Some(cost) => format!("${cost:.4}"),
        None => "cost unknown".to_owned(),
    };
    format!(
        "{} · {} · {} · {} in ({} cached) · {} out · {cost} · {:.1} s",
        if totals.model.is_empty() {
            "no model"
        } else {
            &totals.model
        },
        count(totals.model_calls, "model call"),
        count(totals.tool_calls, "tool call"),
        totals.usage.total_input(),
        totals.usage.cache_read,
        totals.usage.output,
        millis(result.duration_ms),
    )
}

/// Converts milliseconds to seconds.
#[allow(clippy::cast_precision_loss)]
pub(super) fn millis(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1_000.0
}

/// Returns the diffs of a call, for one file or several.
fn diffs(details: &serde_json::Value) -> String {
    let files = details.get("files").and_then(serde_json::Value::as_array);
    let each = files.into_iter().flatten().chain([details]);
    each.filter_map(|changed| changed.get("diff")?.as_str()).collect()
}
