//! The ports of sessions.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::clock::Timestamp;
use windlass_core::event::Event;
use windlass_core::id::{MessageId, SessionId};
use windlass_core::log::{
    AgentBudget, AgentLedger, AgentLimits, AgentQuery, AgentRow, Batch, Booking, ClusterStore, Entry,
    Exchange, Exchanges, Found, Frame, GoalInfo, GoalRegistry, Label, Lease, Ledger, Lifecycle, LogError,
    MessagePlaces, NewAgent, NewExchange, NewSession, Opened, Preferences, SessionInfo, SessionLog,
    SessionQuery, Sessions, SpawnError, Spawned, Spent, SpentBy, UserName,
};

use super::append::Prepared;
use super::failure::Fault;
use super::{
    PostgresStore, agents, blobs, books, cluster, entries, exchanges, find, goals, group, lease, opening,
    search,
};

#[async_trait]
impl Lifecycle for PostgresStore {
    async fn ready(&self) -> Result<(), LogError> {
        self.thread.run(async move |context| context.opened()).await
    }

    async fn sync(&self) -> Result<(), LogError> {
        // Every commit is flushed; only the index is made later.
        self.thread
            .run(async move |context| {
                context.opened()?;
                entries::indexed(&context).await;
                Ok(())
            })
            .await
    }

    fn cluster(&self) -> Option<Arc<dyn ClusterStore>> {
        Some(Arc::new(self.clone()))
    }

    fn metrics(&self) -> String {
        self.times.text()
    }
}

#[async_trait]
impl SessionLog for PostgresStore {
    async fn create(&self, new: NewSession, owner: &str) -> Result<Opened, LogError> {
        let owner = owner.to_owned();
        let server = self.server_of(&owner);
        let new = NewSession {
            id: Some(new.id.clone().unwrap_or_else(SessionId::generate)),
            ..new
        };
        self.write(async move |transaction, again| {
            let opened = lease::create(transaction, &new, &owner, again).await?;
            if let Some(server) = &server {
                cluster::opened(transaction, &opened.info.id, server, None).await?;
            }
            Ok(opened)
        })
        .await
    }

    async fn open(&self, session: &SessionId, owner: &str) -> Result<Opened, LogError> {
        let (id, owner) = (session.clone(), owner.to_owned());
        let server = self.server_of(&owner);
        let (lease, dropped) = self
            .thread
            .run(async move |context| {
                let lives = context.lives;
                context
                    .write(async |transaction, _| {
                        lease::take(transaction, &id, (&owner, server.as_ref()), lives).await
                    })
                    .await
            })
            .await?;
        let id = session.clone();
        let opened = self
            .read(async move |client| opening::opened(client, &id, lease.clone()).await)
            .await?;
        Ok(Opened { dropped, ..opened })
    }

    async fn append(&self, lease: &Lease, batch: Batch) -> Result<(), LogError> {
        let has_ended = batch.events.iter().any(Event::is_terminal);
        let begun = self.clock.elapsed();
        // Formatted here, because one thread sends the batches of all sessions.
        let batch = Prepared::new(lease.clone(), batch)?;
        let appended = self
            .thread
            .run(async move |context| {
                let session = batch.lease.session.clone();
                group::append(std::rc::Rc::clone(&context), batch).await?;
                if has_ended {
                    entries::index_later(context, session);
                }
                Ok(())
            })
            .await;
        self.times.note(self.clock.elapsed().saturating_sub(begun));
        appended
    }

    async fn renew(&self, lease: &Lease) -> Result<(), LogError> {
        // The heartbeat of a server renews the leases of all its sessions.
        if self.server_of(&lease.owner).is_some() {
            return Ok(());
        }
        let lease = lease.clone();
        self.write(async move |transaction, _| lease::renew(transaction, &lease).await)
            .await
    }

    async fn release(&self, lease: &Lease) -> Result<(), LogError> {
        let lease = lease.clone();
        self.write(async move |transaction, _| lease::release(transaction, &lease).await)
            .await
    }

    async fn entries(&self, session: &SessionId, after: u64, limit: usize) -> Result<Vec<Entry>, LogError> {
        let id = session.clone();
        let rows = {
            let id = id.clone();
            self.read(async move |client| entries::after(client, &id, after, limit).await)
                .await?
        };
        rows.into_iter().map(|raw| raw.entry(&id)).collect()
    }
}

#[async_trait]
impl Sessions for PostgresStore {
    async fn get(&self, session: &SessionId) -> Result<Option<SessionInfo>, LogError> {
        let id = session.clone();
        self.read(async move |client| find::get(client, &id).await).await
    }

    async fn list(&self, query: &SessionQuery) -> Result<Vec<SessionInfo>, LogError> {
        let query = query.clone();
        self.read(async move |client| find::list(client, &query).await)
            .await
    }

    async fn holder(&self, session: &SessionId) -> Result<Option<String>, LogError> {
        let id = session.clone();
        self.thread
            .run(async move |context| {
                let lives = context.lives;
                context
                    .read(async |client| lease::holder(client, &id, lives).await)
                    .await
            })
            .await
    }

    async fn label(&self, session: &SessionId, label: &Label) -> Result<(), LogError> {
        let (id, label) = (session.clone(), label.clone());
        self.write(async move |transaction, _| find::label(transaction, &id, &label).await)
            .await
    }

    async fn delete(&self, session: &SessionId) -> Result<(), LogError> {
        let id = session.clone();
        self.thread
            .run(async move |context| {
                let lives = context.lives;
                context
                    .write(async |transaction, again| {
                        let attached = blobs::attachments(transaction, &id).await?;
                        match find::delete(transaction, &id, lives).await {
                            // Gone since the first attempt.
                            Err(Fault::Log(LogError::Unknown(_))) if again => return Ok(()),
                            told => told?,
                        }
                        let gone: Vec<String> = attached.into_iter().map(|one| one.address).collect();
                        blobs::sweep(transaction, &gone).await
                    })
                    .await
            })
            .await
    }

