//! Questions to a person, from the waiting turn to the front end that answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::oneshot;
use windlass_api::{Answer, CallId, UserReply};
use windlass_core::permission::{Asker, Proposal, Question};

/// Questions that wait for a reply. The question itself is an event; this is the way back.
#[derive(Clone, Default)]
pub(crate) struct Replies {
    waiting: Arc<Mutex<HashMap<CallId, oneshot::Sender<UserReply>>>>,
}

impl Replies {
    /// Passes a reply to the waiting call. Returns true if a call waited for it.
    pub(crate) fn give(&self, call: &CallId, reply: UserReply) -> bool {
        let waiting = self.lock().remove(call);
        waiting.is_some_and(|sender| sender.send(reply).is_ok())
    }

    /// Waits for the reply; `None` if the front end is gone.
    pub(crate) async fn wait(&self, call: &CallId) -> Option<UserReply> {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(call.clone(), sender);
        // A canceled turn drops the receiver, and a late reply finds no call.
        receiver.await.ok()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CallId, oneshot::Sender<UserReply>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Asker for Replies {
    async fn ask(&self, proposal: &Proposal) -> Answer {
        match self.wait(&proposal.call_id).await {
            Some(UserReply::Permission(answer)) => answer,
            Some(UserReply::Text(note)) => Answer::NoBecause(note),
            None => Answer::No,
        }
    }

    async fn answer(&self, call: &CallId, _: &Question) -> Option<String> {
        match self.wait(call).await? {
            UserReply::Text(text) => Some(text),
            UserReply::Permission(_) => None,
        }
    }
}
