//! Queries: the store answers those about records, the owner those about its state.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_api::{
    AgentRow, Checkpoint, ClientError, ContextReport, Entry, FileChange, Find, FolderFacts, Message,
    MessageId, Overview, Presence, Records, SessionId, SessionInfo, Wait,
};

use super::{ClusterBackend, Route, waits_for_place};
use crate::wire::OwnerQueryKind;

/// Returns what is known of a session that nobody works in, and that cannot be opened here.
fn unattended(info: SessionInfo) -> Overview {
    let (provider, model) = info.model.clone().unwrap_or_default();
    Overview {
        info,
        provider,
        model,
        window: 0,
        mode: String::new(),
        effort: String::new(),
        surroundings: FolderFacts::default(),
        is_busy: false,
        queue: Vec::new(),
        goal: None,
        subgoal: None,
    }
}

#[async_trait]
impl Records for ClusterBackend {
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError> {
        self.shared.ports.local.sessions(find).await
    }

    async fn tail(
        &self,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, ClientError> {
        self.shared.ports.local.tail(session, before, limit).await
    }

    async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, ClientError> {
        match self.asked(session, OwnerQueryKind::Checkpoints).await? {
            Some(checkpoints) => Ok(checkpoints),
            None => self.shared.ports.local.checkpoints(session).await,
        }
    }

    async fn changes(&self, session: &SessionId, number: u64) -> Result<Vec<FileChange>, ClientError> {
        match self.asked(session, OwnerQueryKind::Changes(number)).await? {
            Some(changes) => Ok(changes),
            None => self.shared.ports.local.changes(session, number).await,
        }
    }

    async fn sent(&self, session: &SessionId, message: &MessageId) -> Result<Option<u64>, ClientError> {
        self.shared.ports.local.sent(session, message).await
    }

    async fn agents(&self, session: &SessionId) -> Result<Vec<AgentRow>, ClientError> {
        self.shared.ports.local.agents(session).await
    }
}

#[async_trait]
impl Presence for ClusterBackend {
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError> {
        if let Route::Waits(_) = self.route(session).await? {
            return Ok(unattended(self.info(session).await?));
        }
        match self.asked(session, OwnerQueryKind::Overview).await? {
            Some(overview) => Ok(overview),
            None => self.shared.ports.local.overview(session).await,
        }
    }

    async fn why(&self, session: &SessionId) -> Vec<Wait> {
        if let Ok(Route::Waits(found)) = self.route(session).await {
            let wait = waits_for_place(&found, self.shared.ports.clock.now());
            return wait.into_iter().collect();
        }
        match self.asked(session, OwnerQueryKind::Why).await {
            Ok(Some(waits)) => waits,
            Ok(None) => self.shared.ports.local.why(session).await,
            Err(_) => Vec::new(),
        }
    }

    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>> {
        match self.route(session).await.ok()? {
            Route::Here => self.shared.ports.local.take_back(session, message).await,
            Route::There(_) | Route::Waits(_) => self.post_take_back(session, message).await,
        }
    }

    async fn go_on(&self, session: &SessionId) -> bool {
        match self.route(session).await {
            Ok(Route::Here) => self.shared.ports.local.go_on(session).await,
            Ok(_) => self.post_go_on(session).await,
            Err(_) => false,
        }
    }

    async fn context(&self, session: &SessionId) -> Result<ContextReport, ClientError> {
        match self.asked(session, OwnerQueryKind::Context).await? {
            Some(report) => Ok(report),
            None => self.shared.ports.local.context(session).await,
        }
    }

    async fn delete(&self, session: &SessionId) -> Result<(), ClientError> {
        match self
            .asked::<serde_json::Value>(session, OwnerQueryKind::Delete)
            .await?
        {
            Some(_) => Ok(()),
            None => self.shared.ports.local.delete(session).await,
        }
    }
}
