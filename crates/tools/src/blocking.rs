//! Work on the disk, off the threads that must not wait.

use tokio_util::sync::CancellationToken;
use windlass_core::tool::{ToolError, ToolOutput};

/// Runs work that changes nothing. Returns at once when it is canceled; the work must look at `cancel` and stop soon.
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

/// Runs work that changes something. Always waits for it: nobody must be told it was stopped while it goes on.
pub(crate) async fn change(
    work: impl FnOnce() -> Result<ToolOutput, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ToolError::Canceled(String::new())),
    }
}
