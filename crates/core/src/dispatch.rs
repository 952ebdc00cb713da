//! Deals with the calls of one iteration: admit, run, settle, in call order.
//!
//! A call is proposed → admitted or refused → run → settled → recorded. Unknown tools, bad arguments,
//! denials, panics and interruptions are results, not branches of the loop.

mod admit;
mod attempt;
mod cut;
mod schedule;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::admit::{Admitted, Fate, admit};
use self::schedule::batches;
use self::settle::{Running, Settlement};
use crate::clock::Clock;
use crate::event::{Event, EventSink, StepStatus};
use crate::message::{ToolCall, ToolResult};
use crate::permission::{Approver, PermissionHook, Policy};
use crate::tool::{ExecutionContext, Outputs, ToolSet, raw_arguments};
use crate::turn::{CANCELED_TEXT, Planned, Settled, SettledEnd, refused};

/// How calls are admitted and run.
pub struct Dispatch<'a> {
    /// The tools of the turn.
    pub tools: &'a ToolSet,
    /// The embedder's say, before the built-in rules.
    pub hook: Option<&'a dyn PermissionHook>,
    /// Rules and mode.
    pub policy: &'a Policy,
    /// Asks a person.
    pub approver: Arc<dyn Approver>,
    /// Where calls run.
    pub execution: Arc<ExecutionContext>,
    /// Which calls may overlap.
    pub execution_mode: Execution,
    /// How long a call may take when its tool does not say.
    pub timeout: Duration,
    /// The most characters of a result that go into the context; `None` for no cap.
    pub max_result_chars: Option<usize>,
    /// Keeps the whole of a result that is longer; `None` when the rest is lost.
    pub outputs: Option<Arc<dyn Outputs>>,
    /// Whether a call that only reads is tried once more after a transient error.
    pub retry_transient: bool,
    /// Keeps calls that were given up on, so that a program can wait for them to die before it exits.
    pub tasks: TaskTracker,
}

/// Which calls of one reply may overlap. Results keep call order always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// Neighbouring reads run together; a write or admin call runs alone.
    #[default]
    Auto,
    /// Everything runs together, but for tools that say they are exclusive.
    Parallel,
    /// One after the other.
    Sequential,
}

/// What calls need beside the rules: time, a place for their events, and an end.
pub struct Calling<'a> {
    /// How they are admitted and run.
    pub dispatch: &'a Dispatch<'a>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Stops them.
    pub cancel: CancellationToken,
}

/// Deals with one call that no model made, as with any other: it can be refused, and has exactly one result.
pub async fn call(calling: &Calling<'_>, call: ToolCall) -> ToolResult {
    let answer = refused(&call, CANCELED_TEXT);
    let planned = Planned { call, refusal: None };
    let settled = dispatch(calling, vec![planned]).await;
    settled.results.into_iter().next().unwrap_or(answer)
}

/// Deals with every call: each gets exactly one result.
pub(crate) async fn dispatch(deps: &Calling<'_>, calls: Vec<Planned>) -> Settled {
    let (mut admitted, denied) = admit(deps, calls).await;
    let mut results = Vec::with_capacity(admitted.len());
    let mut finished = None;
    for batch in batches(&mut admitted, deps.dispatch.execution_mode) {
        let stop = deps.cancel.is_cancelled() || finished.is_some();
        let running: Vec<_> = batch.into_iter().map(|call| start(deps, call, stop)).collect();
        for (call, running) in running {
            let number = u32::try_from(results.len() + 1).unwrap_or(u32::MAX);
            let settlement = record_step(deps, &call, running, number).await;
            finished = finished.or(settlement.ends_turn);
            results.push(settlement.result);
        }
    }
    let end = match (deps.cancel.is_cancelled(), denied, finished) {
        (true, _, _) => Some(SettledEnd::Canceled),
        (false, Some(reason), _) => Some(SettledEnd::Denied(reason)),
        (false, None, Some(text)) => Some(SettledEnd::Finished(text)),
        (false, None, None) => None,
    };
    Settled {
        results,
        end,
        now: deps.clock.now(),
    }
}

fn start(deps: &Calling<'_>, admitted: Admitted, stop: bool) -> (ToolCall, Running) {
    let Admitted { call, fate } = admitted;
    let running = match fate {
        Fate::Settled(result) => Running::settled(result),
        Fate::Run { .. } if stop => Running::settled(refused(&call, stop_text(deps))),
        Fate::Run { attempt, traits } => Running::spawn(deps, &call, attempt, traits),
    };
    (call, running)
}

fn stop_text(deps: &Calling<'_>) -> &'static str {
    if deps.cancel.is_cancelled() {
        CANCELED_TEXT
    } else {
        "Not run: the turn ended with the call before this one."
    }
}

/// Waits for one call and tells about it, in the fixed order of step events.
async fn record_step(deps: &Calling<'_>, call: &ToolCall, running: Running, number: u32) -> Settlement {
    let args = raw_arguments(&call.input);
    let title = title(&call.name, &args);
    record(
        deps,
        Event::StepStart {
            call_id: call.id.clone(),
            title,
            number,
        },
    )
    .await;
    record(
        deps,
        Event::ToolCall {
            call_id: call.id.clone(),
            name: call.name.clone(),
            args,
        },
    )
    .await;
    let settlement = running.wait(deps, call).await;
    let ToolResult {
        content,
        is_error,
        metadata,
        ..
    } = &settlement.result;
    let is_error = *is_error;
    let result = Event::ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: content.clone(),
        is_error,
        details: metadata.clone(),
    };
    record(deps, result).await;
    let status = if is_error {
        StepStatus::Error
    } else {
        StepStatus::Completed
    };
    let duration_ms = u64::try_from(settlement.duration.as_millis()).unwrap_or(u64::MAX);
    record(
        deps,
        Event::StepComplete {
            call_id: call.id.clone(),
            status,
            duration_ms,
        },
    )
    .await;
    if let Some(message) = settlement.warning.clone() {
        record(deps, Event::Warning { message }).await;
    }
    settlement
}

/// A call that could not be recorded still gets its result; the loop finds the broken record at its next step.
async fn record(deps: &Calling<'_>, event: Event) {
    let _ = deps.events.record(event).await;
}

/// A short line for people: the tool and the argument that says most.
pub fn title(name: &str, args: &serde_json::Value) -> String {
    const TELLING: [&str; 6] = ["command", "path", "pattern", "url", "message", "question"];
    let telling = TELLING
        .iter()
        .find_map(|key| args.get(key).and_then(serde_json::Value::as_str));
    match telling {
        Some(text) => {
            let line = text.lines().next().unwrap_or_default();
            let short: String = line.chars().take(80).collect();
            let more = if short.len() < text.len() { "…" } else { "" };
            format!("{name} {short}{more}")
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "dispatch/result_tests.rs"]
mod result_tests;
