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
    Approval, Begin, Channel, ChannelError, Cleaning, Client, Envelope, Event, Input, Pressed, SessionId,
    UserReply, Waiting, converse,
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
    open: Mutex<HashMap<String, Open>>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// An open conversation, seen from outside.
struct Open {
    session: SessionId,
    inbox: mpsc::Sender<String>,
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
    pub(super) fn new(backend: Arc<Service>, place: String, to: String, secret: Secret) -> Arc<Self> {
        Arc::new(Self {
            backend,
            place,
            to,
            secret,
            open: Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// SES-9: takes a message for the session with this key. Returns the session.
    pub(super) async fn take(self: &Arc<Self>, key: SessionKey, text: String) -> Result<SessionId, NotTaken> {
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
        if text.trim() == STOP {
            known.stop.notify_waiters();
            return Ok(known.session.clone());
        }
        match known.inbox.try_send(text) {
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
        };
        let (session, stopping) = (info.id.clone(), Arc::clone(&stop));
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let closing = this.closing.clone();
            let mut interrupt = move || {
                let (stop, closing) = (Arc::clone(&stopping), closing.clone());
                async move {
                    tokio::select! {
                        () = stop.notified() => {}
                        () = closing.cancelled() => {}
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
    lines: mpsc::Receiver<String>,
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

    async fn line(&mut self) -> Option<String> {
        tokio::select! {
            line = self.lines.recv() => line,
            () = self.conversations.closing.cancelled() => None,
        }
    }

    /// Asks for permission until there is an answer.
    async fn permission(&mut self, mut approval: Approval) -> Result<Option<UserReply>, ChannelError> {
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
            let Some(line) = self.line().await else {
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
        Ok(self.line().await.map(Input::text))
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
                Ok(self.line().await.map(UserReply::Text))
            }
            Waiting::PermissionAnswer { .. } | Waiting::Queue { .. } => Ok(None),
        }
    }
}
