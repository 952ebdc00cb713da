//! What waits for its turn in a live session.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use windlass_api::{ClientError, Event, OnBusy, SessionInfo};
use windlass_core::event::Waiting;
use windlass_core::id::MessageId;
use windlass_core::log::{Durability, Entry, LogError};
use windlass_core::message::Message;

use super::{Accepted, Input, SessionActor};
use crate::{Inner, refused};

impl SessionActor {
    /// Whether the next turn begins by itself.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_held() && !self.queue.is_empty()
    }

    /// Whether the queue waits for somebody to say something: it was found when the session was opened, or something was
    /// stopped since the last input was said.
    fn is_held(&self) -> bool {
        self.heard != Some(self.handle.stops())
    }

    /// What is queued waits for nobody any longer.
    pub(crate) fn go_on(&mut self) {
        self.heard = Some(self.handle.stops());
    }

    /// Whether an input was said to something that was stopped after that, before it could be taken.
    pub(super) fn was_to_wait(&self, input: &Input) -> bool {
        input.stops != self.handle.stops() && input.submission.on_busy != OnBusy::Refuse
    }

    pub(super) fn queued(&self) -> Event {
        self.queued_with(self.sink.steering().waiting())
    }

    fn queued_with(&self, steers: Vec<Arc<Message>>) -> Event {
        Event::Waiting(Waiting::Queue {
            messages: self.queue.iter().cloned().collect(),
            steers,
        })
    }

    /// What waits, told anew before a compaction outside of a turn: whoever opens the session reads from there on.
    pub(super) fn still_queued(&self) -> Vec<Event> {
        let waits = !self.queue.is_empty();
        waits.then(|| self.queued()).into_iter().collect()
    }

    /// Takes an input while something runs, or waits already: that comes first. What was held does not wait any
    /// longer, because somebody is there.
    pub(super) async fn submit_behind(&mut self, input: Input, is_running: bool) -> Accepted {
        let on_busy = input.submission.on_busy;
        let message = self.message(input.submission)?;
        let accepted = match (on_busy, is_running) {
            (_, false) if self.is_held() => self.line_up(message).await,
            (OnBusy::Refuse, _) => Err(ClientError::Busy(self.info.id.clone())),
            (OnBusy::Steer, true) => self.steer(message).await,
            _ if self.queue.len() >= self.inner.options.queue => {
                Err(ClientError::QueueFull(self.info.id.clone()))
            }
            _ => self.line_up(message).await,
        };
        if accepted.is_ok() {
            self.heard = Some(input.stops);
        }
        accepted
    }

    /// Tells what runs something, which is stored first.
    async fn steer(&mut self, message: Message) -> Accepted {
        let message = Arc::new(message);
        let mut steers = self.sink.steering().waiting();
        steers.push(Arc::clone(&message));
        let event = self.queued_with(steers);
        let stored = self.sink.store(vec![event], Durability::Process).await;
        stored.map_err(refused)?;
        self.sink.steering().say(message);
        Ok(None)
    }

    /// Puts an input at the end of the queue.
    async fn line_up(&mut self, message: Message) -> Accepted {
        let id = message.id.clone();
        self.queue.push_back(Arc::new(message));
        let stored = self.sink.store(vec![self.queued()], Durability::Process).await;
        if stored.is_err() {
            self.queue.pop_back();
        }
        stored.map(|()| Some(id)).map_err(refused)
    }

    /// Takes a message out of the queue; `None` when it is not there any more. What cannot be recorded did not happen.
    pub(crate) async fn take_back(&mut self, message: &MessageId) -> Option<Arc<Message>> {
        let place = self.queue.iter().position(|waiting| waiting.id == *message)?;
        let taken = self.queue.remove(place)?;
        let stored = self.sink.store(vec![self.queued()], Durability::Process).await;
        if stored.is_err() {
            self.queue.insert(place, taken);
            return None;
        }
        Some(taken)
    }

    /// What came too late for what ran is the next turn. It is stored as that, because this may be the end of the session's
    /// task, and whoever said it was told that it was taken.
    pub(super) async fn put_back(&mut self) {
        let Some(unheard) = self.sink.steering().end() else {
            return;
        };
        for message in unheard.into_iter().rev() {
            self.queue.push_front(message);
        }
        // When this fails, so does the end of what ran, which says so.
        let _ = self.sink.store(vec![self.queued()], Durability::Process).await;
    }
}

/// What waits in a session that is opened: what the record says, without what it tells as said since.
pub(super) async fn found(
    inner: &Inner,
    entries: &[Entry],
    info: &SessionInfo,
) -> Result<VecDeque<Arc<Message>>, LogError> {
    let last = entries.iter().rev().find_map(|entry| match &entry.event {
        Event::Waiting(Waiting::Queue { messages, steers }) => Some(steers.iter().chain(messages)),
        _ => None,
    });
    let mut queue: VecDeque<_> = last.into_iter().flatten().cloned().collect();
    if !queue.is_empty() {
        // All of it: what was said may be behind a compaction, or on a branch that was left.
        let record = inner.store.entries(&info.id, 0, usize::MAX).await?;
        let said: HashSet<&MessageId> = record
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Message { message } => Some(&message.id),
                _ => None,
            })
            .collect();
        queue.retain(|message| !said.contains(&message.id));
    }
    Ok(queue)
}
