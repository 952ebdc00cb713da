//! DIST-4: sub-agents and the sessions above them on different servers of a cluster.
//!
//! A sub-agent that was running on a lost server is taken over from its log like any session, by a server that may not
//! be the one with the session above. What goes between the two is in the durable inbox: the end of a run, which the store
//! puts there in the same transaction, and messages, stops and questions.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use windlass_api::{
    Answer, CancelPost, ChildQuestion, ClientError, Event, Message, MessageId, OnBusy, Part, SessionEvent,
    SessionId, Submission, UserReply, Waiting,
};
use windlass_core::clock::Timestamp;
use windlass_core::log::{
    AgentQuery, AgentRow, ClusterStore, Durability, INTERRUPTED_TEXT, LogError, Post, PostKind,
};

use super::start::{deadline, running};
use super::watch::{Watched, watch};
use crate::actor::SessionRequest;
use crate::feed::Reader;
use crate::{Inner, LiveSession, Service, refused};

/// Returns the servers and inboxes of the cluster that this process is a server of.
pub(super) fn cluster(inner: &Inner) -> Option<Arc<dyn ClusterStore>> {
    inner.guard.get()?;
    inner.store.cluster()
}

/// Returns true if a sub-agent that nobody runs is taken over by a server. A copy of the files is on the disk of the
/// server that is lost.
pub(super) async fn goes_on(inner: &Inner, row: &AgentRow) -> bool {
    let Some(cluster) = cluster(inner).filter(|_| row.job.worktree.is_none()) else {
        return false;
    };
    let found = cluster.whereabouts(&row.session).await.ok().flatten();
    found.is_some_and(|found| found.home.is_some() && found.is_unfinished)
}

/// Follows a sub-agent that this server has taken over, as if it had been started here. `events` are those since it was
/// opened.
pub(crate) fn taken_over(service: &Service, live: &LiveSession, events: Reader) {
    let Some(row) = live
        .handle
        .family
        .row()
        .filter(|row| row.status.state.is_active())
    else {
        return;
    };
    let (service, live) = (service.clone(), live.clone());
    let inner = Arc::clone(&service.inner);
    inner.tasks.spawn(async move {
        let Ok(Some(parent)) = service.inner.store.get(&row.family.parent).await else {
            return;
        };
        let catalog = service.inner.factory.agents(&parent).await;
        if let Some(family) = service.family(&parent.id) {
            family.started(running(&row));
        }
        let watched = Watched {
            deadline: deadline(&catalog, &row, None),
            silence: catalog.silence,
            row,
            live,
            events: events.run(),
        };
        watch(&service, watched, None).await;
    });
}

/// Explains calls that waited for a sub-agent when their server was lost: it continues, and must not be started again.
pub(crate) async fn explain(inner: &Inner, session: &SessionId, events: &mut [Event]) {
    if !matches!(events.first(), Some(Event::Session(SessionEvent::Moved { .. }))) {
        return;
    }
    let interrupted = |message: &Message| {
        let is = |part: &Part| matches!(part, Part::ToolResult(result) if result.content == INTERRUPTED_TEXT);
        message.parts.iter().any(is)
    };
    for event in events {
        let Event::Message { message } = event else {
            continue;
        };
        if !interrupted(message) {
            continue;
        }
        let pending = AgentQuery::Pending(session.clone());
        let pending = inner.store.agents(&pending).await.unwrap_or_default();
        for part in &mut Arc::make_mut(message).parts {
            let Part::ToolResult(result) = part else { continue };
            let of_call = |row: &&AgentRow| row.family.call.as_ref() == Some(&result.call_id);
            if result.content == INTERRUPTED_TEXT
                && let Some(row) = pending.iter().rev().find(of_call)
            {
                result.content = format!(
                    "The server of this session was lost, and the session continues at another one. Agent {} was not started in \
                     vain: its result will be delivered automatically, and agent_wait waits for it. Do not start it again.",
                    row.title()
                );
            }
        }
    }
}

async fn post(
    inner: &Inner,
    session: &SessionId,
    kind: PostKind,
    payload: &impl serde::Serialize,
) -> Option<String> {
    let id = MessageId::generate().as_str().to_owned();
    let posted = post_as(inner, session, (id.clone(), kind), payload).await;
    posted.ok().map(|()| id)
}

