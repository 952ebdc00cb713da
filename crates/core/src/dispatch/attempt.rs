//! One call, run once, or twice if it only reads and failed with a transient error.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::hook::{AdmittedCall, Hooks};
use crate::tool::{AnyTool, Category, Prepared, ToolContext, ToolError, ToolOutput};

/// Delay before the retry.
const PAUSE: Duration = Duration::from_millis(200);

/// A call that was admitted.
pub(super) struct Attempt {
    pub(super) prepared: Prepared,
    /// Tool and arguments of the retry. `None` for calls that are not retried.
    again: Option<(Arc<dyn AnyTool>, String)>,
    /// The call as it was judged, and the hooks that observe it.
    watch: Option<(AdmittedCall, Hooks)>,
    /// True if the call needed approval, and got it.
    confirmed: bool,
}

/// A tool's output, and how it was obtained.
pub(super) struct Finished {
    pub(super) result: Result<ToolOutput, ToolError>,
    pub(super) took: Duration,
    pub(super) retried: bool,
}

impl Attempt {
    /// Creates a call that is not retried.
    pub(super) fn once(prepared: Prepared) -> Self {
        Self {
            prepared,
            again: None,
            watch: None,
            confirmed: false,
        }
    }

    /// TOOL-7: creates a call that is retried after a transient error, if it only reads. A call with effects
    /// may have completed half of them.
    pub(super) fn with_retry(prepared: Prepared, tool: Arc<dyn AnyTool>, input: &str) -> Self {
        let reads = prepared.category == Category::Read;
        Self {
            prepared,
            again: reads.then(|| (tool, input.to_owned())),
            watch: None,
            confirmed: false,
        }
    }

    /// Records that the call needed approval, and got it.
    pub(super) fn confirmed(mut self, confirmed: bool) -> Self {
        self.confirmed = confirmed;
        self
    }

    /// Adds hooks that observe the call.
    pub(super) fn watched(mut self, call: AdmittedCall, hooks: Hooks) -> Self {
        self.watch = Some((call, hooks));
        self
    }

    /// Runs the call with its hooks.
    pub(super) async fn run(mut self, mut cx: ToolContext, clock: Arc<dyn Clock>) -> Finished {
        cx.confirmed = self.confirmed;
        let Some((call, hooks)) = self.watch.take() else {
            return self.tried(cx, clock).await;
        };
        hooks.call_starting(&call, &cx).await;
        let mut finished = if cx.cancel.is_cancelled() {
            // Hooks may take so long that the caller has given up. An abandoned call must not start later.
            Finished {
                result: Err(ToolError::Canceled(String::new())),
                took: Duration::ZERO,
                retried: false,
            }
        } else {
            self.tried(cx.clone(), clock).await
        };
        finished.result = hooks.after_call(&call, &cx, finished.result).await;
        finished
    }

    /// Runs the call, and retries it if necessary. The delay in between ends when the call is stopped.
    async fn tried(self, cx: ToolContext, clock: Arc<dyn Clock>) -> Finished {
        let started = clock.elapsed();
        let subjects = self.prepared.subjects.clone();
        let reasons = self.prepared.reasons.clone();
        let mut retried = false;
        let mut result = self.prepared.run(cx.clone()).await;
        if let (Err(ToolError::Transient(_)), Some((tool, input))) = (&result, self.again) {
            let stopped = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => true,
                () = clock.sleep(PAUSE) => false,
            };
            // What was allowed is this call about these things. If it is about others by now, it was not allowed.
            let same = |call: &Prepared| {
                call.category == Category::Read && call.subjects == subjects && call.reasons == reasons
            };
            let second = tool
                .prepare(&input)
                .ok()
                .filter(same)
                .filter(|call| call.refusal.is_none());
            result = match second {
                _ if stopped => Err(ToolError::Canceled(String::new())),
                None => result,
                Some(call) => {
                    retried = true;
                    call.run(cx).await
                }
            };
        }
        Finished {
            result,
            took: clock.elapsed().saturating_sub(started),
            retried,
        }
    }
}
