//! Output of an interactive session, turn by turn.

use std::io;
use std::time::Instant;

use windlass_api::{Envelope, Event, SessionId, is_own_call};

use crate::exit::Exit;
use crate::output::{Outcome, Printer, RunResult, Style, Totals, talking};
use crate::terminal::{plain, tell};

/// Prints the events of turns, and remembers how the last one ended.
pub(super) struct View {
    style: Style,
    is_plain: bool,
    turn: Option<Turn>,
    /// True while a request is on the screen, which nothing may overwrite.
    is_asking: bool,
    is_broken: bool,
    /// Session of the last event.
    session: SessionId,
    has_talked: bool,
    exit: Exit,
}

/// A turn that is being printed.
struct Turn {
    printer: Box<dyn Printer>,
    totals: Totals,
    begun: Instant,
    /// Output of a command that the user ran, which is its answer.
    own: Option<String>,
}

impl View {
    pub(super) fn new(style: Style, is_plain: bool, session: SessionId) -> Self {
        Self {
            style,
            is_plain,
            turn: None,
            is_asking: false,
            is_broken: false,
            session,
            has_talked: false,
            exit: Exit::Ok,
        }
    }

    /// Prints an event. `canceled` is the exit code of a canceled turn. An error means that the reader of the
    /// output is gone.
    pub(super) fn event(&mut self, envelope: &Envelope, canceled: Exit) -> io::Result<()> {
        self.is_asking = false;
        self.session.clone_from(&envelope.session);
        // The text of a command has no number, and is not part of the log.
        self.has_talked |= envelope.seq > 0;
        let shown = self.show(envelope, canceled);
        self.is_broken |= shown.is_err();
        shown
    }

    fn show(&mut self, envelope: &Envelope, canceled: Exit) -> io::Result<()> {
        let turn = self.turn.get_or_insert_with(|| Turn {
            printer: talking(self.style, self.is_plain),
            totals: Totals::default(),
            begun: Instant::now(),
            own: None,
        });
        if let Event::ToolResult { call_id, content, .. } = &envelope.event
            && is_own_call(call_id)
        {
            turn.own = Some(plain(content));
        }
        turn.totals.count(&envelope.event);
        turn.printer.event(envelope)?;
        if !envelope.event.is_terminal() {
            return Ok(());
        }
        let outcome = Outcome::of(&envelope.event, canceled);
        self.exit = outcome.exit;
        let Some(mut turn) = self.turn.take() else {
            return Ok(());
        };
        turn.printer.finish(&RunResult {
            session: envelope.session.to_string(),
            exit: outcome.exit,
            answer: match turn.own {
                Some(own) if outcome.answer.as_deref() == Some("") => Some(own),
                _ => outcome.answer,
            },
            structured: None,
            problem: outcome.problem,
            totals: turn.totals,
            duration_ms: u64::try_from(turn.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Prints a line beside the conversation.
    pub(super) fn status(&mut self, text: &str) {
        match &mut self.turn {
            Some(turn) => turn.printer.aside(text),
            None => tell!("{}", plain(text)),
        }
    }

    /// Makes room for a request.
    pub(super) fn pause(&mut self) {
        self.is_asking = true;
        let paused = self.turn.as_mut().map(|turn| turn.printer.pause());
        self.is_broken |= paused.is_some_and(|paused| paused.is_err());
    }

    /// Records that the last input was rejected.
    pub(super) fn fail(&mut self, exit: Exit) {
        self.exit = exit;
    }

    /// Returns true if a spinner is useful.
    pub(super) fn is_working(&self) -> bool {
        self.turn.is_some() && !self.is_asking
    }

    pub(super) fn tick(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.printer.tick();
        }
    }

    pub(super) fn flush(&mut self) {
        let flushed = self.turn.as_mut().map(|turn| turn.printer.idle());
        self.is_broken |= flushed.is_some_and(|flushed| flushed.is_err());
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn has_talked(&self) -> bool {
        self.has_talked
    }

    /// Returns the exit code of the last turn.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}
