//! DIST-4: the backend of a server of a cluster: every session, wherever it is open.

mod post;
mod reads;

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use windlass_api::{
    Begin, CallId, Client, ClientError, CommandInfo, CommandReply, Commands, EventStream, Follow, SessionId,
    SessionInfo, Submission, UserName, UserReply,
};
use windlass_core::log::{Holder, LogError, PostKind};

use crate::mirror;
use crate::state::Shared;
use crate::wire::{OwnerQuery, OwnerQueryKind};

/// A backend over all servers of a cluster. A request goes to the local service, to the durable inbox, or to the owner.
pub struct ClusterBackend {
    shared: Arc<Shared>,
}

/// Place where a session is worked in.
enum Route {
    /// Here, or it can be opened here.
    Here,
    /// Another server has it.
    There(Holder),
    /// Nobody has it, and this server does not have its place.
    Waits(String),
}

impl ClusterBackend {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn route(&self, session: &SessionId) -> Result<Route, ClientError> {
        self.shared.check()?;
        if self.shared.ports.sessions.is_open(session) {
            return Ok(Route::Here);
        }
        let found = self.shared.ports.cluster.whereabouts(session).await;
        let found = found.map_err(stored)?.unwrap_or_default();
        Ok(match found.holder {
            Some(holder) if holder.owner != self.shared.id() && !holder.address.is_empty() => {
                Route::There(holder)
            }
            Some(_) => Route::Here,
            None if self.shared.has_place(found.home.as_deref()) && self.shared.works() => Route::Here,
            None => Route::Waits(found.home.unwrap_or_default()),
        })
    }

    /// Asks the owner of a session; `None` if it is to be asked here.
    async fn asked<T: DeserializeOwned>(
        &self,
        session: &SessionId,
        kind: OwnerQueryKind,
    ) -> Result<Option<T>, ClientError> {
        let holder = match self.route(session).await? {
            Route::Here => return Ok(None),
            Route::There(holder) => holder,
            Route::Waits(home) => return Err(waits(session, &home)),
        };
        let ask = OwnerQuery {
            session: session.clone(),
            kind,
        };
        let answer = self.shared.ports.wire.ask(&holder, &ask).await??;
        serde_json::from_value(answer)
            .map(Some)
            .map_err(|error| ClientError::Store(format!("the answer of server {}: {error}", holder.owner)))
    }

    /// Returns the number of the last entry.
    async fn last(&self, session: &SessionId) -> Result<u64, ClientError> {
        let info = self.shared.ports.store.get(session).await.map_err(stored)?;
        info.map(|info| info.last_seq)
            .ok_or_else(|| ClientError::Unknown(session.clone()))
    }

    async fn info(&self, session: &SessionId) -> Result<SessionInfo, ClientError> {
        let info = self.shared.ports.store.get(session).await.map_err(stored)?;
        info.ok_or_else(|| ClientError::Unknown(session.clone()))
    }
}

/// Explains why nobody answers.
fn waits(session: &SessionId, home: &str) -> ClientError {
    ClientError::Setup(format!(
        "session {session} waits for a server that has its place, `{home}`; it can be read, and takes messages"
    ))
}

fn stored(error: LogError) -> ClientError {
    match error {
        LogError::Unknown(session) => ClientError::Unknown(session),
        LogError::Busy { session, .. } => ClientError::Busy(session),
        other => ClientError::Store(other.to_string()),
    }
}

#[async_trait]
impl Client for ClusterBackend {
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError> {
        self.shared.check()?;
        match begin {
            Begin::Instead { begin, .. } => self.begin(*begin).await,
            Begin::As { user, begin } => self.begin_as(user, *begin).await,
            Begin::Resume(session) => match self.route(&session).await? {
                Route::Here => match self
                    .shared
                    .ports
                    .local
                    .begin(Begin::Resume(session.clone()))
                    .await
                {
                    // Another server was faster.
                    Err(ClientError::Busy(_)) => self.info(&session).await,
                    begun => begun,
                },
                Route::There(_) | Route::Waits(_) => self.info(&session).await,
            },
            begin @ Begin::Keyed { .. } => match self.shared.ports.local.begin(begin).await {
                Err(ClientError::Busy(session)) => self.info(&session).await,
                begun => begun,
            },
            begin => self.shared.ports.local.begin(begin).await,
        }
    }

    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError> {
        let session = submission.session.clone();
        if matches!(self.route(&session).await?, Route::Here) {
            match self.shared.ports.local.submit(submission.clone()).await {
                // Another server may have opened it, or this one let it go.
                Err(error @ (ClientError::Busy(_) | ClientError::Closed(_))) => {
                    if self.shared.ports.sessions.is_open(&session) {
                        return Err(error);
                    }
                }
                submitted => return submitted,
            }
        }
        self.post_input(submission).await
    }

