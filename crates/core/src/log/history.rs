//! A conversation, read from its record.

use std::sync::Arc;

use super::Entry;
use crate::event::{Event, SessionEvent};
use crate::id::MessageId;
use crate::message::Message;

/// Messages that a model sees next, in order. A fold over state events.
#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Vec<Arc<Message>>,
    /// Messages that a compaction left out and a later one may bring back.
    left_out: Vec<Arc<Message>>,
}

impl History {
    /// Builds the history from entries.
    pub fn read<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut history = Self::default();
        for entry in counting(entries) {
            history.apply(&entry.event);
        }
        history
    }

    /// Applies one event. A rewind needs the entries before it: use [`Self::read`].
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Message { message } => self.put(message),
            Event::Session(SessionEvent::Compaction { history, .. }) if !history.is_empty() => {
                self.select(history);
            }
            _ => {}
        }
    }

    /// Returns the messages.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the messages, consuming the history.
    pub fn into_messages(self) -> Vec<Arc<Message>> {
        self.messages
    }

    fn put(&mut self, message: &Arc<Message>) {
        // A message changes only soon after it was added.
        let known = self
            .messages
            .iter_mut()
            .rev()
            .find(|known| known.id == message.id);
        match known {
            Some(known) => *known = Arc::clone(message),
            None => self.messages.push(Arc::clone(message)),
        }
    }

    fn select(&mut self, ids: &[MessageId]) {
        let mut all = std::mem::take(&mut self.messages);
        all.append(&mut self.left_out);
        let find = |id: &MessageId| all.iter().find(|message| message.id == *id).cloned();
        self.messages = ids.iter().filter_map(find).collect();
        all.retain(|message| !ids.contains(&message.id));
        self.left_out = all;
    }
}

/// Returns the entries that are part of the conversation, without those that a rewind left behind.
///
/// Entries form a tree whose branches start at rewinds. The conversation is the path from the root to the
/// last entry.
pub fn counting<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<&'a Entry> {
    let mut nodes: Vec<(&Entry, Option<usize>)> = Vec::new();
    // Position of the conversation after each entry.
    let mut stood: Vec<(u64, Option<usize>)> = Vec::new();
    let mut here = None;
    for entry in entries {
        if let Event::Session(SessionEvent::Rewind { to }) = entry.event {
            let before = stood.partition_point(|(seq, _)| *seq <= to);
            here = before
                .checked_sub(1)
                .and_then(|last| stood.get(last))
                .and_then(|(_, stood)| *stood);
        } else {
            nodes.push((entry, here));
            here = Some(nodes.len() - 1);
        }
        stood.push((entry.seq, here));
    }
    let mut way = Vec::with_capacity(nodes.len());
    while let Some((entry, before)) = here.and_then(|here| nodes.get(here)) {
        way.push(*entry);
        here = *before;
    }
    way.reverse();
    way
}
