//! Prompts: a turn, or a command, until its stop reason.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use windlass_api::{
    Begin, ClientError, Envelope, Event, EventStream, FailureKind, FinishReason, Follow, OnBusy, Part,
    SessionId, Submission, typed_command,
};

use crate::content;
use crate::options::Choices;
use crate::rpc;
use crate::session::{Progress, Prompt, Screen, Session};
use crate::view::{self, Context};
use windlass_jsonrpc::RpcError;

/// Last event of a stream that was followed to its end.
#[derive(Default)]
struct Ended {
    last: u64,
    terminal: Option<(u64, Event)>,
}

impl Screen {
    /// Runs a prompt until its turn ends. All its updates are sent before this returns.
    pub(crate) async fn prompt(
        &self,
        session: &Arc<Session>,
        prompt: &Prompt,
        blocks: &[Value],
    ) -> Result<Value, RpcError> {
        let parts = content::parts(blocks)?;
        self.ensure_updates(session).await?;
        let reason = match command_of(&parts) {
            Some(line) => self.command(session, prompt, &line).await?,
            None => self.turn(session, prompt, parts).await?,
        };
        let reason = if prompt.cancel.is_cancelled() {
            "cancelled"
        } else {
            reason
        };
        Ok(json!({ "stopReason": reason }))
    }

    async fn turn(
        &self,
        session: &Arc<Session>,
        prompt: &Prompt,
        parts: Vec<Part>,
    ) -> Result<&'static str, RpcError> {
        let current = session.current();
        let mut submission = Submission::text(current.clone(), "");
        submission.parts = parts;
        // Another turn may run here, such as one that a sub-agent's result started.
        submission.on_busy = OnBusy::Queue;
        let events = self.backend.submit(submission).await.map_err(refused)?;
        let ended = self.follow(session, prompt, &current, events).await;
        self.tell_title(session, &current).await;
        stop_reason(prompt, ended)
    }

    /// Tells the editor the title that the session has received.
    async fn tell_title(&self, session: &Session, current: &SessionId) {
        let Ok(overview) = self.backend.overview(current).await else {
            return;
        };
        if let Some(title) = session.new_title(&overview.info) {
            let update = json!({ "sessionUpdate": "session_info_update", "title": title });
            let _ = rpc::update(&self.outbox, &session.id, update).await;
        }
    }

    /// Runs a slash command, or a command of the user after a `!`. Its text is a message of the agent.
    async fn command(
        &self,
        session: &Arc<Session>,
        prompt: &Prompt,
        line: &str,
    ) -> Result<&'static str, RpcError> {
        let current = session.current();
        let ran = tokio::select! {
            () = prompt.cancel.cancelled() => return Ok("cancelled"),
            ran = self.backend.command(&current, line) => ran,
        };
        let reply = match ran {
            Ok(reply) => reply,
            Err(error) => {
                self.say(session, &error.to_string()).await;
                return Ok("end_turn");
            }
        };
        match reply.follow {
            Follow::Submit(parts) => return self.turn(session, prompt, parts).await,
            Follow::Watch(events) => {
                self.say(session, &reply.text).await;
                let ended = self.follow(session, prompt, &current, events).await;
                return stop_reason(prompt, ended);
            }
            Follow::Session(info) => {
                self.say(session, &reply.text).await;
                session.switch(info.id);
                self.ensure_updates(session).await?;
            }
            Follow::Edit { text, .. } => self.say(session, &text).await,
            Follow::Leave => {
                self.say(session, "Close the session in your editor to leave it.")
                    .await;
            }
            Follow::Nothing => self.say(session, &reply.text).await,
        }
        self.refresh(session).await;
        self.tell_title(session, &session.current()).await;
        Ok("end_turn")
    }

    async fn say(&self, session: &Session, text: &str) {
        if !text.trim().is_empty() {
            let _ = rpc::update(&self.outbox, &session.id, view::message(text)).await;
        }
    }

    /// Reads mode and model again, and tells the editor if they changed.
    pub(crate) async fn refresh(&self, session: &Session) {
        let choices = Choices::read(&*self.backend, &session.current()).await;
        let before = session.set_choices(choices.clone());
        for update in choices.updates(&before) {
            let _ = rpc::update(&self.outbox, &session.id, update).await;
        }
    }

    /// Waits until the events have ended and their updates are sent. A canceled prompt stops the turn.
    async fn follow(
        &self,
        session: &Arc<Session>,
        prompt: &Prompt,
        current: &SessionId,
        mut events: EventStream,
    ) -> Ended {
        let mut ended = Ended::default();
        let mut is_canceled = false;
        let mut updates = session.progress().ok();
        loop {
            let envelope = tokio::select! {
                biased;
                () = prompt.cancel.cancelled(), if !is_canceled => {
                    is_canceled = true;
                    self.cancel(current).await;
                    continue;
                }
                envelope = next(&mut events, &mut updates) => envelope,
            };
            let Some(envelope) = envelope else { break };
            if !envelope.event.is_live() {
                ended.last = ended.last.max(envelope.seq);
            }
            if envelope.event.is_terminal() {
                ended.terminal = Some((envelope.seq, envelope.event));
            }
        }
        self.wait_for_updates(session, &ended).await;
        ended
    }

    /// Stops the turn, and takes waiting prompts back.
    async fn cancel(&self, current: &SessionId) {
        self.backend.cancel(current).await;
        if let Ok(overview) = self.backend.overview(current).await {
            for message in overview.queue {
                self.backend.take_back(current, &message.id).await;
            }
        }
    }

    /// Waits until the updates of a turn are sent.
    async fn wait_for_updates(&self, session: &Arc<Session>, ended: &Ended) {
        let is_sent = |progress: &Progress| match &ended.terminal {
            Some((terminal, _)) => progress.terminal >= *terminal,
            None => progress.last >= ended.last,
        };
        // A session that ends at this moment is followed again, once.
        for _ in 0..2 {
            if let Ok(mut progress) = session.progress()
                && progress.wait_for(is_sent).await.is_ok()
            {
                return;
            }
            if self.ensure_updates(session).await.is_err() {
                return;
            }
        }
    }

    /// Follows the session, unless it is followed. It may have been idle for so long that it ended.
    async fn ensure_updates(&self, session: &Arc<Session>) -> Result<(), RpcError> {
        let after = match session.progress() {
            Ok(_) => return Ok(()),
            Err(after) => after,
        };
        let current = session.current();
        let info = self
            .backend
            .begin(Begin::Resume(current.clone()))
            .await
            .map_err(refused)?;
        let after = if after == 0 { info.last_seq } else { after };
        let events = self.backend.subscribe(&current, after).await.map_err(refused)?;
        let choices = session.choices();
        let context = Context {
            window: choices.window,
            used: info.totals.context_tokens,
            cost: info.totals.cost_usd,
        };
        session.start(self.clone(), events, self.view(session, context), after);
        Ok(())
    }

    /// Gives a message to the running turn.
    pub(crate) async fn steer(&self, session: &Session, blocks: &[Value]) -> Result<Value, RpcError> {
        let current = session.current();
        let overview = self.backend.overview(&current).await.map_err(refused)?;
        if !overview.is_busy {
            return Ok(json!({ "outcome": "promptRequired", "reason": "noRunningTurn" }));
        }
        let mut submission = Submission::text(current, "");
        submission.parts = content::parts(blocks)?;
        submission.on_busy = OnBusy::Steer;
        self.backend.submit(submission).await.map_err(refused)?;
        Ok(json!({ "outcome": "injected" }))
    }
}