    async fn cancel(&self, session: &SessionId) -> bool {
        match self.route(session).await {
            Ok(Route::Here) => self.shared.ports.local.cancel(session).await,
            Ok(_) => self.post_cancel(session).await.unwrap_or_default(),
            Err(_) => false,
        }
    }

    async fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) -> bool {
        match self.route(session).await {
            Ok(Route::Here) => self.shared.ports.local.reply(session, call, reply).await,
            Ok(_) => self.post_reply(session, call, reply).await.unwrap_or_default(),
            Err(_) => false,
        }
    }

    async fn subscribe(&self, session: &SessionId, after: u64) -> Result<EventStream, ClientError> {
        mirror::follow(&self.shared, session, after).await
    }

    async fn summarize(&self, session: &SessionId) -> Result<EventStream, ClientError> {
        let events = mirror::follow(&self.shared, session, self.last(session).await?).await?;
        match self
            .asked::<serde_json::Value>(session, OwnerQueryKind::Summarize)
            .await?
        {
            Some(_) => Ok(mirror::turn(events, None)),
            None => self.shared.ports.local.summarize(session).await,
        }
    }
}

#[async_trait]
impl Commands for ClusterBackend {
    async fn catalog(&self, session: &SessionId) -> Vec<CommandInfo> {
        match self.asked(session, OwnerQueryKind::Catalog).await {
            Ok(Some(catalog)) => catalog,
            Ok(None) => self.shared.ports.local.catalog(session).await,
            Err(_) => Vec::new(),
        }
    }

    async fn complete(&self, session: &SessionId, line: &str) -> Vec<String> {
        match self
            .asked(session, OwnerQueryKind::Complete(line.to_owned()))
            .await
        {
            Ok(Some(completions)) => completions,
            Ok(None) => self.shared.ports.local.complete(session, line).await,
            Err(_) => Vec::new(),
        }
    }

    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError> {
        if matches!(self.route(session).await?, Route::Here) {
            return self.shared.ports.local.command(session, line).await;
        }
        // Followed first, so that no event of the work that it starts is missed.
        let events = mirror::follow(&self.shared, session, self.last(session).await?).await?;
        let reply = self
            .asked::<CommandReply>(session, OwnerQueryKind::Command(line.to_owned()))
            .await?;
        let Some(reply) = reply else {
            return self.shared.ports.local.command(session, line).await;
        };
        Ok(CommandReply {
            text: reply.text,
            follow: match reply.follow {
                Follow::Watch(_) => Follow::Watch(mirror::turn(events, None)),
                follow => follow,
            },
        })
    }
}

impl ClusterBackend {
    /// Begins a session for a user. Sessions of other users do not exist for it, wherever they are open.
    async fn begin_as(&self, user: UserName, begin: Begin) -> Result<SessionInfo, ClientError> {
        let own = async |session: SessionId| {
            let info = self.info(&session).await?;
            match info.user == user {
                true => Ok(info),
                false => Err(ClientError::Unknown(session)),
            }
        };
        if let Begin::Resume(session) = begin {
            own(session.clone()).await?;
            return self.begin(Begin::Resume(session)).await;
        }
        let begin = Begin::As {
            user: user.clone(),
            begin: Box::new(begin),
        };
        match self.shared.ports.local.begin(begin).await {
            Err(ClientError::Busy(session)) => own(session).await,
            begun => begun,
        }
    }

    /// Stores a message without an answer to wait for.
    async fn posted(
        &self,
        session: &SessionId,
        (id, kind): (String, PostKind),
        payload: String,
    ) -> Result<Option<String>, ClientError> {
        self.post(session, (id, kind), payload).await.map_err(stored)
    }
}
