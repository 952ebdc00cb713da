//! Questions to a person, from the turn that waits to the front end that answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::oneshot;
use windlass_api::{Answer, CallId, Reply};
use windlass_core::permission::{Asker, Proposal, Question};

/// The questions that wait for a reply. The question itself is an event; this is the way back.
#[derive(Clone, Default)]
pub(crate) struct Replies {
    waiting: Arc<Mutex<HashMap<CallId, oneshot::Sender<Reply>>>>,
}

impl Replies {
    /// Hands a reply to whoever waits for it. Whether somebody did.
    pub(crate) fn give(&self, call: &CallId, reply: Reply) -> bool {
        let waiting = self.lock().remove(call);
        waiting.is_some_and(|sender| sender.send(reply).is_ok())
    }

    /// `None` when the front end is gone.
    async fn wait(&self, call: &CallId) -> Option<Reply> {
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(call.clone(), sender);
        // A turn that is canceled drops this, and a late reply finds nobody.
        receiver.await.ok()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CallId, oneshot::Sender<Reply>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Asker for Replies {
    async fn ask(&self, proposal: &Proposal) -> Answer {
        match self.wait(&proposal.call_id).await {
            Some(Reply::Permission(answer)) => answer,
            Some(Reply::Text(note)) => Answer::NoBecause(note),
            None => Answer::No,
        }
    }

    async fn answer(&self, call: &CallId, _: &Question) -> Option<String> {
        match self.wait(call).await? {
            Reply::Text(text) => Some(text),
            Reply::Permission(_) => None,
        }
    }
}