/// Returns the next event. While another task sends the updates, this one wakes up with it, and not for every piece of a
/// reply as well.
async fn next(events: &mut EventStream, updates: &mut Option<watch::Receiver<Progress>>) -> Option<Envelope> {
    loop {
        let Some(progress) = updates else {
            return events.next().await;
        };
        if let Some(ready) = events.next().now_or_never() {
            return ready;
        }
        if progress.changed().await.is_err() {
            *updates = None;
        }
    }
}

/// CMD-2: returns the command line of a prompt that is only text.
fn command_of(parts: &[Part]) -> Option<String> {
    match parts {
        [Part::Text(text)] => typed_command(&text.text).map(std::borrow::Cow::into_owned),
        _ => None,
    }
}

fn stop_reason(prompt: &Prompt, ended: Ended) -> Result<&'static str, RpcError> {
    if prompt.cancel.is_cancelled() {
        return Ok("cancelled");
    }
    match ended.terminal {
        Some((_, Event::Final { finish, .. })) => Ok(match finish {
            FinishReason::MaxTokens => "max_tokens",
            FinishReason::MaxIterations => "max_turn_requests",
            FinishReason::Refusal => "refusal",
            FinishReason::Canceled => "cancelled",
            _ => "end_turn",
        }),
        Some((_, Event::Canceled { .. })) => Ok("cancelled"),
        Some((
            _,
            Event::Failed {
                reason,
                message,
                hint,
                ..
            },
        )) => match reason {
            FailureKind::MaxTokens => Ok("max_tokens"),
            FailureKind::Refusal => Ok("refusal"),
            FailureKind::PermissionDenied => Ok("end_turn"),
            _ => {
                let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
                Err(RpcError::internal(format!("{message}{hint}")))
            }
        },
        // Work towards a goal ends with its state.
        _ if ended.last > 0 => Ok("end_turn"),
        _ => Ok("cancelled"),
    }
}

/// Converts an error of the backend.
pub(crate) fn refused(error: ClientError) -> RpcError {
    match &error {
        ClientError::Unknown(session) => rpc::unknown_session(session.as_str()),
        ClientError::Empty => RpcError::invalid_params("prompt: it has no content"),
        _ => RpcError::internal(error.to_string()),
    }
}
