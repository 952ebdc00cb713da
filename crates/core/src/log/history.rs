//! A conversation, read from its record.

use std::sync::Arc;

use super::Entry;
use crate::event::{Event, SessionEvent};
use crate::id::MessageId;
use crate::message::Message;

/// The messages that a model sees next, in order. A fold over state events.
#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Vec<Arc<Message>>,
    /// What a compaction left out and a later one may bring back.
    left_out: Vec<Arc<Message>>,
}

impl History {
    /// The history that entries tell.
    pub fn read<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut history = Self::default();
        for entry in counting(entries) {
            history.apply(&entry.event);
        }
        history
    }

    /// Takes one event in. A rewind needs the entries before it: [`Self::read`] them.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Message { message } => self.put(message),
            Event::Session(SessionEvent::Compaction { history, .. }) if !history.is_empty() => {
                self.select(history);
            }
            _ => {}
        }
    }

    /// The messages.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The same, taken out.
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

/// The entries that count: without those that a rewind left behind.
///
/// Entries are a tree whose branches begin at rewinds. What counts is the way from its root to where the last one stands.
pub fn counting<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<&'a Entry> {
    let mut nodes: Vec<(&Entry, Option<usize>)> = Vec::new();
    // Where the conversation stood after each entry.
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
