//! Messages for the durable inbox. Its commit is the acknowledgement.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use windlass_api::{
    CallId, CancelPost, ClientError, EventStream, Message, MessageId, Part, SessionId, Submission, Timestamp,
    UserReply,
};
use windlass_core::log::{LogError, Post, PostKind};

use super::ClusterBackend;
use crate::member::{RefusedPost, ReplyPost};
use crate::mirror;
use crate::state::{Shared, count, lock};

/// Pauses between looks for an answer, if its notice is lost; together the time that a sender waits.
const LOOKS: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(600),
    Duration::from_millis(700),
];

/// Somebody who waits for an answer.
struct Waiter<'a> {
    shared: &'a Shared,
    id: String,
    told: Arc<Notify>,
}

impl<'a> Waiter<'a> {
    fn new(shared: &'a Shared, id: &str) -> Self {
        let told = Arc::clone(lock(&shared.answers).entry(id.to_owned()).or_default());
        Self {
            shared,
            id: id.to_owned(),
            told,
        }
    }

    /// Returns the answer, or `None` if there is none in time.
    async fn answer(&self) -> Result<Option<String>, LogError> {
        for look in LOOKS {
            // Either way, the store has the answer.
            let _ = timeout(look, self.told.notified()).await;
            if let Some(answer) = self.shared.ports.cluster.answered(&self.id).await? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        lock(&self.shared.answers).remove(&self.id);
    }
}

impl ClusterBackend {
    /// Stores a message, and waits a little for its answer. Once stored, it will be carried out.
    pub(super) async fn post(
        &self,
        session: &SessionId,
        (id, kind): (String, PostKind),
        payload: String,
    ) -> Result<Option<String>, LogError> {
        let waiter = Waiter::new(&self.shared, &id);
        let post = Post {
            id,
            session: session.clone(),
            kind,
            payload,
            from: self.shared.id().to_owned(),
            made: Timestamp::default(),
        };
        self.shared.ports.cluster.post(&post).await?;
        count(&self.shared.counts.posted);
        waiter.answer().await
    }

    /// Stores an input. Returns the events of its turn.
    pub(super) async fn post_input(&self, submission: Submission) -> Result<EventStream, ClientError> {
        let is_empty = |part: &Part| matches!(part, Part::Text(text) if text.text.trim().is_empty());
        if submission.parts.iter().all(is_empty) {
            return Err(ClientError::Empty);
        }
        let session = submission.session.clone();
        let message = submission.id.clone().unwrap_or_else(MessageId::generate);
        let submission = Submission {
            id: Some(message.clone()),
            ..submission
        };
        let events = mirror::follow(&self.shared, &session, self.last(&session).await?).await?;
        let payload = json!(submission).to_string();
        let id = message.as_str().to_owned();
        let answer = self.posted(&session, (id, PostKind::Submit), payload).await?;
        if let Some(refused) = answer.and_then(|answer| serde_json::from_str::<RefusedPost>(&answer).ok()) {
            return Err(refused.error);
        }
        Ok(mirror::turn(events, Some(message)))
    }

    pub(super) async fn post_cancel(&self, session: &SessionId) -> Result<bool, ClientError> {
        let after = self.last(session).await?;
        let payload = json!(CancelPost { after }).to_string();
        let answer = self
            .posted(session, (new_id(), PostKind::Cancel), payload)
            .await?;
        Ok(answer.is_none_or(|answer| answer == "true"))
    }

    pub(super) async fn post_reply(
        &self,
        session: &SessionId,
        call: &CallId,
        reply: UserReply,
    ) -> Result<bool, ClientError> {
        let call = call.clone();
        let payload = json!(ReplyPost { call, reply }).to_string();
        let answer = self.posted(session, (new_id(), PostKind::Reply), payload).await?;
        Ok(answer.is_none_or(|answer| answer == "true"))
    }

    pub(super) async fn post_take_back(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Option<Arc<Message>> {
        let payload = message.as_str().to_owned();
        let answer = self
            .posted(session, (new_id(), PostKind::TakeBack), payload)
            .await;
        serde_json::from_str(&answer.ok()??).ok()
    }

    pub(super) async fn post_go_on(&self, session: &SessionId) -> bool {
        let answer = self
            .posted(session, (new_id(), PostKind::GoOn), String::new())
            .await;
        answer.is_ok_and(|answer| answer.is_none_or(|answer| answer == "true"))
    }
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
