//! Records the approvals and the effects of a session.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use windlass_core::hook::{AdmittedCall, CallHook, Hook};
use windlass_core::id::{CallId, SessionId};
use windlass_core::log::{AuditRecord, LogError, UserName};
use windlass_core::permission::{Approver, Denial, Grant, Proposal, Question};
use windlass_core::tool::{Category, ToolContext, ToolError, ToolOutput};

use crate::audit::{Auditor, hex};

/// Maximum number of bytes of a command in a row; the hash covers all of it.
const LONGEST: usize = 8 * 1024;

/// A session whose approvals and effects are recorded.
#[derive(Clone)]
pub struct AuditedSession {
    /// Adds the rows.
    pub auditor: Auditor,
    /// Owner of the session.
    pub user: UserName,
    /// The session.
    pub session: SessionId,
}

impl AuditedSession {
    async fn record(&self, action: &str, detail: Map<String, Value>) -> Result<(), LogError> {
        let record = AuditRecord {
            user: self.user.clone(),
            front_end: "session".to_owned(),
            session: Some(self.session.clone()),
            action: action.to_owned(),
            detail,
            ..AuditRecord::default()
        };
        self.auditor.record(record).await
    }
}

/// Describes a call: its command or paths, whole or with a hash, and the access that it has.
fn described(proposal: &Proposal) -> Map<String, Value> {
    let mut detail = Map::new();
    let mut add = |name: &str, value: Value| drop(detail.insert(name.to_owned(), value));
    add("call", json!(proposal.call_id));
    add("tool", json!(proposal.tool));
    add("category", json!(proposal.category));
    let access: Vec<&str> = proposal.escalation.words().collect();
    if !access.is_empty() {
        add("access", json!(access));
    }
    add("folder", json!(proposal.cwd));
    match proposal.arguments.get("command").and_then(Value::as_str) {
        Some(command) => {
            let is_long = command.len() > LONGEST;
            let shown = command.get(..LONGEST).filter(|_| is_long);
            add(
                "command",
                json!(shown.unwrap_or(if is_long { "" } else { command })),
            );
            if is_long {
                add("command_sha256", json!(hex(command.as_bytes())));
            }
        }
        None => {
            let subjects = proposal.parts().map(|subject| subject.text()).take(100);
            add("subjects", json!(subjects.collect::<Vec<_>>()));
            let arguments = proposal.arguments.to_string();
            add("arguments_sha256", json!(hex(arguments.as_bytes())));
        }
    }
    if let Some(preview) = &proposal.preview {
        add("preview_sha256", json!(hex(preview.as_bytes())));
    }
    detail
}

/// Records every call that can have an effect, before it begins and when it has ended.
pub struct AuditHook(pub AuditedSession);

impl Hook for AuditHook {
    fn name(&self) -> &str {
        "audit"
    }

    fn call(&self) -> Option<&dyn CallHook> {
        Some(self)
    }
}

#[async_trait]
impl CallHook for AuditHook {
    async fn call_starting(&self, call: &AdmittedCall, cx: &ToolContext) {
        if call.proposal.category == Category::Read {
            return;
        }
        let mut detail = described(&call.proposal);
        detail.insert("confirmed".to_owned(), json!(call.was_confirmed));
        if self.0.record("call_started", detail).await.is_err() {
            // No effect without a row: a call that is canceled now does not start.
            cx.cancel.cancel();
        }
    }

    async fn after_call(
        &self,
        call: &AdmittedCall,
        _: &ToolContext,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        if call.proposal.category == Category::Read {
            return result;
        }
        let (outcome, exit_code) = match &result {
            Ok(output) => {
                let details = output.details.as_ref();
                let code = details.and_then(|details| details.get("exit_code")).cloned();
                (if output.failed { "failed" } else { "done" }, code)
            }
            Err(_) => ("error", None),
        };
        let mut detail = Map::new();
        detail.insert("call".to_owned(), json!(call.proposal.call_id));
        detail.insert("outcome".to_owned(), json!(outcome));
        if let Some(code) = exit_code {
            detail.insert("exit_code".to_owned(), code);
        }
        match self.0.record("call_ended", detail).await {
            Ok(()) => result,
            Err(error) => Err(ToolError::Permanent(format!(
                "the call ended, and this could not be written to the audit log: {error}"
            ))),
        }
    }
}

/// Records every permission request before it is asked, and its answer before it counts.
pub struct AuditedApprover {
    inner: Arc<dyn Approver>,
    session: AuditedSession,
}

impl AuditedApprover {
    /// Records the requests that an approver answers.
    pub fn new(inner: Arc<dyn Approver>, session: AuditedSession) -> Self {
        Self { inner, session }
    }
}

#[async_trait]
impl Approver for AuditedApprover {
    fn granted(&self, proposal: &Proposal) -> bool {
        self.inner.granted(proposal)
    }

    fn session_grants(&self) -> Vec<Grant> {
        self.inner.session_grants()
    }

    async fn approve(&self, proposal: &Proposal) -> Result<(), Denial> {
        let unwritten = |error: LogError| {
            let text = format!("this cannot be approved: the audit log cannot be written: {error}");
            Denial {
                reason: Some(text),
                feedback: None,
            }
        };
        let mut detail = described(proposal);
        detail.insert("reasons".to_owned(), json!(proposal.reasons));
        self.session
            .record("approval_asked", detail)
            .await
            .map_err(unwritten)?;
        let answer = self.inner.approve(proposal).await;
        let mut detail = Map::new();
        detail.insert("call".to_owned(), json!(proposal.call_id));
        detail.insert("allowed".to_owned(), json!(answer.is_ok()));
        self.session
            .record("approval_answered", detail)
            .await
            .map_err(unwritten)?;
        answer
    }

    async fn answer(&self, call: &CallId, question: &Question) -> Option<String> {
        self.inner.answer(call, question).await
    }
}
