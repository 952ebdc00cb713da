//! Records what calls change.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use windlass_core::checkpoint::FileChange;
use windlass_core::hook::{AdmittedCall, CallHook, Hook};
use windlass_core::permission::{Proposal, Subject};
use windlass_core::tool::{Category, ToolContext, ToolError, ToolOutput};

use super::Tracker;
use super::describe::CallEnd;
use super::files::{Files, Scope};
use super::node::Bytes;

/// Number of characters shown of a command.
const CALL: usize = 80;

impl Hook for Tracker {
    fn name(&self) -> &str {
        "checkpoints"
    }

    fn call(&self) -> Option<&dyn CallHook> {
        Some(self)
    }
}

#[async_trait]
impl CallHook for Tracker {
    async fn call_starting(&self, call: &AdmittedCall, cx: &ToolContext) {
        let proposal = &call.proposal;
        if proposal.category == Category::Read {
            return;
        }
        let files = Arc::clone(&self.0);
        let (tool, scope) = (proposal.tool.clone(), scope(files.workspace.root(), proposal));
        let begun = files.blocking(move |files| files.begin(&tool, &scope)).await;
        if cx.cancel.is_cancelled() {
            // Scanning may take so long that nobody waits any more. The call is not started then, so nothing changed.
            if begun.is_ok() {
                let tool = proposal.tool.clone();
                let _ = files
                    .blocking(move |files| files.end(&tool, Some(Vec::new())))
                    .await;
            }
            return;
        }
        files.notes().calls.insert(cx.call_id.clone(), begun);
    }

    async fn after_call(
        &self,
        call: &AdmittedCall,
        cx: &ToolContext,
        mut result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let files = &self.0;
        let begun = files.notes().calls.remove(&cx.call_id);
        let tool = call.proposal.tool.clone();
        let kept = match begun {
            None => return result,
            Some(Ok(paths)) => {
                let outside = outside(files.workspace.root(), &call.proposal);
                let end = move |files: &Files| {
                    let end = files.end(&tool, paths);
                    outside.map_or(Ok(()), |why| files.leave_out(&tool, why)).and(end)
                };
                files.blocking(end).await
            }
            Some(Err(error)) => Err(error),
        };
        // The work counts more than the way back, but the user must know.
        let CallEnd {
            warning,
            changed,
            touched,
        } = kept.unwrap_or_else(|error| CallEnd {
            warning: Some(format!(
                "what `{}` changed cannot be undone: {error}",
                call.proposal.tool
            )),
            changed: Vec::new(),
            touched: None,
        });
        files.share_soon();
        if let Some(observer) = files.observer.get() {
            observer.files_changed(touched);
        }
        if let (Ok(output), false) = (&mut result, changed.is_empty()) {
            add_changes(output, &changed);
        }
        if let Some(warning) = warning {
            match &mut result {
                Ok(output) => output.warning = Some(warning),
                Err(_) => files.notes().notices.push(warning),
            }
        }
        result
    }
}

/// Adds what a command changed to the details of its result, for people.
fn add_changes(output: &mut ToolOutput, changed: &[FileChange]) {
    let details = output.details.get_or_insert_with(|| json!({}));
    if let Some(details) = details.as_object_mut() {
        details.insert("changed".to_owned(), json!(changed));
    }
}

/// Returns what a call can change outside of the folder, where nothing is restored.
fn outside(root: &Path, proposal: &Proposal) -> Option<String> {
    let is_outside =
        |subject: &&Subject| matches!(subject, Subject::Path(path) if !root.join(path).starts_with(root));
    let paths: Vec<&str> = proposal
        .subjects
        .iter()
        .filter(is_outside)
        .map(Subject::text)
        .collect();
    if !paths.is_empty() {
        return Some(format!("outside of the folder: {}", paths.join(", ")));
    }
    let command = proposal
        .arguments
        .get("command")
        .and_then(serde_json::Value::as_str);
    let call = command
        .and_then(|command| command.trim().lines().next())
        .unwrap_or(&proposal.tool);
    let call: String = call.chars().take(CALL).collect();
    let why = || format!("files outside of the folder, if `{call}` changed any");
    proposal.escalation.outside.then(why)
}

/// The files that a call can change: those it names when it names only files, and otherwise any.
fn scope(root: &Path, proposal: &Proposal) -> Scope {
    let path = |subject: &Subject| match subject {
        Subject::Path(path) => {
            let whole = root.join(path);
            // A file outside cannot be restored. What else the call changes is found by a scan.
            let inside = whole.strip_prefix(root).ok()?;
            let inside = if inside.as_os_str().is_empty() {
                Path::new(".")
            } else {
                inside
            };
            Some(Bytes::of(inside))
        }
        _ => None,
    };
    let paths: Option<Vec<Bytes>> = proposal.subjects.iter().map(path).collect();
    match paths {
        Some(paths) if !paths.is_empty() => Scope::Paths(paths),
        _ => Scope::Everything,
    }
}
