//! Disk access on threads that may block.

use tokio_util::sync::CancellationToken;
use windlass_core::tool::{ToolError, ToolOutput};

/// Runs work that changes nothing. Returns immediately when cancelled; the work must check `cancel` and stop
/// soon.
pub(crate) async fn look(
    cancel: &CancellationToken,
    work: impl FnOnce() -> Result<ToolOutput, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::Canceled(String::new())),
        result = change(work) => result,
    }
}

/// Runs work that changes something. Always waits for it: a call must not be reported as stopped while it
/// still runs.
pub(crate) async fn change(
    work: impl FnOnce() -> Result<ToolOutput, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ToolError::Canceled(String::new())),
    }
}
