//! DIST-7: a backend as one user sees it: sessions of other users do not exist.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{
    AgentRow, Backend, Begin, CallId, Checkpoint, Client, ClientError, CommandInfo, CommandReply, Commands,
    ContextReport, Entry, EventStream, FileChange, Find, Message, MessageId, Overview, Presence, Records,
    SessionId, SessionInfo, Submission, UserName, UserReply, Wait,
};
use windlass_core::log::Store;

/// The sessions of one user.
pub struct UserBackend {
    backend: Arc<dyn Backend>,
    store: Arc<dyn Store>,
    user: UserName,
}

impl UserBackend {
    /// Restricts a backend to a user.
    pub fn new(backend: Arc<dyn Backend>, store: Arc<dyn Store>, user: UserName) -> Self {
        Self { backend, store, user }
    }

    /// Returns the backend, if the session belongs to the user.
    async fn of(&self, session: &SessionId) -> Result<&dyn Backend, ClientError> {
        let found = self.store.get(session).await;
        let found = found.map_err(|error| ClientError::Store(error.to_string()))?;
        match found.is_some_and(|info| info.user == self.user) {
            true => Ok(&*self.backend),
            false => Err(ClientError::Unknown(session.clone())),
        }
    }
}

#[async_trait]
impl Client for UserBackend {
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError> {
        let (user, begin) = (self.user.clone(), Box::new(begin));
        self.backend.begin(Begin::As { user, begin }).await
    }

    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError> {
        self.of(&submission.session).await?.submit(submission).await
    }

    async fn cancel(&self, session: &SessionId) -> bool {
        match self.of(session).await {
            Ok(backend) => backend.cancel(session).await,
            Err(_) => false,
        }
    }

    async fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) -> bool {
        match self.of(session).await {
            Ok(backend) => backend.reply(session, call, reply).await,
            Err(_) => false,
        }
    }

    async fn subscribe(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError> {
        self.of(session).await?.subscribe(session, after).await
    }

    async fn summarize(&self, session: &SessionId) -> Result<EventStream, ClientError> {
        self.of(session).await?.summarize(session).await
    }
}

#[async_trait]
impl Commands for UserBackend {
    async fn catalog(&self, session: &SessionId) -> Vec<CommandInfo> {
        match self.of(session).await {
            Ok(backend) => backend.catalog(session).await,
            Err(_) => Vec::new(),
        }
    }

    async fn complete(&self, session: &SessionId, line: &str) -> Vec<String> {
        match self.of(session).await {
            Ok(backend) => backend.complete(session, line).await,
            Err(_) => Vec::new(),
        }
    }

    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError> {
        self.of(session).await?.command(session, line).await
    }
}

#[async_trait]
impl Records for UserBackend {
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError> {
        let find = Find {
            user: Some(self.user.clone()),
            ..find.clone()
        };
        self.backend.sessions(&find).await
    }

    async fn tail(
        &self,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, ClientError> {
        self.of(session).await?.tail(session, before, limit).await
    }

    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, ClientError> {
        self.of(session).await?.checkpoints(session).await
    }

    async fn changes(&self, session: &SessionId, number: u64) -> Result<Vec<FileChange>, ClientError> {
        self.of(session).await?.changes(session, number).await
    }

    async fn sent(&self, session: &SessionId, message: &MessageId) -> Result<Option<u64>, ClientError> {
        self.of(session).await?.sent(session, message).await
    }

    async fn agents(&self, session: &SessionId) -> Result<Vec<AgentRow>, ClientError> {
        self.of(session).await?.agents(session).await
    }
}

#[async_trait]
impl Presence for UserBackend {
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError> {
        self.of(session).await?.overview(session).await
    }

    async fn why(&self, session: &SessionId) -> Vec<Wait> {
        match self.of(session).await {
            Ok(backend) => backend.why(session).await,
            Err(_) => Vec::new(),
        }
    }

    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>> {
        let backend = self.of(session).await.ok()?;
        backend.take_back(session, message).await
    }

    async fn go_on(&self, session: &SessionId) -> bool {
        match self.of(session).await {
            Ok(backend) => backend.go_on(session).await,
            Err(_) => false,
        }
    }

    async fn context(&self, session: &SessionId) -> Result<ContextReport, ClientError> {
        self.of(session).await?.context(session).await
    }

    async fn delete(&self, session: &SessionId) -> Result<(), ClientError> {
        self.of(session).await?.delete(session).await
    }
}
