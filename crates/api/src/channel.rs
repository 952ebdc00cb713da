//! A conversation between a user and a session, message by message: the interface that a chat, a pipe or a
//! plain terminal implements, and the loop that all of them share.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};
use windlass_core::clock::Clock;

use crate::{
    Begin, Client, ClientError, CommandReply, Commands, DeltaKind, EVENT_VERSION, Envelope, Event,
    EventStream, FinishReason, Follow, GoalEvent, OnBusy, Part, Presence, Role, SessionEvent, SessionId,
    Submission, UserReply, Wait, Waiting, typed_command,
};

/// Time without visible events after which the channel shows what the turn waits for.
const QUIET: Duration = Duration::from_secs(10);

/// Transport of messages between one user and a session.
#[async_trait]
pub trait Channel: Send {
    /// Returns the next input, or `None` when there will be no more. A [`ChannelError::Turn`] concerns one
    /// input only: the next call must wait for another. If the channel shows other turns, the future may be dropped
    /// before it is ready, and must not take any input with it.
    async fn recv(&mut self) -> Result<Option<Input>, ChannelError>;

    /// Returns true if turns that were not started here, such as those of spoken prompts, are shown while the channel
    /// waits for input.
    fn shows_other_turns(&self) -> bool {
        false
    }

    /// Shows the next event. The text of a command arrives as one [`Event::Final`] outside of a turn, with
    /// the number 0, because it is not part of the record.
    async fn send(&mut self, envelope: &Envelope) -> Result<(), ChannelError>;

    /// Shows a line beside the conversation: the reason for a refusal, the start of an operation, or what a
    /// turn waits for. May be called in the middle of a reply, which must stay unchanged. The text may
    /// contain untrusted text.
    async fn status(&mut self, text: &str) -> Result<(), ChannelError>;

    /// Lets the user edit a text. `None` if that is not possible here: the text is shown instead.
    async fn edit(&mut self, _text: &str) -> Result<Option<String>, ChannelError> {
        Ok(None)
    }

    /// Asks the user for the answer that a turn waits for. `None` stops the turn. The future is dropped if
    /// the turn stops first.
    async fn confirm(&mut self, asking: &Waiting) -> Result<Option<UserReply>, ChannelError>;
}

/// Input of a user.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Input {
    /// The text. It may be a command, or start with `!`.
    pub text: String,
    /// Attachments, such as images.
    #[serde(default)]
    pub attachments: Vec<Part>,
}

impl Input {
    /// Creates an input without attachments.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            attachments: Vec::new(),
        }
    }
}

/// Error of a channel. Failures of a provider or a tool are events instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ChannelError {
    /// The turn cannot continue. It is canceled, and the conversation continues.
    #[error("{0}")]
    Turn(String),
    /// The user is gone.
    #[error("{0}")]
    Fatal(String),
}

/// Result of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Session at the end of the conversation.
    pub session: SessionId,
    /// Error if the last input was refused.
    pub refused: Option<ClientError>,
}

/// Creates a future that ends when the running turn must stop. Each turn gets its own, dropped with the turn,
/// so that nothing listens between turns.
pub type Interrupt<'a> = &'a mut (dyn FnMut() -> BoxFuture<'static, ()> + Send);

/// Runs a conversation over a channel until the input ends. Commands and lines that start with `!` go to
/// [`Commands::command`] and never to a model; everything else is submitted. Every turn started here has
/// ended when this returns. OBS-3: if a turn shows nothing for a while, the channel shows what it waits for,
/// and again when that changes.
///
/// # Errors
/// When the user is gone.
pub async fn converse<B>(
    backend: &B,
    session: SessionId,
    channel: &mut dyn Channel,
    interrupt: Interrupt<'_>,
    clock: &dyn Clock,
) -> Result<Ended, ChannelError>
where
    B: Client + Commands + Presence + ?Sized,
{
    let mut talk = Talk {
        backend,
        clock,
        session,
        channel,
        interrupt,
        refused: None,
        others: None,
        seen: None,
    };
    loop {
        let went_on = match talk.exchange().await {
            // It concerned one input, or one turn, which has ended.
            Err(ChannelError::Turn(why)) => talk.tell(&why).await.map(|()| Next::Listen),
            other => other,
        };
        match went_on? {
            Next::Listen => {}
            Next::Leave => break,
        }
    }
    Ok(Ended {
        session: talk.session,
        refused: talk.refused,
    })
}

enum Next {
    Listen,
    Leave,
}

struct Talk<'a, B: ?Sized> {
    backend: &'a B,
    clock: &'a dyn Clock,
    session: SessionId,
    channel: &'a mut dyn Channel,
    interrupt: Interrupt<'a>,
    refused: Option<ClientError>,
    /// Events of the session since the last input, whoever caused them.
    others: Option<EventStream>,
    /// Number of the last event that was shown; `None` before the first.
    seen: Option<u64>,
}

