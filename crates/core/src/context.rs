//! From the log to a request: the repair that every request goes through, last, on every path.

mod trim;

use std::collections::HashSet;
use std::sync::Arc;

use crate::id::CallId;
use crate::message::{Message, Part, Role, ToolCall, ToolResult};
use crate::turn::refused;

pub use self::trim::trim;

const MISSING_RESULT: &str =
    "Tool execution did not complete (interrupted, cancelled, or crashed). No result is available.";

/// Makes a history valid for any provider: it starts with the user, no message is empty, every call has
/// exactly one result in the message after it, no result lacks its call, and ids are unique.
///
/// Calls and results are matched by position, because providers repeat ids. Valid messages are passed on
/// unchanged, with their encoded bytes.
pub fn prepare(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
    Context::default().prepare(history).to_vec()
}

/// Repaired history of the last request, on which the next one builds: valid messages stay valid, so only new
/// messages are examined.
#[derive(Debug, Default)]
pub struct Context {
    source: Vec<Arc<Message>>,
    groups: Vec<Group>,
    ready: Vec<Arc<Message>>,
    ids: HashSet<CallId>,
}

/// A message with the tool messages after it, which are repaired together.
#[derive(Debug)]
struct Group {
    /// Start of the group in the source, and the messages it added.
    source: usize,
    ready: usize,
    ids: Vec<CallId>,
    repairs: u64,
}

impl Context {
    /// CTX-6: number of places in the last history that had to be repaired.
    pub fn repairs(&self) -> u64 {
        self.groups.iter().map(|group| group.repairs).sum()
    }

    /// Returns the repaired history, ready to be sent.
    pub fn prepare(&mut self, history: &[Arc<Message>]) -> &[Arc<Message>] {
        let same = self
            .source
            .iter()
            .zip(history)
            .take_while(|(ours, theirs)| Arc::ptr_eq(ours, theirs));
        let start = self.rewind(same.count());
        let mut rest = history.get(start..).unwrap_or_default();
        self.source.extend(rest.iter().cloned());
        let mut place = start;
        while let Some((message, after)) = rest.split_first() {
            let results = after.iter().take_while(|next| next.role == Role::Tool).count();
            let (tools, after) = after.split_at(results);
            self.groups.push(Group {
                source: place,
                ready: self.ready.len(),
                ids: Vec::new(),
                repairs: 0,
            });
            self.take(message, tools);
            place += 1 + results;
            rest = after;
        }
        &self.ready
    }

    /// Forgets everything after the first `same` messages, and the last group, which may still grow.
    fn rewind(&mut self, same: usize) -> usize {
        let keep = self
            .groups
            .partition_point(|group| group.source < same)
            .saturating_sub(1);
        for group in self.groups.iter().skip(keep) {
            for id in &group.ids {
                self.ids.remove(id);
            }
        }
        let (source, ready) = self
            .groups
            .get(keep)
            .map_or((0, 0), |group| (group.source, group.ready));
        self.groups.truncate(keep);
        self.source.truncate(source);
        self.ready.truncate(ready);
        source
    }

    fn take(&mut self, message: &Arc<Message>, tools: &[Arc<Message>]) {
        let fits = match message.role {
            Role::User => true,
            Role::Assistant => !self.ready.is_empty(),
            // Tool messages belong to the assistant message before them; a leading one has none.
            Role::Tool | Role::System => false,
        };
        if !fits || !has_content(message) {
            self.repaired(1 + tools.len());
            return;
        }
        let clean = &without_strays(message);
        self.repaired(usize::from(!Arc::ptr_eq(clean, message)));
        if clean.role == Role::User || clean.calls().next().is_none() {
            self.repaired(tools.len());
            self.ready.push(Arc::clone(clean));
            return;
        }
        let message = self.with_unique_ids(clean);
        let answered = answer_calls(&message, tools);
        let is_whole = tools.first().is_some_and(|tool| Arc::ptr_eq(tool, &answered));
        self.repaired(usize::from(!Arc::ptr_eq(clean, &message)) + usize::from(!is_whole));
        self.ready.push(message);
        self.ready.push(answered);
    }

    fn repaired(&mut self, places: usize) {
        if let Some(group) = self.groups.last_mut() {
            group.repairs += places as u64;
        }
    }

    fn with_unique_ids(&mut self, message: &Arc<Message>) -> Arc<Message> {
        let mut added = Vec::new();
        let unique = message.calls().all(|call| {
            let new = self.ids.insert(call.id.clone());
            if new {
                added.push(call.id.clone());
            }
            new
        });
        let message = if unique {
            Arc::clone(message)
        } else {
            self.renamed(message, &mut added)
        };
        if let Some(group) = self.groups.last_mut() {
            group.ids = added;
        }
        message
    }

    fn renamed(&mut self, message: &Message, added: &mut Vec<CallId>) -> Arc<Message> {
        let mut unique = message.clone();
        // The provider's own items contain the old ids.
        unique.origin = None;
        for (index, part) in unique.parts.iter_mut().enumerate() {
            if let Part::ToolCall(call) = part {
                call.id = CallId::from(format!("{}_{}_{index}", call.id, self.ready.len()));
                if self.ids.insert(call.id.clone()) {
                    added.push(call.id.clone());
                }
            }
        }
        Arc::new(unique)
    }
}

/// Removes parts that belong to another role: a result outside a tool message, a call of the user.
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

/// Returns true if a model would see any of the message.
fn has_content(message: &Message) -> bool {
    message.parts.iter().any(|part| match part {
        Part::Text(text) => !text.text.trim().is_empty(),
        Part::Context(fragment) => !fragment.text.trim().is_empty(),
        Part::Compressed(compressed) => !compressed.text.trim().is_empty(),
        Part::Compaction(compaction) => !compaction.summary.trim().is_empty(),
        Part::ToolCall(_) => message.role == Role::Assistant,
        Part::Binary(_) | Part::ImageUrl(_) => true,
        Part::Reasoning(_) | Part::ToolResult(_) | Part::Finish(_) | Part::Unknown(_) => false,
    })
}

/// Returns the tool message for `message`: the existing one if it is valid, or a repaired one.
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

/// Finds the result of `call`: by its id or, if the id was made unique, by its old id's prefix and position.
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
