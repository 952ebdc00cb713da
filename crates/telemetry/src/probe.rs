//! The hook that follows the sessions of a process: notes for the export, lines for the log.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_core::event::Event;
use windlass_core::hook::{
    AdmittedCall, CallHook, Hook, SessionClosing, SessionHook, SessionOpening, TurnAction, TurnEnd, TurnHook,
};
use windlass_core::id::SessionId;
use windlass_core::log::SessionInfo;
use windlass_core::message::Message;
use windlass_core::tool::{ToolContext, ToolError, ToolOutput};

use crate::exporter::Telemetry;

/// Follows one session.
pub struct Probe {
    session: SessionId,
    telemetry: Option<Arc<Telemetry>>,
}

impl Probe {
    /// Follows a session. Without telemetry, only the log gets lines.
    pub fn new(session: SessionId, telemetry: Option<Arc<Telemetry>>) -> Self {
        Self { session, telemetry }
    }
}

impl Hook for Probe {
    fn name(&self) -> &str {
        "telemetry"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }

    fn call(&self) -> Option<&dyn CallHook> {
        tracing::enabled!(tracing::Level::DEBUG).then_some(self as _)
    }

    fn session(&self) -> Option<&dyn SessionHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for Probe {
    async fn before_turn(&self, history: &[Arc<Message>]) -> TurnAction {
        tracing::info!(session = %self.session, messages = history.len(), "turn started");
        TurnAction::default()
    }

    async fn turn_ended(&self, end: &TurnEnd<'_>) -> Vec<Event> {
        match end.outcome.event() {
            Event::Failed { reason, message, .. } => {
                tracing::warn!(session = %self.session, ?reason, error = %message, "turn failed");
            }
            Event::Canceled { .. } => tracing::info!(session = %self.session, "turn canceled"),
            _ => tracing::info!(session = %self.session, "turn ended"),
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.turn_ended(&self.session);
        }
        Vec::new()
    }
}

#[async_trait]
impl CallHook for Probe {
    async fn call_starting(&self, call: &AdmittedCall, cx: &ToolContext) {
        let tool = &call.proposal.tool;
        tracing::debug!(session = %self.session, call = %cx.call_id, tool, "call started");
    }

    async fn after_call(
        &self,
        call: &AdmittedCall,
        cx: &ToolContext,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let tool = &call.proposal.tool;
        let failed = result.as_ref().map_or(true, |output| output.failed);
        tracing::debug!(session = %self.session, call = %cx.call_id, tool, failed, "call ended");
        result
    }
}

#[async_trait]
impl SessionHook for Probe {
    async fn session_started(&self, session: &SessionInfo, opening: SessionOpening) -> Result<(), String> {
        tracing::info!(session = %session.id, ?opening, place = %session.place, "session opened");
        if let Some(telemetry) = &self.telemetry {
            telemetry.opened(&session.id, session.last_seq);
        }
        Ok(())
    }

    async fn session_ended(&self, session: &SessionInfo, _closing: SessionClosing) -> Result<(), String> {
        tracing::info!(session = %session.id, "session closed");
        Ok(())
    }
}
