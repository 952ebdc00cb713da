//! The conversation on screen: finished items go into the terminal's scrollback, the others stay in the live
//! area.
//!
//! Events arrive in the order they happened, live or read from the log; the same events always produce the
//! same screen.

mod card;
mod item;
mod lines;
mod reply;
mod thinking;

use std::collections::VecDeque;

use windlass_api::{
    CallId, DeltaKind, Event, FinishReason, GoalCompletion, Message, NoteKind, Part, Role, SessionEvent,
    goal_note, own_call,
};
use windlass_core::dispatch::title;
use windlass_core::message::FragmentSource;
use windlass_core::message::ToolCall;
use windlass_core::tool::raw_arguments;

use self::card::Card;
pub(crate) use self::card::seconds;
pub(crate) use self::item::RenderOptions;
use self::item::{Item, Placed};
pub(crate) use self::lines::Place;
use self::reply::Reply;
use self::thinking::Thinking;
use crate::header::Header;
use crate::markdown::StreamingMarkdown;
use crate::text::{cut, one_line, plain};
use crate::theme::Tone;

/// Sequence number of items that are not part of the log.
const BESIDE: u64 = 0;
/// Sequence number of the first entry in a log.
const FIRST: u64 = 1;
/// Maximum number of items kept in memory for scrolling back; older ones are read from the log again.
const KEPT: usize = 300;
/// Maximum number of complete items waiting for the scrollback; earlier ones are shortened.
const WAITING: usize = 2_000;
/// Maximum distance between a user command's call and the message about it.
const OWN_CALLS: usize = 3;
/// Maximum width of a goal in the message that it was reached.
const GOAL_COLUMNS: usize = 100;

/// Displayed conversation of a session.
#[derive(Default)]
pub(crate) struct Transcript {
    /// Items already in the scrollback, up to a limit.
    past: VecDeque<Placed>,
    /// Items not in the scrollback yet, in order: some are finished and wait for earlier ones.
    open: VecDeque<Placed>,
    /// Calls of the last reply that were not announced yet: they are announced one by one, but may run
    /// concurrently.
    planned: Vec<Card>,
    /// Number of open calls that are not finished.
    running: usize,
    /// The answer being streamed, after everything else.
    reply: Option<Reply>,
    thinking: Option<Thinking>,
    /// True if the last thought is only its streamed part: the complete text arrives with the complete reply.
    is_thought_partial: bool,
    /// Last answer of the model, as source text.
    last_answer: String,
    /// True if the last item in the scrollback was a short call: no blank line separates calls.
    last_was_call: bool,
    due: Due,
    /// First sequence number of the log in this transcript.
    begins: Option<u64>,
    /// Number of items ever appended. Items are numbered backwards from it.
    pushed: i64,
}

/// Notes that are due with a later event.
#[derive(Default)]
struct Due {
    /// Number and cause of the last retry, until the request succeeds or fails.
    retried: Option<(u32, String)>,
    /// Goal reached by the next answer.
    reached: Option<String>,
}

impl Transcript {
    /// Applies an event. `now_ms` is monotonic.
    pub(crate) fn hear(&mut self, seq: u64, event: &Event, now_ms: u64) {
        // A live-only event carries the number of the entry recorded before it.
        if seq != BESIDE && !event.is_live() {
            self.begins.get_or_insert(seq);
        }
        if !matches!(
            event,
            Event::Retry { .. } | Event::Status { .. } | Event::Waiting(_)
        ) {
            self.end_retries(seq);
        }
        match event {
            Event::Message { message } => self.message(seq, message, now_ms),
            Event::Delta { kind, text } => self.delta(*kind, text, now_ms),
            Event::Reasoning { text } => self.thought(seq, text, now_ms),
            Event::Text { text } => self.said(seq, text),
            Event::StepStart { call_id, title, .. } => {
                self.end_thinking(now_ms);
                let planned = self.planned.iter().position(|card| card.is(call_id));
                let mut card = match planned {
                    Some(index) => self.planned.remove(index),
                    None => Card::new(call_id.clone(), title, now_ms),
                };
                card.begin(now_ms);
                card.titled(title);
                self.push(seq, Item::Call(Box::new(card)));
            }
            Event::ToolCall { call_id, name, .. } => self.with_card(call_id, |card| card.called(name)),
            Event::ToolOutput { call_id, text } => {
                match self.planned.iter_mut().find(|card| card.is(call_id)) {
                    Some(card) => {
                        card.begin(now_ms);
                        card.output(text);
                    }
                    None => self.with_card(call_id, |card| card.output(text)),
                }
            }
            Event::ToolResult {
                call_id,
                content,
                details,
                ..
            } => self.with_card(call_id, |card| card.result(content, details.as_ref())),
            Event::StepComplete {
                call_id,
                status,
                duration_ms,
            } => self.with_card(call_id, |card| card.complete(*status, *duration_ms)),
            Event::Retry { .. }
            | Event::Warning { .. }
            | Event::Error { .. }
            | Event::Final { .. }
            | Event::Canceled { .. }
            | Event::Failed { .. } => self.turning(seq, event),
            Event::Session(session) => self.whole(seq, session),
            Event::Start { .. } | Event::Usage { .. } | Event::Status { .. } | Event::Waiting(_) => {}
        }
    }

