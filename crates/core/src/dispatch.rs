//! Runs the calls of one iteration: admit, run, settle, in call order.
//!
//! A call is proposed → admitted or refused → run → settled → recorded. Unknown tools, bad arguments,
//! denials, panics and interruptions are results, not branches of the loop. A call is admitted directly
//! before it starts, so what was judged is what runs: calls before it may have changed the files that it
//! names.

mod admit;
mod attempt;
mod cut;
mod settle;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::admit::{Admitted, Candidate, Ended, Fate, admit, validate};
use self::settle::{Running, Settlement};
use crate::clock::Clock;
use crate::event::{Event, EventSink, StepStatus};
use crate::hook::Hooks;
use crate::message::{ToolCall, ToolResult};
use crate::permission::{Approver, Policy};
use crate::run::{Config, Ports};
use crate::text::hidden;
use crate::tool::{CallModel, Category, ExecutionContext, Outputs, ToolSet, raw_arguments};
use crate::turn::{CANCELED_TEXT, DENIED_TEXT, Planned, Settled, SettledEnd, refused};

/// Maximum number of calls that run together.
const MOST_AT_ONCE: usize = 8;

/// Tools, permissions and limits of calls.
#[derive(Clone)]
pub struct CallConfig {
    /// The tools of the turn.
    pub tools: ToolSet,
    /// Rules and mode.
    pub policy: Policy,
    /// Folder, environment and session that calls run in.
    pub execution: Arc<ExecutionContext>,
    /// Rule for overlapping calls.
    pub execution_mode: Execution,
    /// Maximum time of a call whose tool does not name one.
    pub timeout: Duration,
    /// Maximum number of characters of a result that go into the context; `None` for no cap.
    pub max_result_chars: Option<usize>,
    /// True if a read-only call is retried once after a transient error.
    pub retry_transient: bool,
}

impl Default for CallConfig {
    fn default() -> Self {
        Self {
            tools: ToolSet::new(),
            policy: Policy::default(),
            execution: Arc::default(),
            execution_mode: Execution::Auto,
            timeout: Duration::from_secs(120),
            max_result_chars: Some(40_000),
            retry_transient: true,
        }
    }
}

/// Rule for overlapping the calls of one reply. Results keep call order always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// Neighbouring reads run together; a write or admin call runs alone.
    #[default]
    Auto,
    /// Everything runs together, except tools that are exclusive.
    Parallel,
    /// One after the other.
    Sequential,
}

/// The settings and connections that calls need.
pub struct Calls<'a> {
    /// Tools, permissions and limits.
    pub config: &'a CallConfig,
    /// The hooks, in order.
    pub hooks: &'a Hooks,
    /// Asks a person.
    pub approver: &'a Arc<dyn Approver>,
    /// The model of the turn.
    pub model: &'a CallModel,
    /// Stores the whole of a result that is too long.
    pub outputs: Option<&'a Arc<dyn Outputs>>,
    /// Time.
    pub clock: &'a Arc<dyn Clock>,
    /// Receiver of the events.
    pub events: &'a Arc<dyn EventSink>,
    /// Stops the calls.
    pub cancel: &'a CancellationToken,
    /// Holds abandoned calls.
    pub tasks: &'a TaskTracker,
}

impl<'a> Calls<'a> {
    /// The part of a turn's settings and connections that calls need.
    pub fn new(config: &'a Config, ports: &'a Ports, model: &'a CallModel) -> Self {
        Self {
            config: &config.calls,
            hooks: &config.hooks,
            approver: &ports.approver,
            model,
            outputs: ports.outputs.as_ref(),
            clock: &ports.clock,
            events: &ports.events,
            cancel: &ports.cancel,
            tasks: &ports.tasks,
        }
    }
}

/// Runs one call that no model made, like any other call: it can be refused, and has exactly one result.
pub async fn call(calls: &Calls<'_>, call: ToolCall) -> ToolResult {
    let answer = refused(&call, CANCELED_TEXT);
    let planned = Planned { call, refusal: None };
    let settled = dispatch(calls, vec![planned]).await;
    settled.results.into_iter().next().unwrap_or(answer)
}

