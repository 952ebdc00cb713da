//! GOAL-7: claims of the model, compared with the commands it ran.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use windlass_api::{ClaimCheck, ClaimStatus, Event, Evidence, GoalEvent, Message, MessageId, Part};
use windlass_core::checkpoint::Checkpoints;
use windlass_core::hook::{Hook, TurnEnd, TurnHook};
use windlass_core::message::{ToolCall, ToolResult};

use super::work;
use crate::actor::checking::digest;

/// Maximum number of claims of one answer.
const MOST: usize = 20;
/// The tool that ends the work, with claims.
const DONE: &str = "done";
/// Tools that change files.
const EDITS: &[&str] = &["write_file", "edit_file", "apply_patch"];

/// A claim as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Claim {
    pub(crate) text: String,
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) exit_code: i64,
}

/// Reads the claims in the arguments of a call.
pub(crate) fn claims(arguments: &str) -> Vec<Claim> {
    #[derive(Deserialize)]
    struct Claims {
        #[serde(default)]
        claims: Option<Vec<Claim>>,
    }
    let read = serde_json::from_str(arguments).unwrap_or(Claims { claims: None });
    let mut claims = read.claims.unwrap_or_default();
    claims.truncate(MOST);
    claims
}

/// Records the claims of a turn that ended with `done`, each with what is known about it.
pub(crate) struct ClaimHook {
    /// Input of the turn.
    pub(crate) input: MessageId,
    pub(crate) files: Option<Arc<dyn Checkpoints>>,
}

impl Hook for ClaimHook {
    fn name(&self) -> &str {
        "claims"
    }

    fn turn(&self) -> Option<&dyn TurnHook> {
        Some(self)
    }
}

#[async_trait]
impl TurnHook for ClaimHook {
    async fn turn_ended(&self, end: &TurnEnd<'_>) -> Vec<Event> {
        let begin = end.history.iter().rposition(|message| message.id == self.input);
        let calls = calls(end.history.get(begin.unwrap_or_default()..).unwrap_or_default());
        let is_done = |result: &Option<&ToolResult>| result.is_some_and(|result| !result.is_error);
        let done = calls
            .iter()
            .rev()
            .find(|(call, result)| call.name == DONE && is_done(result));
        let claims = done.map(|(call, _)| claims(&call.input)).unwrap_or_default();
        if claims.is_empty() {
            return Vec::new();
        }
        let tree = match &self.files {
            Some(files) => files.tree().await.ok().flatten(),
            None => None,
        };
        let checked = claims
            .into_iter()
            .map(|claim| compare(claim, &calls, tree.as_deref()));
        checked.map(|claim| work(GoalEvent::Claim(claim))).collect()
    }
}

/// Returns the calls of some messages with their results, in order.
fn calls(messages: &[Arc<Message>]) -> Vec<(&ToolCall, Option<&ToolResult>)> {
    let mut calls: Vec<(&ToolCall, Option<&ToolResult>)> = Vec::new();
    for message in messages {
        for part in &message.parts {
            match part {
                Part::ToolCall(call) => calls.push((call, None)),
                Part::ToolResult(result) => {
                    let open = calls
                        .iter_mut()
                        .find(|(call, known)| known.is_none() && call.id == result.call_id);
                    if let Some((_, known)) = open {
                        *known = Some(result);
                    }
                }
                _ => {}
            }
        }
    }
    calls
}

/// Compares a claim with the last call that ran its command.
fn compare(claim: Claim, calls: &[(&ToolCall, Option<&ToolResult>)], tree: Option<&str>) -> ClaimCheck {
    let ran = calls
        .iter()
        .rposition(|(call, _)| ran(call) == Some(claim.command.trim().to_owned()));
    let result = ran.and_then(|place| calls.get(place)?.1);
    let exit_code = result.and_then(|result| result.metadata.as_ref()?.get("exit_code")?.as_i64());
    let later = calls.iter().skip(ran.map_or(0, |place| place + 1));
    let was_edited = later
        .filter(|(call, result)| {
            EDITS.contains(&call.name.as_str()) && result.is_some_and(|one| !one.is_error)
        })
        .count()
        > 0;
    let status = match exit_code {
        None => ClaimStatus::Unproven,
        Some(code) if code != claim.exit_code => ClaimStatus::False,
        Some(_) if was_edited => ClaimStatus::Stale,
        Some(_) => ClaimStatus::Verified,
    };
    ClaimCheck {
        text: claim.text,
        command: claim.command,
        claimed_exit_code: claim.exit_code,
        status,
        evidence: Evidence {
            exit_code,
            output: result
                .filter(|_| exit_code.is_some())
                .map(|result| digest(&result.content)),
            tree: tree.map(str::to_owned),
        },
    }
}

/// Returns the command of a call that runs one.
fn ran(call: &ToolCall) -> Option<String> {
    #[derive(Deserialize)]
    struct Command {
        #[serde(alias = "cmd")]
        command: String,
    }
    let read: Result<Command, _> = serde_json::from_str(&call.input);
    read.ok().map(|read| read.command.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, name: &str, input: &serde_json::Value) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: name.to_owned(),
            input: input.to_string(),
            finished: true,
        }
    }

    fn result(call: &ToolCall, exit_code: i64) -> ToolResult {
        ToolResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: "output".to_owned(),
            metadata: Some(json!({ "exit_code": exit_code })),
            is_error: exit_code != 0,
            images: Vec::new(),
        }
    }

    /// GOAL-7: a claim is bound to the last run of its command; a later edit makes it stale, another exit code
    /// false.
    #[test]
    fn claims_are_compared_with_calls() {
        let test = call("1", "bash", &json!({ "command": "make test" }));
        let edit = call("2", "edit_file", &json!({ "path": "a" }));
        let again = call("3", "bash", &json!({ "cmd": " make test " }));
        let (bad, good) = (result(&test, 2), result(&again, 0));
        let edited = result(&edit, 0);
        let claim = || Claim {
            text: "tests pass".to_owned(),
            command: "make test".to_owned(),
            exit_code: 0,
        };
        let status = |calls: &[(&ToolCall, Option<&ToolResult>)]| compare(claim(), calls, None).status;
        assert_eq!(status(&[]), ClaimStatus::Unproven);
        assert_eq!(status(&[(&test, None)]), ClaimStatus::Unproven);
        assert_eq!(status(&[(&test, Some(&bad))]), ClaimStatus::False);
        assert_eq!(
            status(&[(&test, Some(&bad)), (&again, Some(&good))]),
            ClaimStatus::Verified
        );
        assert_eq!(
            status(&[(&again, Some(&good)), (&edit, Some(&edited))]),
            ClaimStatus::Stale
        );
    }

    /// GOAL-7: claims are read from the arguments of `done`; anything else carries none.
    #[test]
    fn claims_are_read() {
        let read = claims("{\"message\": \"x\", \"claims\": [{\"text\": \"t\", \"command\": \"c\"}]}");
        assert_eq!((read.len(), read[0].exit_code), (1, 0));
        for text in ["", "{}", "{\"claims\": null}", "{\"claims\": 3}"] {
            assert!(claims(text).is_empty(), "{text}");
        }
    }
}
