//! From the log to a request: the one repair every request goes through, last, on every path.

use std::collections::HashSet;
use std::sync::Arc;

use crate::id::CallId;
use crate::message::{Message, Part, Role, ToolCall, ToolResult};
use crate::turn::refused;

const MISSING_RESULT: &str =
    "Tool execution did not complete (interrupted, cancelled, or crashed). No result is available.";

/// Makes a history valid for any provider: it starts with the user, nothing in it is empty, every
/// call has exactly one result in the message after it, no result is without its call, ids are unique.
///
/// Calls and results are matched by position, because providers repeat ids. Messages that are right
/// are passed on as they are, with their encoded bytes.
pub fn prepare(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut repair = Repair {
        ready: Vec::with_capacity(history.len() + 1),
        ids: HashSet::new(),
    };
    let mut rest = history;
    while let Some((message, after)) = rest.split_first() {
        let results = after.iter().take_while(|next| next.role == Role::Tool).count();
        let (tools, after) = after.split_at(results);
        repair.take(message, tools);
        rest = after;
    }
    repair.ready
}

struct Repair {
    ready: Vec<Arc<Message>>,
    ids: HashSet<CallId>,
}

impl Repair {
    fn take(&mut self, message: &Arc<Message>, tools: &[Arc<Message>]) {
        let fits = match message.role {
            Role::User => true,
            Role::Assistant => !self.ready.is_empty(),
            // Tool messages are taken with the assistant message before them; one that comes first has none.
            Role::Tool | Role::System => false,
        };
        if !fits || !has_content(message) {
            return;
        }
        let message = &without_strays(message);
        if message.role == Role::User || message.calls().next().is_none() {
            self.ready.push(Arc::clone(message));
            return;
        }
        let message = self.with_unique_ids(message);
        let answered = answer_calls(&message, tools);
        self.ready.push(message);
        self.ready.push(answered);
    }

    fn with_unique_ids(&mut self, message: &Arc<Message>) -> Arc<Message> {
        let before = self.ids.len();
        let calls: Vec<_> = message.calls().collect();
        self.ids.extend(calls.iter().map(|call| call.id.clone()));
        if self.ids.len() == before + calls.len() {
            return Arc::clone(message);
        }
        let mut unique = (**message).clone();
        // The provider's own items carry the old ids.
        unique.origin = None;
        for (index, part) in unique.parts.iter_mut().enumerate() {
            if let Part::ToolCall(call) = part {
                call.id = CallId::from(format!("{}_{}_{index}", call.id, self.ready.len()));
                self.ids.insert(call.id.clone());
            }
        }
        Arc::new(unique)
    }
}

/// The message without parts that belong to another role: a result outside a tool message, a call of the user.
fn without_strays(message: &Arc<Message>) -> Arc<Message> {
    let is_stray = |part: &Part| match part {
        Part::ToolResult(_) => true,
        Part::ToolCall(_) => message.role == Role::User,
        _ => false,
    };
    if !message.parts.iter().any(is_stray) {
        return Arc::clone(message);
    }
    let mut clean = (**message).clone();
    clean.parts.retain(|part| !is_stray(part));
    Arc::new(clean)
}

/// Whether a model would see anything of the message.
fn has_content(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text(text) => !text.text.trim().is_empty(),
        Part::Compressed(compressed) => !compressed.text.trim().is_empty(),
        Part::Compaction(compaction) => !compaction.summary.trim().is_empty(),
        Part::ToolCall(_) => message.role == Role::Assistant,
        Part::Binary(_) | Part::ImageUrl(_) => true,
        Part::Reasoning(_) | Part::ToolResult(_) | Part::Finish(_) | Part::Unknown(_) => false,
    })
}

/// The tool message for `message`: the one that is there when it is right, or a repaired one.
fn answer_calls(message: &Message, tools: &[Arc<Message>]) -> Arc<Message> {
    if let [tool] = tools
        && tool
            .results()
            .map(|result| &result.call_id)
            .eq(message.calls().map(|call| &call.id))
        && tool.parts.iter().all(|part| matches!(part, Part::ToolResult(_)))
    {
        return Arc::clone(tool);
    }
    let mut found: Vec<Option<&ToolResult>> =
        tools.iter().flat_map(|tool| tool.results()).map(Some).collect();
    let originals = message.calls().collect::<Vec<_>>();
    let parts = originals.iter().enumerate().map(|(index, call)| {
        let result = take_result(&mut found, call, index).map_or_else(
            || refused(call, MISSING_RESULT),
            |result| ToolResult {
                call_id: call.id.clone(),
                ..result.clone()
            },
        );
        Part::ToolResult(result)
    });
    let now = tools.first().map_or(message.updated_at, |tool| tool.updated_at);
    Arc::new(Message::new(
        &message.session_id,
        Role::Tool,
        parts.collect(),
        now,
    ))
}

/// The result of `call`: by its id, or, where the id was made unique, by its old id's prefix and place.
fn take_result<'a>(
    found: &mut [Option<&'a ToolResult>],
    call: &ToolCall,
    index: usize,
) -> Option<&'a ToolResult> {
    let by_id = found
        .iter()
        .position(|slot| slot.is_some_and(|result| result.call_id == call.id));
    let by_place = || {
        let slot = found.get(index).copied().flatten()?;
        call.id
            .as_str()
            .starts_with(&format!("{}_", slot.call_id))
            .then_some(index)
    };
    let place = by_id.or_else(by_place)?;
    found.get_mut(place).and_then(Option::take)
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
