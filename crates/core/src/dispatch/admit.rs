//! Decides about one call, directly before it runs.

use std::sync::Arc;

use super::attempt::Attempt;
use super::{Calls, record};
use crate::event::{Event, Waiting};
use crate::hook::{AdmittedCall, Judged, PermissionAction};
use crate::message::{ToolCall, ToolResult};
use crate::permission::{Decision, Denial, Policy, Proposal, Subject};
use crate::text::{misleading, shorten};
use crate::tool::{AnyTool, Category, Prepared, ToolTraits};
use crate::turn::refused;

/// Maximum number of times hooks may rewrite the arguments of one call.
const MAX_REWRITES: usize = 3;

/// Maximum number of characters of an unknown tool's name that go back to the model.
const LONGEST_NAME: usize = 64;

/// A call and its fate.
pub(super) struct Admitted {
    pub(super) call: ToolCall,
    pub(super) fate: Fate,
}

/// The fate of a call.
pub(super) enum Fate {
    /// It runs.
    Run {
        attempt: Box<Attempt>,
        traits: ToolTraits,
        admitted: Box<AdmittedCall>,
    },
    /// It has its result already.
    Settled(Box<ToolResult>),
}

/// A valid call that has not been judged yet. Creating one has no effect.
pub(super) struct Candidate<'a> {
    tool: &'a Arc<dyn AnyTool>,
    prepared: Prepared,
    arguments: String,
}

impl Candidate<'_> {
    pub(super) fn category(&self) -> Category {
        self.prepared.category
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.tool.traits().exclusive
    }
}

/// Validates a call. `Err` is its result: an unknown tool or bad arguments.
pub(super) fn validate<'a>(deps: &'a Calls<'_>, call: &ToolCall) -> Result<Candidate<'a>, Box<ToolResult>> {
    let Some(tool) = deps.config.tools.get(&call.name) else {
        let (name, rest) = shorten(&call.name, LONGEST_NAME);
        let more = if rest > 0 { "…" } else { "" };
        return Err(Box::new(refused(
            call,
            &format!("Error: Unknown tool '{name}{more}'"),
        )));
    };
    prepare(tool, call, call.input.clone())
}

fn prepare<'a>(
    tool: &'a Arc<dyn AnyTool>,
    call: &ToolCall,
    arguments: String,
) -> Result<Candidate<'a>, Box<ToolResult>> {
    match Arc::clone(tool).prepare(&arguments) {
        Ok(prepared) => Ok(Candidate {
            tool,
            prepared,
            arguments,
        }),
        Err(error) => Err(Box::new(refused(call, &error.to_string()))),
    }
}

/// A denial that ends the turn.
pub(super) struct Ended {
    /// Reason, for the user.
    pub(super) reason: String,
    /// Advice for the user.
    pub(super) hint: Option<String>,
}

