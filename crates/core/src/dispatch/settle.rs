//! Runs one call to its result, whatever happens to it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use super::Calls;
use super::attempt::{Attempt, Finished};
use super::cut::cut;
use crate::event::Event;
use crate::json::bounded;
use crate::message::{ToolCall, ToolResult};
use crate::tool::{Kept, Person, Progress, ToolContext, ToolError, ToolOutput, ToolTraits};
use crate::turn::CANCELED_TEXT;

/// Time a stopped call has to return its output so far. The session must be idle within 300 ms.
const GRACE: Duration = Duration::from_millis(200);

/// A running call.
pub(super) enum Running {
    /// It never ran.
    Settled(ToolResult),
    /// It runs in its own task, so that a panic or a hang stays there.
    Task {
        handle: JoinHandle<Finished>,
        cancel: CancellationToken,
        timeout: Duration,
        started: Duration,
    },
}

/// A call that has its result.
pub(super) struct Settlement {
    pub(super) result: ToolResult,
    pub(super) duration: Duration,
    pub(super) ends_turn: Option<String>,
    /// Location of the whole output, if the tool stored it.
    pub(super) kept: Option<Kept>,
    /// Notice for the user.
    pub(super) warning: Option<String>,
}

impl Settlement {
    fn new(result: ToolResult, duration: Duration) -> Self {
        Self {
            result,
            duration,
            ends_turn: None,
            kept: None,
            warning: None,
        }
    }
}

/// Reason waiting ended.
enum End {
    Done(Box<Result<Finished, JoinError>>),
    Canceled,
    TimedOut,
}

impl Running {
    pub(super) fn settled(result: ToolResult) -> Self {
        Self::Settled(result)
    }

    pub(super) fn spawn(deps: &Calls<'_>, call: &ToolCall, attempt: Attempt, traits: ToolTraits) -> Self {
        let cancel = deps.cancel.child_token();
        let (events, call_id) = (Arc::clone(deps.events), call.id.clone());
        let progress = Progress::new(move |piece| {
            events.live(Event::ToolOutput {
                call_id: call_id.clone(),
                text: piece.to_owned(),
            });
        });
        let cx = ToolContext {
            call_id: call.id.clone(),
            cancel: cancel.clone(),
            execution: Arc::clone(&deps.config.execution),
            progress,
            person: Person::new(
                call.id.clone(),
                Arc::clone(deps.events),
                Arc::clone(deps.approver),
            ),
            model: deps.model.clone(),
            confirmed: false,
            places: Arc::default(),
        };
        let clock = Arc::clone(deps.clock);
        let started = clock.elapsed();
        let handle = deps.tasks.spawn(attempt.run(cx, clock));
        Self::Task {
            handle,
            cancel,
            timeout: traits.timeout.unwrap_or(deps.config.timeout),
            started,
        }
    }

    /// Waits for the result. A canceled or timed-out call is stopped and gets a moment to return its output
    /// so far. After that it is abandoned.
    pub(super) async fn wait(self, deps: &Calls<'_>, call: &ToolCall) -> Settlement {
        let settlement = match self {
            Self::Settled(result) => return Settlement::new(result, Duration::ZERO),
            Self::Task {
                handle,
                cancel,
                timeout,
                started,
            } => outcome(deps, call, handle, (cancel, timeout, started)).await,
        };
        cut(deps, call, settlement).await
    }
}

async fn outcome(
    deps: &Calls<'_>,
    call: &ToolCall,
    mut handle: JoinHandle<Finished>,
    (cancel, timeout, started): (CancellationToken, Duration, Duration),
) -> Settlement {
    let end = tokio::select! {
        biased;
        () = deps.cancel.cancelled() => End::Canceled,
        done = &mut handle => End::Done(Box::new(done)),
        () = deps.clock.sleep(timeout) => End::TimedOut,
    };
    cancel.cancel();
    let (canceled, lead) = match end {
        End::Done(done) => return finish(call, *done),
        End::Canceled => (true, CANCELED_TEXT.to_owned()),
        End::TimedOut => (false, format!("Error: timed out after {} s", timeout.as_secs())),
    };
    let late = tokio::select! {
        done = &mut handle => done.ok(),
        () = deps.clock.sleep(GRACE) => None,
    };
    // A call that had finished when the stop came has a real result, which is worth more than the notice.
    let output = match late {
        Some(done) if canceled && done.result.is_ok() => return finish(call, Ok(done)),
        Some(done) => done
            .result
            .map_or_else(|error| error.to_string(), |output| output.content),
        None => String::new(),
    };
    let output = output.trim();
    let text = if output.is_empty() || output == lead {
        lead
    } else {
        format!("{lead}\nOutput so far:\n{output}")
    };
    let result = result_of(call, text, None, Failed::Yes);
    Settlement::new(result, deps.clock.elapsed().saturating_sub(started))
}

fn finish(call: &ToolCall, done: Result<Finished, JoinError>) -> Settlement {
    match done {
        Ok(Finished {
            result: Ok(output),
            took,
            retried,
        }) => settle_ok(call, output, took, retried),
        Ok(Finished {
            result: Err(error),
            took,
            retried,
        }) => {
            let details = json!({ "error_kind": error.kind() });
            let text = match &error {
                ToolError::Transient(text) => format!("Error (may work when tried again): {text}"),
                ToolError::Permanent(text) => format!("Error: {text}"),
                ToolError::Invalid(text) | ToolError::Canceled(text) => text.clone(),
            };
            let details = told(Some(details), retried);
            Settlement::new(result_of(call, text, details, Failed::Yes), took)
        }
        Err(panic) => {
            let text = format!(
                "Error: the tool `{}` failed inside ({})",
                call.name,
                panic_text(panic)
            );
            Settlement::new(result_of(call, text, None, Failed::Yes), Duration::ZERO)
        }
    }
}

fn settle_ok(call: &ToolCall, output: ToolOutput, took: Duration, retried: bool) -> Settlement {
    let failed = if output.failed { Failed::Yes } else { Failed::No };
    let details = told(output.details.map(bounded), retried);
    let result = ToolResult {
        images: output.images,
        ..result_of(call, output.content, details, failed)
    };
    Settlement {
        ends_turn: output.ends_turn,
        warning: output.warning,
        kept: output.kept,
        ..Settlement::new(result, took)
    }
}

/// Adds a note about the retry to the details for people.
fn told(details: Option<Value>, retried: bool) -> Option<Value> {
    if !retried {
        return details;
    }
    let mut details = details.unwrap_or_else(|| json!({}));
    if let Value::Object(map) = &mut details {
        map.insert("retried".to_owned(), true.into());
    }
    Some(details)
}

fn panic_text(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "it was aborted".to_owned();
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic".to_owned())
}

enum Failed {
    Yes,
    No,
}

fn result_of(call: &ToolCall, content: String, metadata: Option<Value>, failed: Failed) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content,
        metadata,
        is_error: matches!(failed, Failed::Yes),
        images: Vec::new(),
    }
}