    /// Handles events about the turn as a whole.
    fn turning(&mut self, seq: u64, event: &Event) {
        match event {
            Event::Retry {
                attempt,
                message,
                discard,
                ..
            } => {
                if *discard {
                    self.reply = None;
                    self.forget_thinking();
                }
                // While it lasts, the progress line counts down; one line remains of all retries.
                self.due.retried = Some((*attempt, message.clone()));
            }
            Event::Warning { message } => self.note(seq, Tone::Warn, message),
            Event::Error { message } => self.note(seq, Tone::Bad, message),
            Event::Final { content, finish } => {
                self.said(seq, content);
                match finish {
                    FinishReason::EndTurn | FinishReason::ToolUse => {}
                    FinishReason::MaxIterations => {
                        self.note(seq, Tone::Warn, "The turn reached its iteration limit.");
                    }
                    other => self.note(seq, Tone::Warn, &format!("The turn ended early: {other:?}.")),
                }
            }
            Event::Canceled { message } => {
                self.end_answer(seq);
                self.note(seq, Tone::Warn, message);
            }
            Event::Failed { message, hint, .. } => {
                self.end_answer(seq);
                let hint = hint.as_ref().map(|hint| format!("\n{hint}")).unwrap_or_default();
                self.note(seq, Tone::Bad, &format!("{message}{hint}"));
            }
            _ => {}
        }
        if event.is_terminal() {
            self.forget_thinking();
            self.end_calls();
            if let Some(goal) = self.due.reached.take() {
                self.goal_reached(seq, &goal);
            }
        }
    }

    fn whole(&mut self, seq: u64, event: &SessionEvent) {
        match event {
            SessionEvent::Compacting { .. } => {}
            SessionEvent::Compaction { before, after, .. } => {
                let text = format!("Context compacted: {before} → {after} tokens.");
                self.note(seq, Tone::Dim, &text);
            }
            SessionEvent::Rewind { .. } => {
                self.note(
                    seq,
                    Tone::Dim,
                    "The conversation continues from an earlier point.",
                );
            }
            SessionEvent::Moved { .. } => {
                self.reply = None;
                self.forget_thinking();
                self.end_calls();
                if let Some(line) = event.moved_line() {
                    self.note(seq, Tone::Warn, &one_line(&line));
                }
            }
            // The answer that reaches the goal arrives after this event, and is shown before the message.
            SessionEvent::GoalCompleted {
                text,
                how: GoalCompletion::Phrase,
            } => self.due.reached = Some(text.clone()),
            SessionEvent::Agent(event) => {
                if let Some(line) = event.line() {
                    self.note(seq, Tone::Dim, &line);
                }
            }
            SessionEvent::GoalCompleted {
                text,
                how: GoalCompletion::Command,
            } => self.goal_reached(seq, text),
            // The end of work without input says the same.
            SessionEvent::GoalCompleted { .. } | SessionEvent::Title { .. } | SessionEvent::Goal { .. } => {}
            SessionEvent::Work(event) => {
                if let Some((kind, text)) = goal_note(event) {
                    let tone = match kind {
                        NoteKind::Progress => Tone::Dim,
                        NoteKind::Good => Tone::Good,
                        NoteKind::Bad => Tone::Warn,
                    };
                    text.lines()
                        .for_each(|line| self.note(seq, tone, &one_line(line)));
                }
            }
        }
    }

    fn goal_reached(&mut self, seq: u64, goal: &str) {
        let text = format!("Goal reached: {}", cut(&one_line(goal), GOAL_COLUMNS));
        self.note(seq, Tone::Good, &text);
    }

