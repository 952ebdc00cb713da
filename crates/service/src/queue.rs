//! Inputs that wait for their turn. They are stored, and survive the end of the process.

use std::collections::HashSet;
use std::sync::Arc;

use windlass_api::{ClientError, Event, OnBusy, SessionId, Submission};
use windlass_core::clock::Timestamp;
use windlass_core::event::Waiting;
use windlass_core::id::MessageId;
use windlass_core::log::{Durability, Entry, LogError};
use windlass_core::message::{Message, Part, Role};

use crate::handle::Stops;
use crate::sink::Sink;
use crate::{Inner, refused};

/// Reply to an input: the id of its message when it has to wait for its turn.
pub(crate) type Accepted = Result<Option<MessageId>, ClientError>;

/// An input on its way.
pub(crate) struct Input {
    pub(crate) message: Arc<Message>,
    on_busy: OnBusy,
    /// Number of stops in this session when the input was sent.
    stops: u64,
    /// True if the input is for the running turn and must not start one.
    needs_turn: bool,
}

impl Input {
    pub(crate) fn new(submission: Submission, stops: u64, now: Timestamp) -> Result<Self, ClientError> {
        let is_empty = |part: &Part| matches!(part, Part::Text(text) if text.text.trim().is_empty());
        if submission.parts.iter().all(is_empty) {
            return Err(ClientError::Empty);
        }
        let mut message = Message::new(&submission.session, Role::User, submission.parts, now);
        if let Some(id) = submission.id {
            message.id = id;
        }
        Ok(Self {
            message: Arc::new(message),
            on_busy: submission.on_busy,
            stops,
            needs_turn: false,
        })
    }

    /// Creates an input for the turn that runs. It is refused if none does.
    pub(crate) fn for_running_turn(
        session: &SessionId,
        text: &str,
        stops: u64,
        now: Timestamp,
    ) -> Result<Self, ClientError> {
        let submission = Submission {
            on_busy: OnBusy::Steer,
            ..Submission::text(session.clone(), text)
        };
        Ok(Self {
            needs_turn: true,
            ..Self::new(submission, stops, now)?
        })
    }
}

/// The queued inputs of a session. A fold over its record.
pub(crate) struct Queue {
    /// Oldest first.
    messages: Vec<Arc<Message>>,
    /// Number of stops when the last input was sent; `None` before the first one.
    heard: Option<u64>,
    stops: Stops,
    /// Maximum number of queued inputs.
    most: usize,
    /// True if the turn that the last owner dropped continues before all of them.
    has_dropped: bool,
}

/// Work of the last owner that continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Continues {
    /// A turn.
    pub(crate) turn: bool,
    /// The queue.
    pub(crate) queue: bool,
}

impl Queue {
    /// DIST-1: continues with what the last owner dropped.
    pub(crate) fn continued(mut self, what: Continues) -> Self {
        self.has_dropped = what.turn;
        if what.queue {
            self.release();
        }
        self
    }

    /// Returns true, once, if a dropped turn continues.
    pub(crate) fn takes_dropped(&mut self) -> bool {
        std::mem::take(&mut self.has_dropped)
    }

    /// Reads the queue of a session that is opened: the recorded queue without the inputs that were taken
    /// since.
    pub(crate) async fn read(
        inner: &Inner,
        session: &SessionId,
        entries: &[Entry],
        stops: Stops,
    ) -> Result<Self, LogError> {
        let last = entries.iter().rev().find_map(|entry| match &entry.event {
            Event::Waiting(Waiting::Queue { messages, steers }) => Some(steers.iter().chain(messages)),
            _ => None,
        });
        let mut messages: Vec<_> = last.into_iter().flatten().cloned().collect();
        if !messages.is_empty() {
            // The whole record: an input may be before a compaction, or on a branch that was left.
            let record = inner.store.entries(session, 0, usize::MAX).await?;
            let said: HashSet<&MessageId> = record
                .iter()
                .filter_map(|entry| match &entry.event {
                    Event::Message { message } => Some(&message.id),
                    _ => None,
                })
                .collect();
            messages.retain(|message| !said.contains(&message.id));
        }
        Ok(Self {
            messages,
            heard: None,
            stops,
            most: inner.options.queue,
            has_dropped: false,
        })
    }

