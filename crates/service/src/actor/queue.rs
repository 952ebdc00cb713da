//! Queued inputs of a live session.

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
    /// Returns true if the next turn starts without a further request.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_held() && !self.queue.is_empty()
    }

    /// Returns true if the queue waits for a new input: it was found when the session was opened, or the user
    /// stopped something after the last input.
    fn is_held(&self) -> bool {
        self.heard != Some(self.handle.stops())
    }

    /// Releases a held queue.
    pub(crate) fn go_on(&mut self) {
        self.heard = Some(self.handle.stops());
    }

    /// Returns true if the user stopped something after this input was sent and before it was accepted.
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

    /// Returns the queued inputs as events, to repeat them before a compaction outside a turn: readers of the
    /// session start from there.
    pub(super) fn still_queued(&self) -> Vec<Event> {
        let waits = !self.queue.is_empty();
        waits.then(|| self.queued()).into_iter().collect()
    }

    /// Accepts an input while a turn runs or other inputs are queued, which come first. A held queue is
    /// released, because a new input means that the user is present.
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

    /// Passes a message to the running turn, after storing it.
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

    /// Removes a message from the queue; `None` if it is no longer there. If the removal cannot be recorded,
    /// it does not happen.
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

    /// Queues messages that came too late for the turn they were sent to. They are stored as queued, because
    /// the session's task may end here, and the sender was told that they were accepted.
    pub(super) async fn put_back(&mut self) {
        let Some(unheard) = self.sink.steering().end() else {
            return;
        };
        for message in unheard.into_iter().rev() {
            self.queue.push_front(message);
        }
        // If this fails, recording the end of the turn fails as well, and reports it.
        let _ = self.sink.store(vec![self.queued()], Durability::Process).await;
    }
}

/// Returns the queue of a session that is opened: the recorded queue without the inputs that were taken
/// since.
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
        // The whole record: an input may be before a compaction, or on a branch that was left.
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
