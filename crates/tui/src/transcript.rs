//! The conversation as it is shown: what is finished goes into the terminal's scrollback, what is not stays in the live
//! area.
//!
//! Events come in the order in which they happened, live or read from the record; the same events make the same screen.

mod card;
mod item;
mod lines;
mod reply;
mod thinking;

use std::collections::VecDeque;

use windlass_api::{
    CallId, DeltaKind, Event, FinishReason, GoalCompletion, Message, Part, Role, SessionEvent, own_call,
};
use windlass_core::dispatch::title;
use windlass_core::message::ToolCall;
use windlass_core::tool::raw_arguments;

use self::card::Card;
pub(crate) use self::card::seconds;
pub(crate) use self::item::RenderOptions;
use self::item::{Item, Placed};
pub(crate) use self::lines::Place;
use self::reply::Reply;
use self::thinking::Thinking;
use crate::markdown::StreamingMarkdown;
use crate::text::{cut, one_line, plain};
use crate::theme::Tone;

/// The number of what is not part of the record.
const BESIDE: u64 = 0;
/// The number of the first entry of a record.
const FIRST: u64 = 1;
/// How many items are kept for looking back; older ones are read from the record again.
const KEPT: usize = 300;
/// How many items wait for the scrollback with all that belongs to them; those before them are shortened.
const WAITING: usize = 2_000;
/// How far back the call of a message about it can be.
const OWN_CALLS: usize = 3;
/// How much of a goal is shown when it was reached.
const GOAL_COLUMNS: usize = 100;

/// What is shown of a session.
#[derive(Default)]
pub(crate) struct Transcript {
    /// In the scrollback already. A bounded piece of the end.
    past: VecDeque<Placed>,
    /// Not there yet, in order: some are finished and wait for others before them.
    open: VecDeque<Placed>,
    /// The calls of the last reply whose turn to be told has not come: they are told one after the other, but may run
    /// at the same time.
    planned: Vec<Card>,
    /// How many calls among the open items have not ended.
    running: usize,
    /// The answer that is being received, after everything else.
    reply: Option<Reply>,
    thinking: Option<Thinking>,
    /// Whether the last thought is what was heard of it live: all of it is told when the reply is complete.
    is_thought_partial: bool,
    /// The last thing the model said, as it said it.
    last_answer: String,
    /// Whether the last thing in the scrollback was a call: calls stand close together.
    last_was_call: bool,
    /// The goal that the answer reaches which comes next.
    reached: Option<String>,
    /// The number from which on the record is told here.
    begins: Option<u64>,
    /// How many items were put at the end: what they are numbered by, and those before them from there downwards.
    pushed: i64,
}

