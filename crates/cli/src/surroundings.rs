//! What is first said in a session tells the model where it is, whichever front end it came through.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use windlass_api::{
    Begin, CallId, Checkpoint, Client, ClientError, CommandInfo, CommandReply, Commands, Entry, EventStream,
    FileChange, Find, Message, MessageId, Overview, Part, Presence, Records, Reply, SessionId, SessionInfo,
    Submission, Wait,
};
use windlass_core::log::Sessions;

use crate::prompt;

/// A backend that puts the surroundings before the first input of every session that does not know them.
pub(crate) struct Surrounded<B> {
    backend: B,
    sessions: Arc<dyn Sessions>,
    cwd: PathBuf,
    /// The sessions that know where they are.
    told: Mutex<HashSet<SessionId>>,
    /// Those in which nothing was said when they were begun.
    new: Mutex<HashSet<SessionId>>,
}

impl<B> Surrounded<B> {
    /// The same backend for work in `cwd`.
    pub(crate) fn new(backend: B, sessions: Arc<dyn Sessions>, cwd: PathBuf) -> Self {
        Self {
            backend,
            sessions,
            cwd,
            told: Mutex::default(),
            new: Mutex::default(),
        }
    }

    /// The backend as it is.
    pub(crate) fn plain(&self) -> &B {
        &self.backend
    }

    fn told(&self) -> std::sync::MutexGuard<'_, HashSet<SessionId>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session has heard nothing yet, or last worked in another folder.
    async fn is_lost(&self, session: &SessionId) -> bool {
        if self.told().contains(session) {
            return false;
        }
        if self.begun().contains(session) {
            return true;
        }
        // One that cannot be read cannot be worked in either, and submitting says why.
        let info = self.sessions.get(session).await.ok().flatten();
        info.is_some_and(|info| info.model.is_none() || info.place != self.cwd.display().to_string())
    }

    /// A session that was begun just now, so that nobody has to look it up.
    pub(crate) fn has_begun(&self, info: &SessionInfo) {
        if info.last_seq == 0 {
            self.begun().insert(info.id.clone());
        }
    }

    fn begun(&self) -> std::sync::MutexGuard<'_, HashSet<SessionId>> {
        self.new.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl<B: Client> Client for Surrounded<B> {
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError> {
        self.backend.begin(begin).await
    }

    async fn submit(&self, mut submission: Submission) -> Result<EventStream, ClientError> {
        let session = submission.session.clone();
        let is_empty = |part: &Part| matches!(part, Part::Text(text) if text.text.trim().is_empty());
        // Where somebody is would make an input of nothing.
        let says_something = !submission.parts.iter().all(is_empty);
        if says_something && self.is_lost(&session).await {
            let surroundings = Part::text(prompt::environment(&self.cwd));
            submission.parts.insert(0, surroundings);
        }
        let events = self.backend.submit(submission).await?;
        self.told().insert(session);
        Ok(events)
    }

    async fn cancel(&self, session: &SessionId) -> bool {
        self.backend.cancel(session).await
    }

    async fn reply(&self, session: &SessionId, call: &CallId, reply: Reply) -> bool {
        self.backend.reply(session, call, reply).await
    }

    async fn subscribe(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError> {
        self.backend.subscribe(session, after).await
    }

    async fn summarize(&self, session: &SessionId) -> Result<EventStream, ClientError> {
        self.backend.summarize(session).await
    }
}

#[async_trait]
impl<B: Commands> Commands for Surrounded<B> {
    async fn catalog(&self, session: &SessionId) -> Vec<CommandInfo> {
        self.backend.catalog(session).await
    }

    async fn complete(&self, session: &SessionId, line: &str) -> Vec<String> {
        self.backend.complete(session, line).await
    }

    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError> {
        self.backend.command(session, line).await
    }
}

#[async_trait]
impl<B: Records> Records for Surrounded<B> {
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError> {
        self.backend.sessions(find).await
    }

    async fn tail(
        &self,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, ClientError> {
        self.backend.tail(session, before, limit).await
    }

    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, ClientError> {
        self.backend.checkpoints(session).await
    }

    async fn changes(&self, session: &SessionId, number: u64) -> Result<Vec<FileChange>, ClientError> {
        self.backend.changes(session, number).await
    }
}

#[async_trait]
impl<B: Presence> Presence for Surrounded<B> {
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError> {
        self.backend.overview(session).await
    }

    async fn why(&self, session: &SessionId) -> Vec<Wait> {
        self.backend.why(session).await
    }

    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>> {
        self.backend.take_back(session, message).await
    }
}
