//! Inputs of a session that come from its own environment.

use std::sync::Weak;

use async_trait::async_trait;
use windlass_api::{Client, ClientError, Event, OnBusy, SessionId, SessionInputs, Submission};

use crate::actor::SessionRequest;
use crate::{Inner, LiveSession, Service};

/// Inputs for a session of the service.
pub(crate) struct OwnInputs(pub(crate) Weak<Inner>, pub(crate) SessionId);

impl OwnInputs {
    /// Returns the session if it is open. One that was left must not be opened again by what its environment heard.
    fn live(&self) -> Option<(Service, LiveSession)> {
        let service = Service::of(&self.0.upgrade()?);
        service.known(&self.1).map(|live| (service, live))
    }
}

#[async_trait]
impl SessionInputs for OwnInputs {
    async fn submit(&self, text: &str) -> Result<(), ClientError> {
        let (service, _) = self.live().ok_or(ClientError::Closed(self.1.clone()))?;
        let mut submission = Submission::text(self.1.clone(), text);
        submission.on_busy = OnBusy::Queue;
        service.submit(submission).await.map(drop)
    }

    fn tell(&self, notice: String) {
        if let Some((_, live)) = self.live() {
            live.sink.mention(Event::Warning { message: notice });
        }
    }

    fn keep_open(&self) -> bool {
        // A full inbox means that the session is not idle.
        let sent = |(_, live): (_, LiveSession)| drop(live.requests.try_send(SessionRequest::Listen));
        self.live().map(sent).is_some()
    }
}