/// LOOP-18: judges a valid call, once. The call that is judged here is the call that runs. `Err` ends the
/// turn.
pub(super) async fn admit(
    deps: &Calls<'_>,
    call: &ToolCall,
    mut candidate: Candidate<'_>,
) -> Result<Fate, Ended> {
    let mut proposal = proposed(deps, call, &candidate);
    let mut reasons = Vec::new();
    for round in 0.. {
        let judged = tokio::select! {
            biased;
            judged = deps.hooks.before_call(&**deps.clock, &proposal) => judged,
            // The caller sees the canceled token.
            () = deps.cancel.cancelled() => Judged::Deny(crate::turn::CANCELED_TEXT.to_owned()),
        };
        match judged {
            Judged::Proceed => break,
            Judged::Ask(more) => {
                reasons = more;
                break;
            }
            Judged::Deny(text) => return Ok(Fate::Settled(Box::new(refused(call, &text)))),
            Judged::Rewritten(arguments) if round < MAX_REWRITES => {
                candidate = match prepare(candidate.tool, call, arguments) {
                    Ok(candidate) => candidate,
                    Err(result) => return Ok(Fate::Settled(result)),
                };
                proposal = proposed(deps, call, &candidate);
            }
            Judged::Rewritten(_) => {
                let text = "Not run: hooks kept rewriting the arguments of this call.";
                return Ok(Fate::Settled(Box::new(refused(call, text))));
            }
        }
    }
    let policy = &deps.config.policy;
    let decision = match policy.decide(&proposal) {
        Decision::Allow if !reasons.is_empty() => Decision::Ask,
        decision => decision,
    };
    // A hook that wants a person asked is not answered by another hook, and a listed command by none.
    let must_ask = !reasons.is_empty() || proposal.blocked.is_some();
    proposal.reasons.extend(reasons);
    let asks = decision == Decision::Ask;
    let (permitted, was_confirmed) = match decision {
        Decision::Allow => (Ok(()), false),
        Decision::Deny(denial) => (Err(denial), false),
        Decision::Ask if deps.approver.granted(&proposal) => (Ok(()), true),
        Decision::Ask => match requested(deps, &proposal).await {
            PermissionAction::Allow if !must_ask => (Ok(()), false),
            PermissionAction::Deny(text) => (Err(feedback(text)), false),
            action => {
                if let PermissionAction::Ask(reason) = action {
                    proposal.reasons.push(reason);
                }
                proposal.preview = candidate.prepared.preview(&deps.config.execution);
                let cause = policy.cause(&proposal);
                let texts = proposal.parts().map(Subject::text);
                let warning = texts.chain(proposal.preview.as_deref()).find_map(misleading);
                proposal.reasons.extend(warning);
                (ask(deps, &proposal, cause).await, true)
            }
        },
    };
    match permitted {
        Ok(()) => {
            let admitted = AdmittedCall {
                proposal,
                was_confirmed,
            };
            Ok(run(deps, candidate, admitted, asks))
        }
        Err(Denial {
            feedback: Some(feedback),
            ..
        }) => Ok(Fate::Settled(Box::new(refused(call, &feedback)))),
        Err(Denial {
            reason,
            feedback: None,
        }) => Err(Ended {
            reason: reason.unwrap_or_else(|| format!("The call of `{}` was denied.", call.name)),
            hint: (!policy.attended).then(|| advice(policy, &proposal)),
        }),
    }
}

/// Lets hooks answer a permission request, until the turn is canceled.
async fn requested(deps: &Calls<'_>, proposal: &Proposal) -> PermissionAction {
    tokio::select! {
        biased;
        action = deps.hooks.on_permission_request(&**deps.clock, proposal) => action,
        () = deps.cancel.cancelled() => PermissionAction::Deny(crate::turn::CANCELED_TEXT.to_owned()),
    }
}

/// Advises a user who was not there to answer.
fn advice(policy: &Policy, proposal: &Proposal) -> String {
    let there = "run it in a terminal, where you can answer";
    match policy.allowing(proposal) {
        Some(rules) => {
            let rules: Vec<String> = rules
                .iter()
                .map(|rule| format!("{:?}", rule.to_string()))
                .collect();
            let setting = format!("security.allow=[{}]", rules.join(", ")).replace('\'', "'\\''");
            format!("allow it with -c '{setting}', or {there}")
        }
        None => format!("no rule can allow this call; {there}"),
    }
}

fn run(deps: &Calls<'_>, candidate: Candidate<'_>, admitted: AdmittedCall, confirmed: bool) -> Fate {
    let traits = candidate.tool.traits();
    let attempt = if deps.config.retry_transient {
        Attempt::with_retry(
            candidate.prepared,
            Arc::clone(candidate.tool),
            &candidate.arguments,
        )
    } else {
        Attempt::once(candidate.prepared)
    };
    Fate::Run {
        attempt: Box::new(attempt.confirmed(confirmed)),
        traits,
        admitted: Box::new(admitted),
    }
}

fn proposed(deps: &Calls<'_>, call: &ToolCall, candidate: &Candidate<'_>) -> Proposal {
    let execution = &deps.config.execution;
    let mut proposal = candidate.prepared.proposal(&call.id, &call.name, &execution.cwd);
    proposal.definition = proposal.definition.or_else(|| candidate.tool.definition());
    proposal
}

fn feedback(text: String) -> Denial {
    Denial {
        reason: None,
        feedback: Some(text),
    }
}

async fn ask(deps: &Calls<'_>, proposal: &Proposal, cause: Option<String>) -> Result<(), Denial> {
    record(deps, Event::permission_request(proposal, cause)).await;
    let answer = tokio::select! {
        biased;
        // The caller sees the canceled token and reports that instead of the denial.
        () = deps.cancel.cancelled() => Err(feedback(crate::turn::CANCELED_TEXT.to_owned())),
        answer = deps.approver.approve(proposal) => answer,
    };
    let answered = Event::Waiting(Waiting::PermissionAnswer {
        call_id: proposal.call_id.clone(),
        allowed: answer.is_ok(),
    });
    record(deps, answered).await;
    answer
}
