//! Empties the inbox of this server's sessions.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_api::{
    CallId, CancelPost, ChildQuestion, ClientError, MessageId, SessionId, Submission, UserReply,
};
use windlass_core::log::{Post, PostKind};

use crate::state::{Shared, count, lock};

/// Pause before a reply or a cancellation is tried again: its turn may just begin.
const AGAIN: Duration = Duration::from_millis(20);
/// Attempts while a turn is unfinished.
const ATTEMPTS: u32 = 1_500;
/// Pause between looks whether a question of a sub-agent was withdrawn.
const WITHDRAWN: Duration = Duration::from_secs(1);
/// Entries looked at for the end of a turn.
const PAGE: usize = 1_000;

/// An answer to a question.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReplyPost {
    pub(crate) call: CallId,
    pub(crate) reply: UserReply,
}

/// Answer to an input that was not taken.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RefusedPost {
    pub(crate) error: ClientError,
}

/// Carries out messages as they arrive. Those of one session are carried out in order; cancellations and answers do not
/// wait for inputs.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        shared.inbox.notified().await;
        if !shared.works() {
            continue;
        }
        let waiting = shared
            .ports
            .cluster
            .waiting(shared.id())
            .await
            .unwrap_or_default();
        let mut ordered: Vec<(SessionId, Vec<Post>)> = Vec::new();
        for post in waiting {
            if !lock(&shared.in_hand).insert(post.id.clone()) {
                continue;
            }
            if matches!(
                post.kind,
                PostKind::Cancel | PostKind::Reply | PostKind::ChildAsks
            ) {
                tokio::spawn(carry_out_all(Arc::clone(&shared), vec![post]));
                continue;
            }
            match ordered.iter_mut().find(|(session, _)| *session == post.session) {
                Some((_, posts)) => posts.push(post),
                None => ordered.push((post.session.clone(), vec![post])),
            }
        }
        for (_, posts) in ordered {
            tokio::spawn(carry_out_all(Arc::clone(&shared), posts));
        }
    }
}

async fn carry_out_all(shared: Arc<Shared>, posts: Vec<Post>) {
    for post in posts {
        if let Some(answer) = carry_out(&shared, &post).await {
            count(&shared.counts.taken);
            // If this fails, the message is looked at again, and found to be done.
            let _ = shared.ports.cluster.answer(&post, &answer).await;
        }
        lock(&shared.in_hand).remove(&post.id);
    }
}

/// Carries out a message. Returns `None` if it stays in the inbox: another owner may be able to.
async fn carry_out(shared: &Shared, post: &Post) -> Option<String> {
    if !shared.holds() || shared.ports.sessions.take_over(&post.session).await.is_err() {
        return None;
    }
    let damaged = |error: serde_json::Error| {
        let error = ClientError::Store(format!("the message {} is damaged: {error}", post.id));
        Some(json!(RefusedPost { error }).to_string())
    };
    match post.kind {
        PostKind::Submit => match serde_json::from_str(&post.payload) {
            Ok(submission) => submit(shared, post, submission).await,
            Err(error) => damaged(error),
        },
        PostKind::Cancel => match serde_json::from_str::<CancelPost>(&post.payload) {
            Ok(cancel) => Some(cancelled(shared, post, &cancel).await.to_string()),
            Err(error) => damaged(error),
        },
        PostKind::Reply => match serde_json::from_str::<ReplyPost>(&post.payload) {
            Ok(reply) => Some(replied(shared, post, &reply).await.to_string()),
            Err(error) => damaged(error),
        },
        PostKind::TakeBack => {
            let message = MessageId::from(post.payload.clone());
            let taken = shared.ports.local.take_back(&post.session, &message).await;
            Some(json!(taken.as_deref()).to_string())
        }
        PostKind::GoOn => Some(shared.ports.local.go_on(&post.session).await.to_string()),
        PostKind::ChildDone => {
            let child = SessionId::from(post.payload.clone());
            let done = shared.ports.sessions.child_done(&post.session, &child).await;
            matches!(done, Ok(true)).then(String::new)
        }
        PostKind::ChildAsks => match serde_json::from_str(&post.payload) {
            Ok(question) => asked(shared, post, question).await,
            Err(error) => damaged(error),
        },
    }
}

/// Shows a question of a sub-agent, and sends the reply to it. Whoever asked may withdraw it meanwhile.
async fn asked(shared: &Shared, post: &Post, question: ChildQuestion) -> Option<String> {
    let (child, call) = (question.child.clone(), question.call.clone());
    let withdrawn = async {
        while !matches!(shared.ports.cluster.answered(&post.id).await, Ok(Some(_))) {
            shared.ports.clock.sleep(WITHDRAWN).await;
        }
    };
    let shown = shared
        .ports
        .sessions
        .child_asks(&post.session, question, Box::pin(withdrawn));
    // If the session is closed here, its next owner asks again.
    if let Some(reply) = shown.await.ok()? {
        let reply = Post {
            id: format!("reply {}", post.id),
            session: child,
            kind: PostKind::Reply,
            payload: json!(ReplyPost { call, reply }).to_string(),
            from: shared.id().to_owned(),
            made: post.made,
        };
        shared.ports.cluster.post(&reply).await.ok()?;
    }
    Some(String::new())
}

async fn submit(shared: &Shared, post: &Post, submission: Submission) -> Option<String> {
    let local = &shared.ports.local;
    let message = MessageId::from(post.id.clone());
    match local.sent(&post.session, &message).await {
        Ok(None) => {}
        // The entry took it, and only the mark was lost.
        Ok(Some(_)) => return Some(String::new()),
        // It may be recorded: it waits until the store can tell.
        Err(_) => return None,
    }
    match local.submit(submission).await {
        Ok(_) => Some(String::new()),
        Err(ClientError::Closed(_) | ClientError::Store(_)) => None,
        Err(error) => Some(json!(RefusedPost { error }).to_string()),
    }
}

async fn cancelled(shared: &Shared, post: &Post, cancel: &CancelPost) -> bool {
    for _ in 0..ATTEMPTS {
        let since = shared
            .ports
            .store
            .entries(&post.session, cancel.after, PAGE)
            .await;
        if since.is_ok_and(|since| since.iter().any(|entry| entry.event.is_terminal())) {
            return false;
        }
        if shared.ports.local.cancel(&post.session).await {
            return true;
        }
        if !is_unfinished(shared, &post.session, true).await {
            return false;
        }
        shared.ports.clock.sleep(AGAIN).await;
    }
    false
}

async fn replied(shared: &Shared, post: &Post, ReplyPost { call, reply }: &ReplyPost) -> bool {
    for attempt in 0..ATTEMPTS {
        if shared.ports.local.reply(&post.session, call, reply.clone()).await {
            return true;
        }
        if attempt % 10 == 0 && !is_unfinished(shared, &post.session, true).await {
            return false;
        }
        shared.ports.clock.sleep(AGAIN).await;
    }
    false
}

/// Returns true if a turn of the session has not ended.
async fn is_unfinished(shared: &Shared, session: &SessionId, otherwise: bool) -> bool {
    let overview = shared.ports.local.overview(session).await;
    overview.map_or(otherwise, |overview| overview.is_busy)
}