impl<'a, B: Client + Commands + Presence + ?Sized> Talk<'a, B> {
    /// Handles one input and everything it causes.
    async fn exchange(&mut self) -> Result<Next, ChannelError> {
        let Some(input) = self.listen().await? else {
            return Ok(Next::Leave);
        };
        self.refused = None;
        if let Some(line) = typed_command(&input.text) {
            return self.command(&line).await;
        }
        let mut parts = vec![Part::text(input.text)];
        parts.extend(input.attachments);
        self.submit(parts).await
    }

    /// Waits for an input. Turns that others start in the session meanwhile are shown.
    async fn listen(&mut self) -> Result<Option<Input>, ChannelError> {
        loop {
            if self.others.is_none() && self.channel.shows_other_turns() {
                self.others = self.subscribed().await;
            }
            let Some(mut events) = self.others.take() else {
                return self.channel.recv().await;
            };
            let heard = {
                let mut input = self.channel.recv();
                loop {
                    match select(input, events.next()).await {
                        Either::Left((input, _)) => break Err(input),
                        Either::Right((None, waits)) => break Err(waits.await),
                        Either::Right((Some(envelope), _)) if is_noticed(&envelope.event) => {
                            break Ok(envelope);
                        }
                        Either::Right((Some(_), waits)) => input = waits,
                    }
                }
            };
            match heard {
                Err(input) => {
                    self.others = Some(events);
                    return input;
                }
                Ok(envelope) => self.other_turn(&envelope, events).await?,
            }
        }
    }

    /// Follows the session, from the last event that was shown.
    async fn subscribed(&mut self) -> Option<EventStream> {
        let after = match self.seen {
            Some(seen) => seen,
            None => {
                let resumed = self.backend.begin(Begin::Resume(self.session.clone())).await;
                resumed.ok()?.last_seq
            }
        };
        self.backend.subscribe(&self.session, after).await.ok()
    }

