//! A person and a session, message by message: what a chat, a pipe or a plain terminal has to do, and the loop that all
//! of them share.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};
use windlass_core::clock::Clock;

use crate::{
    Client, ClientError, CommandReply, Commands, DeltaKind, EVENT_VERSION, Envelope, Event, EventStream,
    FinishReason, Follow, OnBusy, Part, Presence, SessionId, Submission, UserReply, Wait, Waiting,
    typed_command,
};

/// How long a turn may show nothing before it is said what it waits for.
const QUIET: Duration = Duration::from_secs(10);

/// A way for one person to talk with a session, message by message.
#[async_trait]
pub trait Channel: Send {
    /// The next thing somebody says; `None` when there will be no more. An error of kind [`ChannelError::Turn`] is about
    /// one thing that was said: the next call must wait for another one.
    async fn recv(&mut self) -> Result<Option<Input>, ChannelError>;

    /// Takes the next event. What a command said comes as one [`Event::Final`] outside of a turn, with the number 0: it
    /// is not part of the record.
    async fn send(&mut self, envelope: &Envelope) -> Result<(), ChannelError>;

    /// Shows a line beside the conversation: why something was not taken, what begins now, what is waited for. It may come
    /// in the middle of a reply, and must leave that as it is. Foreign text may be in it.
    async fn status(&mut self, text: &str) -> Result<(), ChannelError>;

    /// Asks the person what a turn waits for. `None` has the turn stopped. It may be dropped while it waits, when the
    /// turn is stopped meanwhile.
    async fn confirm(&mut self, asking: &Waiting) -> Result<Option<UserReply>, ChannelError>;
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Input {
    /// The text. It may be a command, or begin with `!`.
    pub text: String,
    /// What came with it: pictures and the like.
    #[serde(default)]
    pub attachments: Vec<Part>,
}

impl Input {
    /// A text and nothing with it.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            attachments: Vec::new(),
        }
    }
}

/// Why a channel could not do its part. What a provider or a tool fails at is an event, and not one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ChannelError {
    /// This turn cannot go on. It is canceled, and the conversation goes on.
    #[error("{0}")]
    Turn(String),
    /// Nobody is there any more.
    #[error("{0}")]
    Fatal(String),
}

/// How a conversation ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The session it was in at the end.
    pub session: SessionId,
    /// Why the last thing that was said was not taken, when it was not.
    pub refused: Option<ClientError>,
}

/// Makes a future that ends when the running turn is to be stopped. One is made for every turn and dropped with it, so
/// that between turns nobody listens.
pub type Interrupt<'a> = &'a mut (dyn FnMut() -> BoxFuture<'static, ()> + Send);

/// Talks over a channel until there is nothing more to say. Commands and lines that begin with `!` go to
/// [`Commands::command`] and never to a model; all else is submitted. Every turn that begins here has ended when this
/// returns. OBS-3: of a turn that shows nothing for a while it is said what it waits for, and again when that changes.
///
/// # Errors
/// When nobody is there any more.
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
    };
    loop {
        let went_on = match talk.exchange().await {
            // It was about one thing that was said, or about one turn, which has ended.
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
}

impl<'a, B: Client + Commands + Presence + ?Sized> Talk<'a, B> {
    /// One thing that is said, and all that comes of it.
    async fn exchange(&mut self) -> Result<Next, ChannelError> {
        let Some(input) = self.channel.recv().await? else {
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

    async fn command(&mut self, line: &str) -> Result<Next, ChannelError> {
        let CommandReply { text, follow } = match self.backend.command(&self.session, line).await {
            Ok(reply) => reply,
            Err(error) => return self.refuse(error).await,
        };
        match follow {
            Follow::Nothing => self.said(text).await?,
            Follow::Session(info) => {
                self.session = info.id;
                self.said(text).await?;
            }
            Follow::Submit(parts) => return self.submit(parts).await,
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

    /// Shows what a command said.
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
            // Somebody else may have a turn running here; a person who talks expects to be heard after it.
            on_busy: OnBusy::Queue,
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

    /// Says why a turn was given up. That this cannot be shown either ends nothing but the line.
    async fn tell(&mut self, why: &str) -> Result<(), ChannelError> {
        match self.channel.status(why).await {
            Err(ChannelError::Turn(_)) => Ok(()),
            other => other,
        }
    }

    /// Passes events on to the terminal one. A channel that fails has the turn canceled, and the rest is not sent.
    async fn watch(
        &mut self,
        mut events: EventStream,
        told: Result<(), ChannelError>,
    ) -> Result<(), ChannelError> {
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
            self.channel.send(&envelope).await?;
            match &envelope.event {
                Event::Waiting(asking) => self.ask(asking, &mut stop).await?,
                event if event.is_terminal() => return Ok(()),
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

    /// Ends with what the turn waits for, when nothing was seen for a while.
    fn silence(&self) -> BoxFuture<'a, Vec<Wait>> {
        let (backend, clock, session) = (self.backend, self.clock, self.session.clone());
        async move {
            clock.sleep(QUIET).await;
            backend.why(&session).await
        }
        .boxed()
    }

    /// Asks the person, unless nothing is asked. An interruption while they think stops the turn.
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

/// What an event is to somebody who watches a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    /// Nothing: a channel has nothing to show for it.
    Unseen,
    /// A sign of life.
    Seen,
    /// Something else is waited for from here on.
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
