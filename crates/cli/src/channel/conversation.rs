//! Conversations with people who write through a bridge: one session and one task for each key.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{
    Answer, Approval, Approvers, Begin, Channel, ChannelError, Cleaning, Client, Envelope, Event,
    HeldMessages, Input, Pressed, SenderMessage, SessionId, UserReply, Waiting, converse, typed_command,
};
use windlass_config::environment;
use windlass_core::log::SessionKey;
use windlass_providers::key::Secret;
use windlass_providers::post_webhook;
use windlass_service::Service;
use windlass_tui::text::{revealed, revealed_line};

/// Maximum number of messages that wait in one conversation.
const MOST_WAITING: usize = 32;
/// Maximum number of conversations.
const MOST_CONVERSATIONS: usize = 1000;
/// Delays before a message is sent again.
const DELAYS: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
];
/// Reason that nobody can answer a permission request.
const UNNAMED: &str = "the bridge does not say who writes. It must send `sender`, or use a key with `dm:`.";
/// Pause before a turn is stopped, and stopped again, when the channel closes.
const STOP_AGAIN: Duration = Duration::from_millis(20);
/// Message that stops the running turn.
const STOP: &str = "/stop";

/// All conversations of the process.
pub(super) struct Conversations {
    backend: Arc<Service>,
    /// Folder of new sessions.
    place: String,
    /// Address of the bridge.
    to: String,
    secret: Secret,
    approvers: Approvers,
    open: Mutex<HashMap<String, Open>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// An open conversation, seen from outside.
struct Open {
    session: SessionId,
    inbox: mpsc::Sender<SenderMessage>,
    stop: Arc<Notify>,
}

/// Reason a message was not taken.
pub(super) enum NotTaken {
    /// There are too many.
    Busy(String),
    /// The session cannot be used.
    Failed(String),
}

impl Conversations {
    pub(super) fn new(
        backend: Arc<Service>,
        place: String,
        (to, secret): (String, Secret),
        approvers: Approvers,
    ) -> Arc<Self> {
        Arc::new(Self {
            backend,
            place,
            to,
            secret,
            approvers,
            open: Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// SES-9: takes a message for the session with this key. Returns the session.
    pub(super) async fn take(
        self: &Arc<Self>,
        key: SessionKey,
        said: SenderMessage,
    ) -> Result<SessionId, NotTaken> {
        let mut open = self.open.lock().await;
        open.retain(|_, known| !known.inbox.is_closed());
        let name = key.to_string();
        if !open.contains_key(&name) {
            if open.len() >= MOST_CONVERSATIONS {
                return Err(NotTaken::Busy(format!(
                    "{MOST_CONVERSATIONS} conversations are open, which is the maximum"
                )));
            }
            open.insert(name.clone(), self.start(key).await?);
        }
        let Some(known) = open.get(&name) else {
            return Err(NotTaken::Failed("the conversation was closed".to_owned()));
        };
        if said.text.trim() == STOP {
            known.stop.notify_waiters();
            return Ok(known.session.clone());
        }
        match known.inbox.try_send(said) {
            Ok(()) => Ok(known.session.clone()),
            Err(TrySendError::Full(_)) => Err(NotTaken::Busy(format!(
                "{MOST_WAITING} messages of this conversation wait, which is the maximum"
            ))),
            Err(TrySendError::Closed(_)) => Err(NotTaken::Failed("the conversation was closed".to_owned())),
        }
    }

    async fn start(self: &Arc<Self>, key: SessionKey) -> Result<Open, NotTaken> {
        let begin = Begin::Keyed {
            key: key.clone(),
            place: self.place.clone(),
        };
        let info = self.backend.begin(begin).await;
        let info = info.map_err(|error| NotTaken::Failed(error.to_string()))?;
        let (inbox, lines) = mpsc::channel(MOST_WAITING);
        let stop = Arc::new(Notify::new());
        let mut channel = WebhookChannel {
            conversations: Arc::clone(self),
            key: key.to_string(),
            lines,
            asker: None,
            held: HeldMessages::default(),
        };
        let (session, stopping) = (info.id.clone(), Arc::clone(&stop));
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let closing = this.closing.clone();
            let mut interrupt = move || {
                let (stop, closing) = (Arc::clone(&stopping), closing.clone());
                async move {
                    // The turn is stopped again until it has ended. Without the pause, the loop around it would keep the
                    // thread that has to end it.
                    let closed = async {
                        closing.cancelled().await;
                        environment::clock().sleep(STOP_AGAIN).await;
                    };
                    tokio::select! {
                        () = stop.notified() => {}
                        () = closed => {}
                    }
                }
                .boxed()
            };
            let clock = environment::clock();
            // The next message with this key opens the session again.
            let _ = converse(&*this.backend, session, &mut channel, &mut interrupt, &*clock).await;
        });
        Ok(Open {
            session: info.id,
            inbox,
            stop,
        })
    }

    /// Stops every turn, and returns when the conversations have ended.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Sends a message to the bridge, again if necessary.
    async fn post(&self, message: &Value) -> Result<(), String> {
        let id = uuid::Uuid::now_v7().to_string();
        let body = message.to_string().into_bytes();
        let clock = environment::clock();
        let mut delays = DELAYS.into_iter();
        loop {
            let sent = post_webhook(&self.to, body.clone(), &id, Some(&self.secret), &*clock).await;
            let Err(why) = sent else { return Ok(()) };
            let Some(delay) = delays.next() else {
                return Err(why);
            };
            tokio::select! {
                () = clock.sleep(delay) => {}
                () = self.closing.cancelled() => return Err(why),
            }
        }
    }
}

/// A person behind a bridge.
struct WebhookChannel {
    conversations: Arc<Conversations>,
    key: String,
    lines: mpsc::Receiver<SenderMessage>,
    /// Person whose message the current turn answers.
    asker: Option<String>,
    held: HeldMessages,
}

impl WebhookChannel {
    async fn tell(&self, kind: &str, text: &str, more: Value) -> Result<(), ChannelError> {
        let mut message = json!({"type": kind, "key": self.key, "text": text});
        if let (Some(fields), Value::Object(more)) = (message.as_object_mut(), more) {
            fields.extend(more);
        }
        let sent = self.conversations.post(&message).await;
        sent.map_err(|why| ChannelError::Turn(format!("the bridge did not take a message: {why}")))
    }