async fn post_as(
    inner: &Inner,
    session: &SessionId,
    (id, kind): (String, PostKind),
    payload: &impl serde::Serialize,
) -> Result<(), LogError> {
    let failed = |why: String| LogError::Failed(why);
    let cluster = cluster(inner).ok_or_else(|| failed("this process is not in a cluster".to_owned()))?;
    let payload = serde_json::to_string(payload).map_err(|error| failed(error.to_string()))?;
    let post = Post {
        id,
        session: session.clone(),
        kind,
        payload,
        from: inner.owner.clone(),
        made: Timestamp::default(),
    };
    cluster.post(&post).await
}

/// Sends a text to a sub-agent that runs on another server. Returns false if it does not.
pub(super) async fn steer(inner: &Inner, row: &AgentRow, text: &str) -> bool {
    if cluster(inner).is_none() || !row.status.state.is_active() {
        return false;
    }
    let message = MessageId::generate();
    let submission = Submission {
        on_busy: OnBusy::Steer,
        id: Some(message.clone()),
        ..Submission::text(row.session.clone(), text)
    };
    let id = (message.as_str().to_owned(), PostKind::Submit);
    post_as(inner, &row.session, id, &submission).await.is_ok()
}

/// Stops a sub-agent that runs on another server. Returns false if it does not.
pub(super) async fn stop(inner: &Inner, row: &AgentRow) -> bool {
    if cluster(inner).is_none() || !row.status.state.is_active() {
        return false;
    }
    let Ok(Some(info)) = inner.store.get(&row.session).await else {
        return false;
    };
    let cancel = CancelPost { after: info.last_seq };
    post(inner, &row.session, PostKind::Cancel, &cancel)
        .await
        .is_some()
}

/// A question in the inbox of the session at the top of the tree, which belongs to another server. It is withdrawn when this
/// is dropped.
pub(super) struct AskedThere {
    cluster: Arc<dyn ClusterStore>,
    post: Post,
}

impl AskedThere {
    /// Asks, unless this process is not in a cluster. The reply comes to the sub-agent itself.
    pub(super) async fn ask(inner: &Inner, root: &SessionId, question: &ChildQuestion) -> Option<Self> {
        let cluster = cluster(inner)?;
        let id = post(inner, root, PostKind::ChildAsks, question).await?;
        let post = Post {
            id,
            session: root.clone(),
            kind: PostKind::ChildAsks,
            payload: String::new(),
            from: inner.owner.clone(),
            made: Timestamp::default(),
        };
        Some(Self { cluster, post })
    }
}

impl Drop for AskedThere {
    fn drop(&mut self) {
        let (cluster, post) = (Arc::clone(&self.cluster), self.post.clone());
        let withdrawing = async move {
            // If this fails, the question stays until it is answered in vain.
            let _ = cluster.answer(&post, "withdrawn").await;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(withdrawing);
        }
    }
}

impl Service {
    /// See [`windlass_api::LocalSessions::child_done`].
    pub(crate) async fn hear_of_end(
        &self,
        session: &SessionId,
        child: &SessionId,
    ) -> Result<bool, ClientError> {
        let row = self.inner.store.agent(child).await.map_err(refused)?;
        let Some(row) = row.filter(|row| !row.status.delivered && !row.status.state.is_active()) else {
            return Ok(true);
        };
        let Some(live) = self.known(session) else {
            return Ok(false);
        };
        live.handle.family.ended(child, row.job.wake);
        if row.job.wake {
            let _ = live.requests.send(SessionRequest::Wake).await;
        }
        // The delivery takes it out of the inbox.
        Ok(!row.job.wake)
    }

    /// See [`windlass_api::LocalSessions::child_asks`].
    pub(crate) async fn show_question(
        &self,
        session: &SessionId,
        question: ChildQuestion,
        withdrawn: BoxFuture<'_, ()>,
    ) -> Result<Option<UserReply>, ClientError> {
        let gone = || ClientError::Closed(session.clone());
        let live = self.known(session).ok_or_else(gone)?;
        let reply = live.handle.replies.wait(&question.shown);
        let stored = live.sink.store(vec![question.event], Durability::Process);
        stored.await.map_err(refused)?;
        let reply = tokio::select! {
            reply = reply => reply,
            () = withdrawn => None,
            () = live.requests.closed() => return Err(gone()),
        };
        let allowed = matches!(
            &reply,
            Some(UserReply::Permission(answer))
                if !matches!(answer, Answer::No | Answer::NoBecause(_))
        );
        live.sink.mention(Event::Waiting(Waiting::PermissionAnswer {
            call_id: question.shown,
            allowed,
        }));
        Ok(reply)
    }
}
