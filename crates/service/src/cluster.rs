//! DIST-1: the sessions of this process, as a cluster of servers controls them.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use windlass_api::{ChildQuestion, ClientError, LocalSessions, SessionId, UserReply, WaitOn};
use windlass_core::hook::Hook;

use crate::Service;
use crate::actor::SessionRequest;

/// Time for a session to end that was let go. Its turn is canceled, and its last write may wait for the store.
const CLOSING: Duration = Duration::from_secs(25);

#[async_trait]
impl LocalSessions for Service {
    fn open_here(&self) -> Vec<(SessionId, bool)> {
        let live: Vec<_> = self
            .lock()
            .iter()
            .map(|(id, live)| (id.clone(), live.clone()))
            .collect();
        let live = live.into_iter().filter(|(_, live)| !live.requests.is_closed());
        live.map(|(id, live)| {
            let runs = live.sink.why().last().is_some_and(|wait| wait.on == WaitOn::Tool);
            (id, runs)
        })
        .collect()
    }

    fn is_open(&self, session: &SessionId) -> bool {
        self.known(session).is_some()
    }

    async fn take_over(&self, session: &SessionId) -> Result<(), ClientError> {
        self.open(session).await.map(drop)
    }

    async fn let_go(&self, session: &SessionId, why: &str) {
        let Some(live) = self.known(session) else {
            return;
        };
        live.sink.give_up(why);
        let _ = live.requests.try_send(SessionRequest::Close);
        live.handle.stop();
        tokio::select! {
            () = live.requests.closed() => {}
            () = self.inner.clock.sleep(CLOSING) => {}
        }
        if let Some(mut env) = live.handle.parked() {
            env.close().await;
        }
        self.inner.factory.release(session).await;
    }

    async fn child_done(&self, session: &SessionId, child: &SessionId) -> Result<bool, ClientError> {
        self.hear_of_end(session, child).await
    }

    async fn child_asks(
        &self,
        session: &SessionId,
        question: ChildQuestion,
        withdrawn: BoxFuture<'_, ()>,
    ) -> Result<Option<UserReply>, ClientError> {
        self.show_question(session, question, withdrawn).await
    }
}

impl Service {
    /// Sets a hook that takes part in every turn of this process. Only the first one counts.
    pub fn set_guard(&self, guard: std::sync::Arc<dyn Hook>) {
        let _ = self.inner.guard.set(guard);
    }
}
