//! Runs one call to its result, whatever happens to it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::event::Event;
use crate::message::{ToolCall, ToolResult};
use crate::run::Deps;
use crate::tool::{Person, Prepared, Progress, ToolContext, ToolError, ToolOutput, ToolTraits};
use crate::turn::CANCELED_TEXT;

/// How long a stopped call may take to hand over what it has. Idle again must follow within 300 ms.
const GRACE: Duration = Duration::from_millis(200);

/// A call on its way.
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

/// A tool's answer and how long it took.
type Finished = (Result<ToolOutput, ToolError>, Duration);

/// A call that has its result.
pub(super) struct Settlement {
    pub(super) result: ToolResult,
    pub(super) duration: Duration,
    pub(super) ends_turn: Option<String>,
}

/// Why waiting ended.
enum End {
    Done(Box<Result<Finished, tokio::task::JoinError>>),
    Canceled,
    TimedOut,
}

impl Running {
    pub(super) fn settled(result: ToolResult) -> Self {
        Self::Settled(result)
    }

    pub(super) fn spawn(deps: &Deps<'_>, call: &ToolCall, prepared: Prepared, traits: ToolTraits) -> Self {
        let cancel = deps.cancel.child_token();
        let (events, call_id) = (Arc::clone(&deps.events), call.id.clone());
        let progress = Progress::new(move |piece| {
            events.live(Event::ToolOutput {
                call_id: call_id.clone(),
                text: piece.to_owned(),
            });
        });
        let cx = ToolContext {
            call_id: call.id.clone(),
            cancel: cancel.clone(),
            execution: Arc::clone(&deps.dispatch.execution),
            progress,
            person: Person::new(
                call.id.clone(),
                Arc::clone(&deps.events),
                Arc::clone(&deps.dispatch.approver),
            ),
        };
        let clock = Arc::clone(&deps.clock);
        let started = clock.elapsed();
        let handle = deps.dispatch.tasks.spawn(async move {
            let result = prepared.run(cx).await;
            (result, clock.elapsed().saturating_sub(started))
        });
        Self::Task {
            handle,
            cancel,
            timeout: traits.timeout.unwrap_or(deps.dispatch.timeout),
            started,
        }
    }

    /// Waits for the result; a canceled or timed-out call is stopped and given a moment to hand over
    /// what it has. After that it is left behind to die.
    pub(super) async fn wait(self, deps: &Deps<'_>, call: &ToolCall) -> Settlement {
        let (mut handle, cancel, timeout, started) = match self {
            Self::Settled(result) => {
                return Settlement {
                    result,
                    duration: Duration::ZERO,
                    ends_turn: None,
                };
            }
            Self::Task {
                handle,
                cancel,
                timeout,
                started,
            } => (handle, cancel, timeout, started),
        };
        let end = tokio::select! {
            biased;
            () = deps.cancel.cancelled() => End::Canceled,
            done = &mut handle => End::Done(Box::new(done)),
            () = deps.clock.sleep(timeout) => End::TimedOut,
        };
        cancel.cancel();
        let (canceled, lead) = match end {
            End::Done(done) => return finish(deps, call, *done),
            End::Canceled => (true, CANCELED_TEXT.to_owned()),
            End::TimedOut => (false, format!("Error: timed out after {} s", timeout.as_secs())),
        };
        let late = tokio::select! {
            done = &mut handle => done.ok(),
            () = deps.clock.sleep(GRACE) => None,
        };
        // A call that was done when the stop came has a true result; it is worth more than the notice.
        let output = match late {
            Some((Ok(output), took)) if canceled => return settle_ok(deps, call, output, took),
            Some((Ok(output), _)) => output.content,
            Some((Err(error), _)) => error.to_string(),
            None => String::new(),
        };
        let output = output.trim();
        let text = if output.is_empty() || output == lead {
            lead
        } else {
            format!("{lead}\nOutput so far:\n{output}")
        };
        let result = result_of(deps, call, text, None, Failed::Yes);
        Settlement {
            result,
            duration: deps.clock.elapsed().saturating_sub(started),
            ends_turn: None,
        }
    }
}

fn finish(deps: &Deps<'_>, call: &ToolCall, done: Result<Finished, tokio::task::JoinError>) -> Settlement {
    match done {
        Ok((Ok(output), took)) => settle_ok(deps, call, output, took),
        Ok((Err(error), took)) => {
            let details = serde_json::json!({ "error_kind": error.kind() });
            let text = match &error {
                ToolError::Transient(text) => format!("Error (may work when tried again): {text}"),
                ToolError::Permanent(text) => format!("Error: {text}"),
                ToolError::Invalid(text) | ToolError::Canceled(text) => text.clone(),
            };
            let result = result_of(deps, call, text, Some(details), Failed::Yes);
            Settlement {
                result,
                duration: took,
                ends_turn: None,
            }
        }
        Err(panic) => {
            let text = format!(
                "Error: the tool `{}` failed inside ({})",
                call.name,
                panic_text(panic)
            );
            let result = result_of(deps, call, text, None, Failed::Yes);
            Settlement {
                result,
                duration: Duration::ZERO,
                ends_turn: None,
            }
        }
    }
}

fn settle_ok(deps: &Deps<'_>, call: &ToolCall, output: ToolOutput, took: Duration) -> Settlement {
    let failed = if output.failed { Failed::Yes } else { Failed::No };
    let result = result_of(deps, call, output.content, output.details, failed);
    Settlement {
        result,
        duration: took,
        ends_turn: output.ends_turn,
    }
}

fn panic_text(error: tokio::task::JoinError) -> String {
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

fn result_of(
    deps: &Deps<'_>,
    call: &ToolCall,
    content: String,
    metadata: Option<serde_json::Value>,
    failed: Failed,
) -> ToolResult {
    let content = match deps.dispatch.max_result_chars {
        Some(most) => cap(content, most, &call.name),
        None => content,
    };
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content,
        metadata,
        is_error: matches!(failed, Failed::Yes),
    }
}

/// Cuts a long result between characters and says so.
pub(super) fn cap(content: String, most: usize, tool: &str) -> String {
    // A text is never longer in characters than in bytes, so the common case needs no count.
    if content.len() <= most {
        return content;
    }
    let total = content.chars().count();
    if total <= most {
        return content;
    }
    let shown: String = content.chars().take(most).collect();
    format!(
        "{shown}\n\n[OUTPUT TRUNCATED: Showing {} of {} characters from {tool}]",
        grouped(most),
        grouped(total)
    )
}

/// A number with thousands separators.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