    /// Applies an event. Messages to the running turn are not part of the queue.
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Event::Waiting(Waiting::Queue { messages, .. }) = event {
            self.messages.clone_from(messages);
        }
    }

    /// Returns the queued inputs, oldest first.
    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns true if the next turn starts without a further request.
    pub(crate) fn goes_on(&self) -> bool {
        self.has_dropped || (!self.is_held() && !self.messages.is_empty())
    }

    /// Returns true if the queue waits for a new input: it was found when the session was opened, or the user
    /// stopped something after the last input.
    fn is_held(&self) -> bool {
        self.heard != Some(self.stops.count())
    }

    /// Releases a held queue.
    pub(crate) fn release(&mut self) {
        self.heard = Some(self.stops.count());
    }

    /// Returns true if an input cannot start a turn although none runs: others come first, the user stopped
    /// something after it was sent, or it is for a running turn.
    pub(crate) fn delays(&self, input: &Input) -> bool {
        let is_stopped = input.stops != self.stops.count() && input.on_busy != OnBusy::Refuse;
        is_stopped || self.has_dropped || !self.messages.is_empty() || input.needs_turn
    }

    /// Notes an input that starts its turn without waiting.
    pub(crate) fn skipped_by(&mut self, input: &Input) {
        self.heard = Some(input.stops);
    }

    /// Accepts an input that has to wait. A held queue is released, because a new input means that the user is
    /// present.
    pub(crate) async fn accept(&mut self, input: Input, is_running: bool, sink: &Sink) -> Accepted {
        let session = input.message.session_id.clone();
        let waits = match input.on_busy {
            _ if input.needs_turn && !is_running => return Err(ClientError::Closed(session)),
            _ if !is_running && self.is_held() => self.line_up(input.message, sink).await?,
            OnBusy::Refuse => return Err(ClientError::Busy(session)),
            OnBusy::Steer if is_running => self.steer(input.message, sink).await?,
            _ if self.messages.len() >= self.most => return Err(ClientError::QueueFull(session)),
            _ => self.line_up(input.message, sink).await?,
        };
        self.heard = Some(input.stops);
        Ok(waits)
    }

    /// Passes a message to the running turn, after storing it.
    async fn steer(&self, message: Arc<Message>, sink: &Sink) -> Accepted {
        let mut steers = sink.steering().waiting();
        steers.push(Arc::clone(&message));
        let messages = self.messages.clone();
        let event = Event::Waiting(Waiting::Queue { messages, steers });
        let stored = sink.store(vec![event], Durability::Process).await;
        stored.map_err(refused)?;
        sink.steering().say(message);
        Ok(None)
    }

    /// Puts an input at the end of the queue.
    async fn line_up(&mut self, message: Arc<Message>, sink: &Sink) -> Accepted {
        let id = message.id.clone();
        let mut messages = self.messages.clone();
        messages.push(message);
        self.change(messages, sink).await.map_err(refused)?;
        Ok(Some(id))
    }

    /// Removes a message from the queue; `None` if it is no longer there. If the removal cannot be recorded,
    /// it does not happen.
    pub(crate) async fn take_back(&mut self, message: &MessageId, sink: &Sink) -> Option<Arc<Message>> {
        let mut messages = self.messages.clone();
        let place = messages.iter().position(|waiting| waiting.id == *message)?;
        let taken = messages.remove(place);
        self.change(messages, sink).await.ok()?;
        Some(taken)
    }

    async fn change(&mut self, messages: Vec<Arc<Message>>, sink: &Sink) -> Result<(), LogError> {
        let event = queued(messages, sink);
        sink.store(vec![event.clone()], Durability::Process).await?;
        self.apply(&event);
        Ok(())
    }

    /// Queues messages that came too late for the turn they were sent to. They are stored as queued, because
    /// the session's task may end here, and the sender was told that they were accepted.
    pub(crate) async fn put_back(&mut self, sink: &Sink) {
        let Some(unheard) = sink.steering().end() else {
            return;
        };
        let event = queued([unheard, self.messages.clone()].concat(), sink);
        self.apply(&event);
        // If this fails, recording the end of the turn fails as well, and reports it.
        let _ = sink.store(vec![event], Durability::Process).await;
    }

    /// Puts an input before all others. It starts by itself, unless the user stopped something meanwhile.
    pub(crate) async fn put_first(&mut self, message: Message, sink: &Sink) {
        let messages = [vec![Arc::new(message)], self.messages.clone()].concat();
        // If this fails, the next write does as well, and reports it.
        let _ = self.change(messages, sink).await;
    }

    /// Returns the first input, and the event that records the queue without it.
    pub(crate) fn first(&self, sink: &Sink) -> Option<(Arc<Message>, Event)> {
        let (first, rest) = self.messages.split_first()?;
        Some((Arc::clone(first), queued(rest.to_vec(), sink)))
    }

    /// Returns the queued inputs as events, to repeat them before a compaction outside a turn: readers of the
    /// session start from there.
    pub(crate) fn repeated(&self, sink: &Sink) -> Vec<Event> {
        let waits = !self.messages.is_empty();
        let event = waits.then(|| queued(self.messages.clone(), sink));
        event.into_iter().collect()
    }
}

fn queued(messages: Vec<Arc<Message>>, sink: &Sink) -> Event {
    let steers = sink.steering().waiting();
    Event::Waiting(Waiting::Queue { messages, steers })
}