    /// Shows what happens in the session without an input from here: a notice, or a whole turn.
    async fn other_turn(&mut self, envelope: &Envelope, mut events: EventStream) -> Result<(), ChannelError> {
        match &envelope.event {
            Event::Warning { message } | Event::Error { message, .. } => self.channel.status(message).await?,
            Event::Message { message } => {
                let said = message.parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.text.as_str()),
                    _ => None,
                });
                let said = said.collect::<Vec<_>>().join("\n");
                if !said.is_empty() {
                    self.channel.status(&format!("> {said}")).await?;
                }
                self.channel.send(envelope).await?;
                self.pass(&mut events).await?;
            }
            _ => {}
        }
        self.others = Some(events);
        Ok(())
    }

    async fn command(&mut self, line: &str) -> Result<Next, ChannelError> {
        let CommandReply { text, follow } = match self.backend.command(&self.session, line).await {
            Ok(reply) => reply,
            Err(error) => return self.refuse(error).await,
        };
        match follow {
            Follow::Nothing => self.said(text).await?,
            Follow::Session(info) => {
                self.session = info.id;
                (self.others, self.seen) = (None, None);
                self.said(text).await?;
            }
            Follow::Submit(parts) => return self.submit(parts).await,
            Follow::Edit { command, text } => match self.channel.edit(&text).await? {
                Some(edited) => return Box::pin(self.command(&format!("{command}\n{edited}"))).await,
                None => self.said(text).await?,
            },
            Follow::Watch(events) => {
                let told = if text.is_empty() {
                    Ok(())
                } else {
                    self.channel.status(&text).await
                };
                self.watch(events, told).await?;
            }
            Follow::Leave => {
                self.said(text).await?;
                return Ok(Next::Leave);
            }
        }
        Ok(Next::Listen)
    }

    /// Shows the text of a command.
    async fn said(&mut self, text: String) -> Result<(), ChannelError> {
        if text.is_empty() {
            return Ok(());
        }
        let envelope = Envelope {
            v: EVENT_VERSION,
            session: self.session.clone(),
            seq: 0,
            event: Event::Final {
                content: text,
                finish: FinishReason::EndTurn,
            },
        };
        self.channel.send(&envelope).await
    }

    async fn submit(&mut self, parts: Vec<Part>) -> Result<Next, ChannelError> {
        let submission = Submission {
            session: self.session.clone(),
            parts,
            // Another front end may run a turn here; the user expects this input to follow it.
            on_busy: OnBusy::Queue,
            id: None,
        };
        match self.backend.submit(submission).await {
            Ok(events) => self.watch(events, Ok(())).await.map(|()| Next::Listen),
            Err(error) => self.refuse(error).await,
        }
    }

    async fn refuse(&mut self, error: ClientError) -> Result<Next, ChannelError> {
        let text = error.to_string();
        self.refused = Some(error);
        self.channel.status(&text).await.map(|()| Next::Listen)
    }

    /// Shows why a turn was canceled. If that cannot be shown either, only this line is lost.
    async fn tell(&mut self, why: &str) -> Result<(), ChannelError> {
        match self.channel.status(why).await {
            Err(ChannelError::Turn(_)) => Ok(()),
            other => other,
        }
    }

    /// Passes events on up to the last one: the terminal event of a turn, or the end of work towards a goal. If
    /// the channel fails, the turn is canceled and the rest is not sent.
    async fn watch(
        &mut self,
        mut events: EventStream,
        told: Result<(), ChannelError>,
    ) -> Result<(), ChannelError> {
        // The same events would come again.
        self.others = None;
        let passed = match told {
            Ok(()) => self.pass(&mut events).await,
            failed => failed,
        };
        if passed.is_err() {
            self.backend.cancel(&self.session).await;
            while let Some(envelope) = events.next().await {
                if envelope.event.is_terminal() {
                    break;
                }
            }
        }
        passed
    }

    async fn pass(&mut self, events: &mut EventStream) -> Result<(), ChannelError> {
        let mut stop = (self.interrupt)();
        let mut silence = self.silence();
        let mut told = None;
        // Work towards a goal has many turns, and a plan that goes ahead has two; their events end by themselves.
        let mut is_work = false;
        loop {
            let next = match select(events.next(), select(&mut stop, &mut silence)).await {
                Either::Left((next, _)) => next,
                Either::Right((Either::Left(_), _)) => {
                    self.backend.cancel(&self.session).await;
                    stop = (self.interrupt)();
                    continue;
                }
                Either::Right((Either::Right((waits, _)), _)) => {
                    silence = self.silence();
                    if let Some(wait) = waits.first().filter(|wait| told != Some(wait.on)) {
                        told = Some(wait.on);
                        self.channel.status(&wait.to_string()).await?;
                    }
                    continue;
                }
            };
            let Some(envelope) = next else { return Ok(()) };
            if !envelope.event.is_live() {
                self.seen = self.seen.max(Some(envelope.seq));
            }
            self.channel.send(&envelope).await?;
            match &envelope.event {
                Event::Waiting(asking) => self.ask(asking, &mut stop).await?,
                Event::Session(SessionEvent::Work(
                    GoalEvent::GoalState { .. } | GoalEvent::GoAhead { .. },
                )) => is_work = true,
                event if event.is_terminal() && !is_work => return Ok(()),
                _ => {}
            }
            let news = News::of(&envelope.event);
            if news != News::Unseen {
                silence = self.silence();
            }
            if news == News::Step {
                told = None;
            }
        }
    }

    /// Waits for the quiet time, and returns what the turn waits for.
    fn silence(&self) -> BoxFuture<'a, Vec<Wait>> {
        let (backend, clock, session) = (self.backend, self.clock, self.session.clone());
        async move {
            clock.sleep(QUIET).await;
            backend.why(&session).await
        }
        .boxed()
    }

    /// Asks the user, if the event is a request. An interruption meanwhile stops the turn.
    async fn ask(&mut self, asking: &Waiting, stop: &mut BoxFuture<'static, ()>) -> Result<(), ChannelError> {
        let (Waiting::PermissionRequest { call_id, .. } | Waiting::Question { call_id, .. }) = asking else {
            return Ok(());
        };
        let reply = match select(self.channel.confirm(asking), &mut *stop).await {
            Either::Left((reply, _)) => reply?,
            Either::Right(((), _)) => {
                *stop = (self.interrupt)();
                None
            }
        };
        match reply {
            Some(reply) => self.backend.reply(&self.session, call_id, reply).await,
            None => self.backend.cancel(&self.session).await,
        };
        Ok(())
    }
}

/// Returns true if an event is shown although nobody here caused it.
fn is_noticed(event: &Event) -> bool {
    match event {
        Event::Message { message } => message.role == Role::User,
        Event::Warning { .. } | Event::Error { .. } => true,
        _ => false,
    }
}

/// Visibility of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    /// Channels show nothing for the event.
    Unseen,
    /// The event is visible.
    Seen,
    /// The event is visible, and the turn waits for something else from here on.
    Step,
}

impl News {
    fn of(event: &Event) -> Self {
        match event {
            Event::Start { .. }
            | Event::Message { .. }
            | Event::Reasoning { .. }
            | Event::ToolCall { .. }
            | Event::Usage { .. }
            | Event::ToolOutput { .. }
            | Event::Status { .. }
            | Event::Delta {
                kind: DeltaKind::Thinking | DeltaKind::ToolInput,
                ..
            } => Self::Unseen,
            Event::Delta {
                kind: DeltaKind::Text,
                ..
            }
            | Event::Text { .. }
            | Event::Warning { .. }
            | Event::Error { .. }
            | Event::Session(_)
            | Event::Final { .. }
            | Event::Canceled { .. }
            | Event::Failed { .. } => Self::Seen,
            Event::StepStart { .. }
            | Event::ToolResult { .. }
            | Event::StepComplete { .. }
            | Event::Retry { .. }
            | Event::Waiting(_) => Self::Step,
        }
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
