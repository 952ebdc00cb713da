//! SRV-1: a message that is sent twice is accepted once. Its id is the client's, and is part of the record, so that a
//! repetition is recognized after a restart too.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_api::{Backend, ClientError, MessageId, SessionId, Submission};

use crate::app::lock;

/// Locks for sessions: two requests for the same session wait for each other.
const LOCKS: usize = 32;
/// Messages whose answer is remembered.
const REMEMBERED: usize = 2_000;

/// Answer to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Sent {
    /// Id of the message.
    pub(crate) id: MessageId,
    /// Number of its entry; absent while it waits in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seq: Option<u64>,
    /// True if it waits for its turn, or for the running turn to read it.
    pub(crate) is_waiting: bool,
}

/// Messages on their way.
pub(crate) struct Sends {
    locks: Vec<tokio::sync::Mutex<()>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    sent: HashMap<(SessionId, MessageId), Sent>,
    order: VecDeque<(SessionId, MessageId)>,
}

impl Default for Sends {
    fn default() -> Self {
        Self {
            locks: (0..LOCKS).map(|_| tokio::sync::Mutex::default()).collect(),
            known: Mutex::default(),
        }
    }
}

impl Sends {
    /// Submits a message, unless it is known already.
    pub(crate) async fn send(
        &self,
        backend: &dyn Backend,
        submission: Submission,
    ) -> Result<Sent, ClientError> {
        let id = submission.id.clone().unwrap_or_else(MessageId::generate);
        let key = (submission.session.clone(), id.clone());
        let mut hasher = DefaultHasher::new();
        key.0.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        let _one_at_a_time = match self.locks.get(place) {
            Some(lock) => Some(lock.lock().await),
            None => None,
        };
        if let Some(sent) = lock(&self.known).sent.get(&key) {
            return Ok(sent.clone());
        }
        if let Some(sent) = recorded(backend, &key.0, &id).await? {
            return Ok(self.remember(key, sent));
        }
        let submission = Submission {
            id: Some(id.clone()),
            ..submission
        };
        // The turn continues without its stream: events come through the session's hub.
        drop(backend.submit(submission).await?);
        let seq = backend.sent(&key.0, &id).await?;
        let is_waiting = seq.is_none();
        Ok(self.remember(key, Sent { id, seq, is_waiting }))
    }

    fn remember(&self, key: (SessionId, MessageId), sent: Sent) -> Sent {
        let mut known = lock(&self.known);
        if known.sent.insert(key.clone(), sent.clone()).is_none() {
            known.order.push_back(key);
        }
        if known.order.len() > REMEMBERED
            && let Some(old) = known.order.pop_front()
        {
            known.sent.remove(&old);
        }
        sent
    }
}

/// Finds a message in the record or in the queue.
async fn recorded(
    backend: &dyn Backend,
    session: &SessionId,
    id: &MessageId,
) -> Result<Option<Sent>, ClientError> {
    let id = id.clone();
    if let Some(seq) = backend.sent(session, &id).await? {
        return Ok(Some(Sent {
            id,
            seq: Some(seq),
            is_waiting: false,
        }));
    }
    let queue = match backend.overview(session).await {
        Ok(overview) => overview.queue,
        Err(error @ ClientError::Unknown(_)) => return Err(error),
        // Another server has the session and does not answer: its inbox knows messages by their ids.
        Err(_) => Vec::new(),
    };
    let is_waiting = queue.iter().any(|message| message.id == id);
    Ok(is_waiting.then_some(Sent {
        id,
        seq: None,
        is_waiting,
    }))
}
