//! Closes the work that a stopped process left open.

use std::sync::Arc;

use super::{Entry, History};
use crate::clock::Timestamp;
use crate::event::{Event, FailureKind, SessionEvent, Waiting};
use crate::message::{FinishReason, Message, Part, Role, ToolCall, ToolResult};

/// Result that the model sees for a call that may have run.
pub const INTERRUPTED_TEXT: &str = "Interrupted: the program was stopped while this call was under way. It may have taken \
effect or not; look before you do it again.";

/// Result that the model sees for a call that did not run, because its server stopped first.
pub const NOT_RUN_TEXT: &str =
    "Not run: the program was stopped before this call started. Call it again if it is still needed.";

/// Returns the events that complete a record, in order; none if it is complete. Nothing is run again, and no
/// existing entry is changed: a partial reply becomes a message marked as interrupted, a finished call keeps
/// its result, a call that may have run gets an interrupted result, and the turn ends as failed.
pub fn recover(entries: &[Entry], draft: Option<Message>, now: Timestamp) -> Vec<Event> {
    let has_ended = |begun: &usize| entries.iter().skip(*begun).any(|entry| entry.event.is_terminal());
    let begun = entries.iter().rposition(|entry| is_input(&entry.event));
    let Some(begun) = begun.filter(|begun| !has_ended(begun)) else {
        return Vec::new();
    };
    let history = History::read(entries);
    let mut events = Vec::new();
    let known = |draft: &Message| history.messages().iter().any(|message| message.id == draft.id);
    if let Some(draft) = draft.filter(|draft| !known(draft) && says_something(draft)) {
        let draft = without_calls(draft).finished(FinishReason::Interrupted, now);
        events.push(Event::Message {
            message: Arc::new(draft),
        });
    } else if let Some(last) = history
        .messages()
        .last()
        .filter(|last| last.calls().next().is_some())
    {
        let since = entries.get(begun..).unwrap_or_default();
        events.push(Event::Message {
            message: Arc::new(results(last, since, now)),
        });
    }
    events.push(Event::Failed {
        reason: FailureKind::Interrupted,
        message: "the program was stopped before the turn ended".to_owned(),
        hint: Some("everything up to then is saved; send a message to continue".to_owned()),
        finish: FinishReason::Interrupted,
    });
    events
}

/// Returns the events that complete the record of a turn that ended because something could not be recorded, except for its
/// end. `seen` is the history as the turn had it: results that were not recorded are recorded now, and calls without a
/// result get an interrupted one.
pub fn complete(entries: &[Entry], seen: &[Arc<Message>], now: Timestamp) -> Vec<Event> {
    let history = History::read(entries);
    let asked = history
        .messages()
        .last()
        .filter(|last| last.calls().next().is_some());
    let place = asked.and_then(|asked| seen.iter().position(|message| message.id == asked.id));
    let results = place.and_then(|place| seen.get(place + 1));
    if let Some(results) = results.filter(|results| results.role == Role::Tool) {
        return vec![Event::Message {
            message: Arc::clone(results),
        }];
    }
    let mut events = recover(entries, None, now);
    events.pop();
    events
}

/// Returns the events with which another server continues a turn, in order; `None` if no turn is open. Nothing that may
/// have run is run again: a call that may have run gets an interrupted result. If the turn waited for permission, none of
/// the calls without a result has run; if there are no results at all, the calls stay open, and the turn begins with
/// them. A partial reply is dropped, because the model answers again.
pub fn take_over(entries: &[Entry], moved: SessionEvent, now: Timestamp) -> Option<Vec<Event>> {
    let has_ended = |begun: &usize| entries.iter().skip(*begun).any(|entry| entry.event.is_terminal());
    let begun = entries.iter().rposition(|entry| is_input(&entry.event));
    let begun = begun.filter(|begun| !has_ended(begun))?;
    let history = History::read(entries);
    let mut events = vec![Event::Session(moved)];
    let asked = history
        .messages()
        .last()
        .filter(|last| last.calls().next().is_some());
    if let Some(asked) = asked {
        let since = entries.get(begun..).unwrap_or_default();
        let message = results(asked, since, now);
        let waits = waits_for_permission(since);
        let has_results = message
            .parts
            .iter()
            .any(|part| matches!(part, Part::ToolResult(result) if result.content != INTERRUPTED_TEXT));
        if !waits || has_results {
            let message = if waits { not_run(message) } else { message };
            events.push(Event::Message {
                message: Arc::new(message),
            });
        }
    }
    Some(events)
}

/// Returns true if the last request for permission has no answer. Requests are stored before the calls that they precede.
fn waits_for_permission(since: &[Entry]) -> bool {
    let last = since.iter().rev().find_map(|entry| match &entry.event {
        Event::Waiting(Waiting::PermissionRequest { agent, .. }) => Some(agent.is_none()),
        Event::Waiting(Waiting::PermissionAnswer { .. } | Waiting::Question { .. })
        | Event::Message { .. }
        | Event::StepStart { .. } => Some(false),
        _ => None,
    });
    last.unwrap_or_default()
}

/// Replaces the interrupted results: these calls did not start.
fn not_run(mut message: Message) -> Message {
    for part in &mut message.parts {
        if let Part::ToolResult(result) = part
            && result.content == INTERRUPTED_TEXT
        {
            NOT_RUN_TEXT.clone_into(&mut result.content);
        }
    }
    message
}

fn is_input(event: &Event) -> bool {
    matches!(event, Event::Message { message } if message.role == Role::User)
}

fn says_something(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text(text) => !text.text.trim().is_empty(),
        _ => false,
    })
}

/// Removes incomplete calls, which cannot run, and incomplete reasoning, which cannot be sent back.
fn without_calls(mut message: Message) -> Message {
    message.parts.retain(|part| matches!(part, Part::Text(_)));
    message.origin = None;
    message
}

/// Returns the results of a message's calls: the recorded ones, and the interrupted notice for the rest.
fn results(asked: &Message, since: &[Entry], now: Timestamp) -> Message {
    let from = since
        .iter()
        .rposition(|entry| matches!(&entry.event, Event::Message { message } if message.id == asked.id));
    let mut told: Vec<&Event> = since
        .iter()
        .skip(from.unwrap_or_default())
        .map(|entry| &entry.event)
        .filter(|event| matches!(event, Event::ToolResult { .. }))
        .collect();
    let mut parts = Vec::new();
    for call in asked.calls() {
        let place = told
            .iter()
            .position(|event| matches!(event, Event::ToolResult { call_id, .. } if *call_id == call.id));
        let result = place.map(|place| told.remove(place));
        parts.push(Part::ToolResult(
            result.map_or_else(|| interrupted(call), |event| of(call, event)),
        ));
    }
    Message::new(&asked.session_id, Role::Tool, parts, now)
}

fn of(call: &ToolCall, event: &Event) -> ToolResult {
    let mut result = interrupted(call);
    if let Event::ToolResult {
        content,
        is_error,
        details,
        ..
    } = event
    {
        result.content.clone_from(content);
        result.is_error = *is_error;
        result.metadata.clone_from(details);
    }
    result
}

/// Returns the result of a call that may have run.
pub fn interrupted(call: &ToolCall) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: INTERRUPTED_TEXT.to_owned(),
        metadata: None,
        is_error: true,
        images: Vec::new(),
    }
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