    fn message(&mut self, seq: u64, message: &Message, now_ms: u64) {
        match message.role {
            // A user command is already shown as a call; this message is its form for the model.
            Role::User if self.has_own_call(message) => {}
            Role::User => {
                let mut images = Vec::new();
                for part in &message.parts {
                    match part {
                        Part::Binary(binary) => images.push(binary.path.clone()),
                        Part::Compaction(_) => return,
                        _ => {}
                    }
                }
                if let Some(reminder) = message.fragment(FragmentSource::Reminder) {
                    self.note(seq, Tone::Dim, reminder);
                }
                let results = message
                    .fragments()
                    .filter(|part| part.source == FragmentSource::Child);
                let names: Vec<String> = results.filter_map(|part| part.label.clone()).collect();
                if !names.is_empty() {
                    self.note(
                        seq,
                        Tone::Dim,
                        &format!("Results of agents: {}.", names.join(", ")),
                    );
                }
                let text = message.user_text();
                if !text.is_empty() || !images.is_empty() {
                    self.push(seq, Item::User { text, images });
                }
            }
            // The text of a reply comes with its own events, unless it was cut off.
            Role::Assistant => {
                let is_cut = matches!(
                    message.finish(),
                    Some(FinishReason::Interrupted | FinishReason::Canceled | FinishReason::Error)
                );
                if is_cut && self.reply.is_none() && self.is_in_turn(&message.text()) {
                    // It was shown before the calls that were stopped.
                } else if is_cut {
                    self.said(seq, &message.text());
                } else {
                    self.plan(message, now_ms);
                }
            }
            Role::System | Role::Tool => {}
        }
    }

    /// Adds the calls of a reply as planned.
    fn plan(&mut self, message: &Message, now_ms: u64) {
        let card = |call: &ToolCall| {
            let title = title(&call.name, &raw_arguments(&call.input));
            Card::new(call.id.clone(), &title, now_ms)
        };
        self.planned = message.calls().map(card).collect();
    }

    /// True if a message reports a user command to the model.
    fn has_own_call(&self, message: &Message) -> bool {
        let call = own_call(&message.id);
        let mut last = self
            .open
            .iter()
            .rev()
            .chain(self.past.iter().rev())
            .take(OWN_CALLS);
        last.any(|placed| matches!(&placed.item, Item::Call(card) if card.is(&call)))
    }

    fn delta(&mut self, kind: DeltaKind, text: &str, now_ms: u64) {
        match kind {
            DeltaKind::Text => {
                self.end_thinking(now_ms);
                self.reply.get_or_insert_default().text.push(text);
            }
            DeltaKind::Thinking => {
                let thinking = self.thinking.get_or_insert_with(|| Thinking::new(now_ms));
                thinking.push(text);
            }
            DeltaKind::ToolInput => self.end_thinking(now_ms),
        }
    }

    /// Completes the answer. Most or all of it has been streamed.
    fn said(&mut self, seq: u64, text: &str) {
        self.forget_thinking();
        let mut reply = self.reply.take();
        let late = reply.as_mut().and_then(|reply| reply.late.take());
        if text.is_empty() && reply.is_none() {
            return;
        }
        let begun = reply.as_ref().is_some_and(|reply| reply.is_begun);
        let rest = match reply.map(|reply| reply.text) {
            // The final event omits trailing white space.
            Some(mut growing) => match text.strip_prefix(growing.source().trim_end()) {
                Some(missing) => {
                    let missing = missing.trim_end();
                    if !missing.is_empty() {
                        growing.push(missing);
                    }
                    growing
                }
                // Text in the scrollback cannot be changed; the whole answer is shown again.
                None if !text.is_empty() => StreamingMarkdown::of(text),
                None => growing,
            },
            None if self.last_answer.trim_end() == text.trim_end() && self.is_shown(text) => return,
            None => StreamingMarkdown::of(text),
        };
        self.last_answer = if text.is_empty() {
            rest.source().to_owned()
        } else {
            text.to_owned()
        };
        let item = Item::Answer {
            text: self.last_answer.clone(),
            rest: Some(Box::new(rest)),
            begun,
        };
        self.push(seq, item);
        if let Some(late) = late {
            self.push(late.seq, late.item);
        }
    }

    /// True if this answer is the last item: it arrives with the reply and again at the end of the turn.
    fn is_shown(&self, text: &str) -> bool {
        let mut placed = self.open.iter().rev().chain(self.past.iter().rev());
        let last = placed.find(|placed| !matches!(placed.item, Item::Thought { .. }));
        matches!(last.map(|placed| &placed.item), Some(Item::Answer { text: shown, .. }) if shown.trim_end() == text.trim_end())
    }

