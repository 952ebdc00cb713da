//! Questions to a person, from the turn that waits to the front end that answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::oneshot;
use windlass_api::{Answer, CallId, UserReply};
use windlass_core::permission::{Asker, Proposal, Question};

/// The questions that wait for a reply. The question itself is an event; this is the way back.
#[derive(Clone, Default)]
pub(crate) struct Replies {
    waiting: Arc<Mutex<HashMap<CallId, oneshot::Sender<UserReply>>>>,
}

impl Replies {
    /// Hands a reply to whoever waits for it. Whether somebody did.
    pub(crate) fn give(&self, call: &CallId, reply: UserReply) -> bool {
        let waiting = self.lock().remove(call);
        waiting.is_some_and(|sender| sender.send(reply).is_ok())
    }

    /// `None` when the front end is gone.
    async fn wait(&self, call: &CallId) -> Option<UserReply> {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(call.clone(), sender);
        // A turn that is canceled drops this, and a late reply finds nobody.
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