    async fn line(&mut self) -> Option<SenderMessage> {
        tokio::select! {
            line = self.lines.recv() => line,
            () = self.conversations.closing.cancelled() => None,
        }
    }

    /// Waits for a message of somebody who may answer. Messages of others are kept for after the turn.
    async fn answer(&mut self) -> Result<Option<String>, ChannelError> {
        loop {
            let Some(said) = self.line().await else {
                return Ok(None);
            };
            let approvers = &self.conversations.approvers;
            if approvers.allow(said.sender.as_deref(), self.asker.as_deref()) {
                return Ok(Some(said.text));
            }
            let who = approvers.told(self.asker.as_deref());
            let text = match self.held.keep(said) {
                true => format!("Only {who} can answer this question. Other messages wait until then."),
                false => format!(
                    "Only {who} can answer this question. Too many messages wait; this one is dropped."
                ),
            };
            self.tell("status", &text, Value::Null).await?;
        }
    }

    /// Asks for permission until there is an answer.
    async fn permission(&mut self, mut approval: Approval) -> Result<Option<UserReply>, ChannelError> {
        if !self.conversations.approvers.exist(self.asker.as_deref()) {
            let text = format!(
                "Refused: {} Nobody can allow it, because {UNNAMED}",
                approval.question()
            );
            self.tell("status", &text, Value::Null).await?;
            let why = "nobody in this channel can be asked".to_owned();
            return Ok(Some(UserReply::Permission(Answer::NoBecause(why))));
        }
        approval.set_seen(true);
        let choices: Vec<Value> = approval
            .choices()
            .iter()
            .map(|choice| json!({"letter": choice.letter().to_string(), "text": choice.text()}))
            .collect();
        let subject = approval
            .preview()
            .map_or_else(|| approval.subjects().join("\n"), str::to_owned);
        let text = format!(
            "{}\n{subject}\n{}",
            approval.question(),
            approval.reasons().join("\n")
        );
        let mut asked = text.trim().to_owned();
        loop {
            self.tell("question", &asked, json!({"choices": choices})).await?;
            let Some(line) = self.answer().await? else {
                return Ok(None);
            };
            asked = match approval.line(&line) {
                Pressed::Answered(answer) => return Ok(Some(UserReply::Permission(answer))),
                Pressed::Tell(_) => "Say what to do instead.".to_owned(),
                Pressed::View => text.trim().to_owned(),
                Pressed::Taken | Pressed::Ignored => match (approval.confirmation(), approval.hint()) {
                    (Some((choice, question)), _) => {
                        format!("{question} Send {} again to confirm.", choice.letter())
                    }
                    (None, Some(hint)) => hint.to_string(),
                    (None, None) => text.trim().to_owned(),
                },
            };
        }
    }
}

#[async_trait]
impl Channel for WebhookChannel {
    async fn recv(&mut self) -> Result<Option<Input>, ChannelError> {
        let said = match self.held.take() {
            Some(_) if self.conversations.closing.is_cancelled() => return Ok(None),
            Some(said) => said,
            None => match self.line().await {
                Some(said) => said,
                None => return Ok(None),
            },
        };
        let approvers = &self.conversations.approvers;
        if typed_command(&said.text).is_some() && !approvers.command(said.sender.as_deref()) {
            let text = format!("only {} can use commands here", approvers.told(None));
            return Err(ChannelError::Turn(text));
        }
        self.asker = said.sender;
        Ok(Some(Input::text(said.text)))
    }

    async fn send(&mut self, envelope: &Envelope) -> Result<(), ChannelError> {
        let session = json!({"session": envelope.session.as_str()});
        match &envelope.event {
            Event::Final { content, .. } if !content.is_empty() => {
                self.tell("answer", content, session).await
            }
            Event::Failed { message, .. } => self.tell("error", message, session).await,
            Event::Canceled { .. } => self.tell("status", "stopped", session).await,
            _ => Ok(()),
        }
    }

    async fn status(&mut self, text: &str) -> Result<(), ChannelError> {
        self.tell("status", text, Value::Null).await
    }

    async fn confirm(&mut self, asking: &Waiting) -> Result<Option<UserReply>, ChannelError> {
        match asking {
            Waiting::PermissionRequest { .. } => {
                let clean = Cleaning {
                    line: revealed_line,
                    text: revealed,
                };
                match Approval::of(asking, clean) {
                    Some(approval) => self.permission(approval).await,
                    None => Ok(None),
                }
            }
            Waiting::Question { text, options, .. } => {
                self.tell("question", text, json!({"choices": options})).await?;
                let is_answerable = self.conversations.approvers.exist(self.asker.as_deref());
                let line = match is_answerable {
                    true => self.answer().await?,
                    // A plain question allows nothing: anybody may answer it.
                    false => self.line().await.map(|said| said.text),
                };
                Ok(line.map(UserReply::Text))
            }
            Waiting::PermissionAnswer { .. } | Waiting::Queue { .. } => Ok(None),
        }
    }
}