    /// True if the current turn has shown this answer already.
    fn is_in_turn(&self, text: &str) -> bool {
        let placed = self.open.iter().rev().chain(self.past.iter().rev());
        let mut turn = placed.take_while(|placed| !matches!(placed.item, Item::User { .. }));
        turn.any(|placed| {
            matches!(&placed.item, Item::Answer { text: shown, .. } if shown.trim_end() == text.trim_end())
        })
    }

    fn end_answer(&mut self, seq: u64) {
        if self.reply.is_some() {
            self.said(seq, "");
        }
    }

    /// Marks unfinished calls as failed.
    fn end_calls(&mut self) {
        self.planned.clear();
        if std::mem::take(&mut self.running) == 0 {
            return;
        }
        for placed in &mut self.open {
            if let Item::Call(card) = &mut placed.item {
                card.abandon();
            }
        }
    }

    /// Adds a message that is not part of the log: command output, or a notice of the front end.
    pub(crate) fn tell(&mut self, tone: Tone, text: &str) {
        let text = plain(text);
        let item = if tone == Tone::Text {
            Item::Told { text }
        } else {
            Item::Note { tone, text }
        };
        self.push(BESIDE, item);
    }

    /// Adds the header of the conversation.
    pub(crate) fn head(&mut self, header: Header) {
        self.push(BESIDE, Item::Header(Box::new(header)));
    }

    /// Adds a command as it was typed.
    pub(crate) fn command(&mut self, line: &str) {
        let line = plain(line);
        self.push(BESIDE, Item::Command { line });
    }

    fn end_retries(&mut self, seq: u64) {
        if let Some((count, why)) = self.due.retried.take() {
            let times = windlass_core::text::count(count, "retry");
            self.note(seq, Tone::Dim, &format!("{times}: {why}"));
        }
    }

    fn note(&mut self, seq: u64, tone: Tone, text: &str) {
        let text = plain(text);
        self.push(seq, Item::Note { tone, text });
    }

    fn push(&mut self, seq: u64, item: Item) {
        if !item.is_finished() {
            self.running += 1;
        }
        self.open.push_back(Placed::new(seq, item));
        self.pushed += 1;
        // In full screen nothing is printed, and this would grow without limit.
        let crowded = self.open.len().checked_sub(WAITING + 1);
        if let Some(placed) = crowded.and_then(|index| self.open.get_mut(index)) {
            placed.shorten();
        }
    }

    fn with_card(&mut self, call: &CallId, change: impl FnOnce(&mut Card)) {
        let count = self.open.len();
        for (index, placed) in self.open.iter_mut().enumerate().rev() {
            let Item::Call(card) = &mut placed.item else {
                continue;
            };
            if !card.is(call) {
                continue;
            }
            let was_running = !card.is_finished();
            change(card);
            if was_running && card.is_finished() {
                self.running = self.running.saturating_sub(1);
            }
            placed.forget_lines();
            if index + WAITING < count {
                placed.shorten();
            }
            return;
        }
    }

    /// Closes all open items, because no more events follow.
    pub(crate) fn close(&mut self) {
        let seq = self.last_seq();
        self.end_answer(seq);
        self.forget_thinking();
        self.end_calls();
    }

    /// Returns the user's message with this sequence number.
    pub(crate) fn said_at(&self, seq: u64) -> Option<String> {
        let mut all = self.past.iter().chain(self.open.iter());
        all.find_map(|placed| match &placed.item {
            Item::User { text, .. } if placed.seq == seq => Some(text.clone()),
            _ => None,
        })
    }

    /// Inserts older items before all others.
    pub(crate) fn put_before(&mut self, older: Transcript) {
        // An empty page means that the log starts here.
        self.begins = older.begins.or(Some(FIRST));
        for placed in older.past.into_iter().chain(older.open).rev() {
            self.past.push_front(placed);
        }
    }

    /// First sequence number of the log in this transcript; `None` if it has none yet.
    pub(crate) fn first_seq(&self) -> Option<u64> {
        self.begins
    }

    fn last_seq(&self) -> u64 {
        let placed = self.open.iter().rev().chain(self.past.iter().rev());
        let mut numbers = placed.map(|placed| placed.seq);
        numbers.find(|seq| *seq != BESIDE).unwrap_or(BESIDE)
    }

    /// Last answer of the model, as source text.
    pub(crate) fn last_answer(&self) -> &str {
        &self.last_answer
    }

    /// True if an animation is running.
    pub(crate) fn is_running(&self) -> bool {
        self.running > 0
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