/// Runs every call: each gets exactly one result.
pub(crate) async fn dispatch(deps: &Calls<'_>, calls: Vec<Planned>) -> Settled {
    let mut results = Vec::with_capacity(calls.len());
    let mut calls = VecDeque::from(calls);
    let mut end = Ending::default();
    while !calls.is_empty() {
        let batch = next_batch(deps, &mut calls, &mut end).await;
        let running: Vec<_> = batch.into_iter().map(|call| start(deps, call)).collect();
        for (call, running) in running {
            let number = u32::try_from(results.len() + 1).unwrap_or(u32::MAX);
            let settlement = record_step(deps, &call, running, number).await;
            end.finished = end.finished.or(settlement.ends_turn);
            results.push(settlement.result);
        }
    }
    let end = match (deps.cancel.is_cancelled(), end.denied, end.finished) {
        (true, _, _) => Some(SettledEnd::Canceled),
        (false, Some(Ended { reason, hint }), _) => Some(SettledEnd::Denied { reason, hint }),
        (false, None, Some(text)) => Some(SettledEnd::Finished(text)),
        (false, None, None) => None,
    };
    Settled {
        results,
        charges: deps.model.take_charges(),
        end,
        now: deps.clock.now(),
    }
}

/// Reason no further call runs.
#[derive(Default)]
struct Ending {
    /// A call was denied, for this reason.
    denied: Option<Ended>,
    /// A call ended the turn with this answer.
    finished: Option<String>,
}

impl Ending {
    /// Returns the result of a call that no longer runs.
    fn text(&self, deps: &Calls<'_>) -> Option<&'static str> {
        if deps.cancel.is_cancelled() || self.denied.is_some() {
            return Some(CANCELED_TEXT);
        }
        let finished = "Not run: the turn ended with the call before this one.";
        self.finished.is_some().then_some(finished)
    }
}

/// Takes the calls that run together next, and admits them.
async fn next_batch(deps: &Calls<'_>, calls: &mut VecDeque<Planned>, end: &mut Ending) -> Vec<Admitted> {
    let mut batch = Vec::new();
    while batch.len() < MOST_AT_ONCE {
        let Some(planned) = calls.front() else { break };
        let candidate = match (end.text(deps), &planned.refusal) {
            (Some(text), _) => Err(Box::new(refused(&planned.call, text))),
            (None, Some(text)) => Err(Box::new(refused(&planned.call, text))),
            (None, None) => validate(deps, &planned.call),
        };
        let shares = candidate
            .as_ref()
            .map_or(true, |candidate| can_share(candidate, deps.config.execution_mode));
        // A call that does not join the batch is validated again when its turn comes.
        if !shares && !batch.is_empty() {
            break;
        }
        let Some(Planned { call, .. }) = calls.pop_front() else {
            break;
        };
        let fate = match candidate {
            Err(result) => Fate::Settled(result),
            Ok(candidate) => admit(deps, &call, candidate).await.unwrap_or_else(|ended| {
                end.denied = Some(ended);
                Fate::Settled(Box::new(refused(&call, DENIED_TEXT)))
            }),
        };
        batch.push(Admitted { call, fate });
        if !shares {
            break;
        }
    }
    batch
}

/// Returns true if a call may run together with its neighbours.
fn can_share(candidate: &Candidate<'_>, mode: Execution) -> bool {
    match mode {
        Execution::Sequential => false,
        _ if candidate.is_exclusive() => false,
        Execution::Parallel => true,
        Execution::Auto => candidate.category() == Category::Read,
    }
}

fn start(deps: &Calls<'_>, admitted: Admitted) -> (ToolCall, Running) {
    let Admitted { call, fate } = admitted;
    let running = match fate {
        Fate::Settled(result) => Running::settled(*result),
        Fate::Run { .. } if deps.cancel.is_cancelled() => Running::settled(refused(&call, CANCELED_TEXT)),
        Fate::Run {
            attempt,
            traits,
            admitted,
        } => Running::spawn(
            deps,
            &call,
            attempt.watched(*admitted, deps.hooks.clone()),
            traits,
        ),
    };
    (call, running)
}

/// Waits for one call and reports it, in the fixed order of step events.
async fn record_step(deps: &Calls<'_>, call: &ToolCall, running: Running, number: u32) -> Settlement {
    let args = raw_arguments(&call.input);
    let title = title(&call.name, &args);
    record(
        deps,
        Event::StepStart {
            call_id: call.id.clone(),
            title: title.clone(),
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
    let unseen = hidden(&settlement.result.content).map(|found| {
        format!("{title}: the model reads text that you do not see ({found}); it may contain instructions of others")
    });
    for message in settlement.warning.clone().into_iter().chain(unseen) {
        record(deps, Event::Warning { message }).await;
    }
    settlement
}

/// Records an event. A call that could not be recorded still gets its result; the loop notices the failed
/// record at its next step.
async fn record(deps: &Calls<'_>, event: Event) {
    let _ = deps.events.record(event).await;
}

/// Returns a short line for people: the tool and its most telling argument.
pub fn title(name: &str, args: &serde_json::Value) -> String {
    const TELLING: [&str; 7] = ["command", "path", "pattern", "url", "message", "question", "task"];
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