    async fn search(
        &self,
        words: &str,
        user: Option<&UserName>,
        limit: usize,
    ) -> Result<Vec<Found>, LogError> {
        let (words, user) = (words.to_owned(), user.cloned());
        self.read(async move |client| search::search(client, &words, user.as_ref(), limit).await)
            .await
    }
}

#[async_trait]
impl Ledger for PostgresStore {
    async fn spent(&self, session: Option<&SessionId>, by: SpentBy) -> Result<Vec<Spent>, LogError> {
        let session = session.cloned();
        self.read(async move |client| books::spent(client, session.as_ref(), by).await)
            .await
    }

    async fn book(&self, session: &SessionId, booking: Booking) -> Result<(), LogError> {
        let (id, number) = (session.clone(), super::append::booking_id());
        self.write(async move |transaction, _| books::book(transaction, &id, &number, &booking).await)
            .await
    }
}

#[async_trait]
impl AgentLedger for PostgresStore {
    async fn spawn(&self, new: NewAgent, owner: &str) -> Result<Spawned, SpawnError> {
        let owner = owner.to_owned();
        self.write(async move |transaction, again| agents::spawn(transaction, &new, &owner, again).await)
            .await?
    }

    async fn restart(&self, session: &SessionId, limits: &AgentLimits) -> Result<AgentRow, SpawnError> {
        let (id, limits) = (session.clone(), limits.clone());
        self.thread
            .run(async move |context| {
                let now = context.clock.now();
                context
                    .write(async |transaction, again| {
                        agents::restart(transaction, &id, &limits, (now, again)).await
                    })
                    .await
            })
            .await?
    }

    async fn agent(&self, session: &SessionId) -> Result<Option<AgentRow>, LogError> {
        let id = session.clone();
        self.read(async move |client| agents::get(client, &id).await)
            .await
    }

    async fn agents(&self, query: &AgentQuery) -> Result<Vec<AgentRow>, LogError> {
        let query = query.clone();
        self.read(async move |client| agents::list(client, &query).await)
            .await
    }

    async fn budget_left(&self, session: &SessionId) -> Result<AgentBudget, LogError> {
        let id = session.clone();
        self.read(async move |client| agents::budget_left(client, &id).await)
            .await
    }

    async fn set_worktree(&self, session: &SessionId, folder: Option<&str>) -> Result<(), LogError> {
        let (id, folder) = (session.clone(), folder.map(str::to_owned));
        self.write(async move |transaction, _| {
            agents::set_worktree(transaction, &id, folder.as_deref()).await
        })
        .await
    }
}

#[async_trait]
impl GoalRegistry for PostgresStore {
    async fn goals(&self, only_active: bool) -> Result<Vec<GoalInfo>, LogError> {
        self.read(async move |client| goals::list(client, only_active).await)
            .await
    }

    async fn unattended_cost(&self, since: Timestamp) -> Result<f64, LogError> {
        self.read(async move |client| goals::unattended_cost(client, since).await)
            .await
    }
}

#[async_trait]
impl Exchanges for PostgresStore {
    async fn keep_exchange(
        &self,
        session: &SessionId,
        new: NewExchange,
        limit: u64,
    ) -> Result<bool, LogError> {
        let id = session.clone();
        // One statement, which may be sent twice.
        self.read(async move |client| exchanges::keep(client, &id, &new, limit).await)
            .await
    }

    async fn exchanges(&self, session: &SessionId) -> Result<Vec<Exchange>, LogError> {
        let id = session.clone();
        self.read(async move |client| exchanges::all(client, &id).await)
            .await
    }

    async fn keep_frame(&self, frame: &Frame) -> Result<String, LogError> {
        let frame = frame.clone();
        self.write(async move |transaction, _| exchanges::keep_frame(transaction, &frame).await)
            .await
    }

    async fn frame(&self, digest: &str) -> Result<Option<Frame>, LogError> {
        let digest = digest.to_owned();
        self.read(async move |client| exchanges::frame(client, &digest).await)
            .await
    }
}

#[async_trait]
impl Preferences for PostgresStore {
    async fn preference(&self, scope: &str, name: &str) -> Result<Option<String>, LogError> {
        let (scope, name) = (scope.to_owned(), name.to_owned());
        self.read(async move |client| find::preference(client, &scope, &name).await)
            .await
    }

    async fn set_preference(&self, scope: &str, name: &str, value: Option<&str>) -> Result<(), LogError> {
        let (scope, name, value) = (scope.to_owned(), name.to_owned(), value.map(str::to_owned));
        self.write(async move |transaction, _| {
            find::set_preference(transaction, &scope, &name, value.as_deref()).await
        })
        .await
    }

    async fn settle_preference(&self, scope: &str, name: &str, value: &str) -> Result<String, LogError> {
        let (scope, name, value) = (scope.to_owned(), name.to_owned(), value.to_owned());
        self.write(async move |transaction, _| {
            find::settle_preference(transaction, &scope, &name, &value).await
        })
        .await
    }

    async fn preferences(&self, scope: &str) -> Result<Vec<(String, String)>, LogError> {
        let scope = scope.to_owned();
        self.read(async move |client| find::preferences(client, &scope).await)
            .await
    }
}

#[async_trait]
impl MessagePlaces for PostgresStore {
    async fn place(&self, session: &SessionId, message: &MessageId) -> Result<Option<u64>, LogError> {
        let (session, message) = (session.clone(), message.clone());
        self.read(async move |client| find::place(client, &session, &message).await)
            .await
    }
}
