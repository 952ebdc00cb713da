//! Decides about every call, in order, before anything runs.

use std::sync::Arc;

use super::attempt::Attempt;
use super::{Calling, record};
use crate::event::{Event, Waiting};
use crate::message::{ToolCall, ToolResult};
use crate::permission::{Decision, Denial, Proposal};
use crate::tool::ToolTraits;
use crate::turn::{CANCELED_TEXT, Planned, refused};

/// A call and what becomes of it.
pub(super) struct Admitted {
    pub(super) call: ToolCall,
    pub(super) fate: Fate,
}

/// What becomes of a call.
pub(super) enum Fate {
    /// It runs.
    Run { attempt: Attempt, traits: ToolTraits },
    /// It has its result already.
    Settled(ToolResult),
}

/// Admits or refuses every call. The second value says why the turn must end after these calls.
pub(super) async fn admit(deps: &Calling<'_>, calls: Vec<Planned>) -> (Vec<Admitted>, Option<String>) {
    let mut admitted = Vec::with_capacity(calls.len());
    let mut denied = None;
    for Planned { call, refusal } in calls {
        let fate = match refusal {
            _ if denied.is_some() || deps.cancel.is_cancelled() => {
                Fate::Settled(refused(&call, CANCELED_TEXT))
            }
            Some(text) => Fate::Settled(refused(&call, &text)),
            None => match propose(deps, &call).await {
                Ok(fate) => fate,
                Err(reason) => {
                    denied = Some(reason);
                    Fate::Settled(refused(&call, "Permission denied"))
                }
            },
        };
        admitted.push(Admitted { call, fate });
    }
    (admitted, denied)
}

/// Validates one call and asks for permission. `Err` ends the turn and says why.
async fn propose(deps: &Calling<'_>, call: &ToolCall) -> Result<Fate, String> {
    let Some(tool) = deps.dispatch.tools.get(&call.name) else {
        return Ok(Fate::Settled(refused(
            call,
            &format!("Error: Unknown tool '{}'", call.name),
        )));
    };
    let traits = tool.traits();
    let prepared = match Arc::clone(tool).prepare(&call.input) {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Fate::Settled(refused(call, &error.to_string()))),
    };
    let mut proposal = prepared.proposal(&call.id, &call.name, &deps.dispatch.execution.cwd);
    proposal.definition = tool.definition();
    let permitted = match decided(deps, &proposal) {
        Some(decided) => decided,
        None => {
            proposal.preview = prepared.preview(&deps.dispatch.execution);
            ask(deps, proposal).await
        }
    };
    match permitted {
        Ok(()) => {
            let attempt = if deps.dispatch.retry_transient {
                Attempt::with_retry(prepared, Arc::clone(tool), &call.input)
            } else {
                Attempt::once(prepared)
            };
            Ok(Fate::Run { attempt, traits })
        }
        Err(Denial {
            feedback: Some(feedback),
            ..
        }) => Ok(Fate::Settled(refused(call, &feedback))),
        Err(Denial {
            reason,
            feedback: None,
        }) => Err(reason.unwrap_or_else(|| format!("The call of `{}` was denied.", call.name))),
    }
}

/// What is decided without a person; `None` when one must be asked.
fn decided(deps: &Calling<'_>, proposal: &Proposal) -> Option<Result<(), Denial>> {
    match deps.dispatch.policy.decide(proposal, deps.dispatch.hook) {
        Decision::Allow => Some(Ok(())),
        Decision::Deny(denial) => Some(Err(denial)),
        Decision::Ask => deps.dispatch.approver.granted(proposal).then_some(Ok(())),
    }
}

async fn ask(deps: &Calling<'_>, proposal: Proposal) -> Result<(), Denial> {
    record(deps, Event::permission_request(&proposal)).await;
    let answer = tokio::select! {
        biased;
        // The caller sees the canceled token and tells that instead of the denial.
        () = deps.cancel.cancelled() => Err(Denial { reason: None, feedback: Some(CANCELED_TEXT.to_owned()) }),
        answer = deps.dispatch.approver.approve(&proposal) => answer,
    };
    let answered = Event::Waiting(Waiting::PermissionAnswer {
        call_id: proposal.call_id,
        allowed: answer.is_ok(),
    });
    record(deps, answered).await;
    answer
}
