//! DIST-4: the backend of a server of a cluster: every session, wherever it is open.

mod post;
mod reads;

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use windlass_api::{
    Begin, CallId, Client, ClientError, CommandInfo, CommandReply, Commands, EventStream, Follow, SessionId,
    SessionInfo, Submission, Timestamp, UserName, UserReply, Wait, WaitOn, command_line,
};
use windlass_core::log::{Holder, LogError, PostKind, Whereabouts};

use crate::mirror;
use crate::moving::{MoveOrder, MovePorts, move_session};
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
    Waits(Whereabouts),
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
            None => Route::Waits(found),
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
            Route::Waits(found) => return Err(waits(session, &found)),
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
fn waits(session: &SessionId, found: &Whereabouts) -> ClientError {
    let home = found.home.as_deref().unwrap_or_default();
    ClientError::Setup(match &found.waits {
        Some(wait) => format!(
            "session {session} {wait}; it can be read and accepts messages; `/session move PLACE` moves it"
        ),
        None => format!(
            "session {session} waits for a server that has its place, `{home}`; it can be read, and takes messages"
        ),
    })
}

/// Returns the wait of a session whose place no server has.
fn waits_for_place(found: &Whereabouts, now: Timestamp) -> Option<Wait> {
    let wait = found.waits.as_ref()?;
    let gone = wait.since.map_or_else(
        || "no server has had it".to_owned(),
        |since| format!("gone since {}", since.minute()),
    );
    Some(Wait {
        on: WaitOn::Place,
        what: format!("{}, {gone}", wait.name()),
        for_ms: wait.since.map_or(0, |since| now.0.saturating_sub(since.0)),
        ends: format!(
            "when a server with `{}` starts, or with `/session move PLACE`",
            wait.place
        ),
    })
}

/// Reads `/session move PLACE [FOLDER]`. Returns the place and the folder.
fn move_words(line: &str) -> Option<(&str, Option<&str>)> {
    let typed = command_line(line).filter(|typed| typed.name.eq_ignore_ascii_case("session"))?;
    let rest = typed.arguments.strip_prefix("move")?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim();
    let (place, folder) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let folder = Some(folder.trim()).filter(|folder| !folder.is_empty());
    (!place.is_empty()).then_some((place, folder))
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
        if let Some((place, folder)) = move_words(line) {
            return self.moved(MoveOrder::new(session, place, folder)).await;
        }
        match self.route(session).await? {
            Route::Here => return self.shared.ports.local.command(session, line).await,
            Route::Waits(found) => {
                let wait = waits_for_place(&found, self.shared.ports.clock.now());
                let asks_why = command_line(line).is_some_and(|typed| typed.name.eq_ignore_ascii_case("why"));
                return match wait.filter(|_| asks_why) {
                    Some(wait) => Ok(said(wait.to_string())),
                    None => Err(waits(session, &found)),
                };
            }
            Route::There(_) => {}
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

fn said(text: String) -> CommandReply {
    CommandReply {
        text,
        follow: Follow::Nothing,
    }
}

impl ClusterBackend {
    /// Moves a session to another place.
    async fn moved(&self, order: MoveOrder) -> Result<CommandReply, ClientError> {
        self.shared.check()?;
        let ports = &self.shared.ports;
        let ports = MovePorts {
            store: &*ports.store,
            cluster: &*ports.cluster,
            wire: &*ports.wire,
            clock: &*ports.clock,
        };
        move_session(ports, &order).await.map(said)
    }

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