impl Transcript {
    /// Takes an event. `now_ms` is a time that never runs backwards.
    pub(crate) fn hear(&mut self, seq: u64, event: &Event, now_ms: u64) {
        // What is only told live has the number of what was recorded before it.
        if seq != BESIDE && !event.is_live() {
            self.begins.get_or_insert(seq);
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

    /// What bears on the turn as a whole.
    fn turning(&mut self, seq: u64, event: &Event) {
        match event {
            Event::Retry {
                attempt,
                max_attempts,
                delay_ms,
                message,
                discard,
                ..
            } => {
                if *discard {
                    self.reply = None;
                    self.forget_thinking();
                }
                #[allow(clippy::cast_precision_loss)]
                let seconds = *delay_ms as f64 / 1000.0;
                let again = if *discard { "; the reply starts over" } else { "" };
                let text = format!("{message}: retry {attempt} of {max_attempts} in {seconds:.1} s{again}");
                self.note(seq, Tone::Warn, &text);
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
            if let Some(goal) = self.reached.take() {
                self.goal_reached(seq, &goal);
            }
        }
    }

    fn whole(&mut self, seq: u64, event: &SessionEvent) {
        match event {
            SessionEvent::Compaction { before, after, .. } => {
                let text = format!("The context was made smaller: {before} → {after} tokens.");
                self.note(seq, Tone::Dim, &text);
            }
            SessionEvent::Rewind { .. } => {
                self.note(seq, Tone::Dim, "The conversation goes on from an earlier point.");
            }
            // The answer that says so is told after this, and shown before it.
            SessionEvent::GoalCompleted {
                text,
                how: GoalCompletion::Phrase,
            } => self.reached = Some(text.clone()),
            SessionEvent::GoalCompleted {
                text,
                how: GoalCompletion::Command,
            } => self.goal_reached(seq, text),
            SessionEvent::Title { .. } | SessionEvent::Goal { .. } => {}
        }
    }

    fn goal_reached(&mut self, seq: u64, goal: &str) {
        let text = format!("Goal reached: {}", cut(&one_line(goal), GOAL_COLUMNS));
        self.note(seq, Tone::Good, &text);
    }

    fn message(&mut self, seq: u64, message: &Message, now_ms: u64) {
        match message.role {
            // What the user ran is shown as a call; this is the same for the model.
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
                if let Some(reminder) = message.reminds_of() {
                    self.note(seq, Tone::Dim, reminder);
                }
                let text = message.said();
                if !text.is_empty() || !images.is_empty() {
                    self.push(seq, Item::User { text, images });
                }
            }
            // What a reply says comes with its own events, unless it was cut off.
            Role::Assistant => {
                let is_cut = matches!(
                    message.finish(),
                    Some(FinishReason::Interrupted | FinishReason::Canceled | FinishReason::Error)
                );
                if is_cut {
                    self.said(seq, &message.text());
                } else {
                    self.plan(message, now_ms);
                }
            }
            Role::System | Role::Tool => {}
        }
    }

    /// The reply calls these.
    fn plan(&mut self, message: &Message, now_ms: u64) {
        let card = |call: &ToolCall| {
            let title = title(&call.name, &raw_arguments(&call.input));
            Card::new(call.id.clone(), &title, now_ms)
        };
        self.planned = message.calls().map(card).collect();
    }

    /// Whether a message tells the model of a command that the user ran.
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

    /// The model said this. Most of it, or all, has been shown piece by piece.
    fn said(&mut self, seq: u64, text: &str) {
        self.forget_thinking();
        let mut reply = self.reply.take();
        let late = reply.as_mut().and_then(|reply| reply.late.take());
        if text.is_empty() && reply.is_none() {
            return;
        }
        let begun = reply.as_ref().is_some_and(|reply| reply.is_begun);
        let rest = match reply.map(|reply| reply.text) {
            // The end of a turn tells the text without what is white at its end.
            Some(mut growing) => match text.strip_prefix(growing.source().trim_end()) {
                Some(missing) => {
                    let missing = missing.trim_end();
                    if !missing.is_empty() {
                        growing.push(missing);
                    }
                    growing
                }
                // What is in the scrollback stays; the whole is shown again.
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

    /// Whether the last thing shown is this answer: it comes with the reply and again with the end of the turn.
    fn is_shown(&self, text: &str) -> bool {
        let mut placed = self.open.iter().rev().chain(self.past.iter().rev());
        let last = placed.find(|placed| !matches!(placed.item, Item::Thought { .. }));
        matches!(last.map(|placed| &placed.item), Some(Item::Answer { text: shown, .. }) if shown.trim_end() == text.trim_end())
    }

    fn end_answer(&mut self, seq: u64) {
        if self.reply.is_some() {
            self.said(seq, "");
        }
    }

    /// A call without an end has none any more.
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

    /// Something that is not part of the record: what a command said, what the front end has to say.
    pub(crate) fn tell(&mut self, tone: Tone, text: &str) {
        let text = plain(text);
        let item = if tone == Tone::Text {
            Item::Told { text }
        } else {
            Item::Note { tone, text }
        };
        self.push(BESIDE, item);
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
        // While nothing is printed, as on the whole screen, this would grow without end.
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

    /// Nothing more comes: whatever is open has ended.
    pub(crate) fn close(&mut self) {
        let seq = self.last_seq();
        self.end_answer(seq);
        self.forget_thinking();
        self.end_calls();
    }

    /// What the user said at a number.
    pub(crate) fn said_at(&self, seq: u64) -> Option<String> {
        let mut all = self.past.iter().chain(self.open.iter());
        all.find_map(|placed| match &placed.item {
            Item::User { text, .. } if placed.seq == seq => Some(text.clone()),
            _ => None,
        })
    }

    /// Puts older items before all others.
    pub(crate) fn put_before(&mut self, older: Transcript) {
        // Before what nothing comes before, the record begins.
        self.begins = older.begins.or(Some(FIRST));
        for placed in older.past.into_iter().chain(older.open).rev() {
            self.past.push_front(placed);
        }
    }

    /// The number from which on the record is told here; `None` while nothing of it is.
    pub(crate) fn first_seq(&self) -> Option<u64> {
        self.begins
    }

    fn last_seq(&self) -> u64 {
        let placed = self.open.iter().rev().chain(self.past.iter().rev());
        let mut numbers = placed.map(|placed| placed.seq);
        numbers.find(|seq| *seq != BESIDE).unwrap_or(BESIDE)
    }

    /// The last thing the model said, as it said it.
    pub(crate) fn last_answer(&self) -> &str {
        &self.last_answer
    }

    /// Whether something moves that has to be drawn again and again.
    pub(crate) fn is_running(&self) -> bool {
        self.running > 0
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
