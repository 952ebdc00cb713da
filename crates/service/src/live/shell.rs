//! A command that the user typed: run as a call without a model, and told to the model with its next turn.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{Event, Message, Part, Role, own_call};
use windlass_core::clock::Clock;
use windlass_core::dispatch::{Calling, Dispatch, call};
use windlass_core::log::Durability;
use windlass_core::message::FragmentSource;
use windlass_core::message::{FinishReason, ToolCall, ToolResult};
use windlass_core::permission::{Approver, Denial, Mode, Policy, Proposal};

use super::{Begun, Live, Order, PROMPT, Running, Stay, canceled, not_stored};
use crate::environment::UserCommand;
use crate::sink::Sink;

impl Live {
    /// Runs a command of the user's in the session.
    pub(super) async fn shell(
        &mut self,
        command: &str,
        answer: oneshot::Sender<Begun>,
        inbox: &mut mpsc::Receiver<Order>,
    ) {
        let now = self.inner.clock.now();
        // Its id is needed now, so that what the command does to files belongs to it; its text is known at the end.
        let mut message = Message::new(&self.info.id, Role::User, Vec::new(), now);
        let prompt = format!("!{command}").chars().take(PROMPT).collect();
        let start = self.turn_start(Some(message.id.clone()), prompt);
        let stop = self.seat.begin();
        let _ = answer.send(Ok(()));
        let own = tokio::select! {
            biased;
            () = stop.token.cancelled() => return self.end(canceled()).await,
            own = self.bench.permissions().user_command(&start, command) => own,
        };
        self.warn(&own.notices).await;
        let job = Job {
            call: ToolCall {
                id: own_call(&message.id),
                name: own.tool.clone(),
                input: own.input.clone(),
                finished: true,
            },
            own,
            sink: Arc::clone(&self.sink),
            clock: Arc::clone(&self.inner.clock),
            tasks: self.inner.strays.clone(),
            cancel: stop.token.clone(),
        };
        let cancel = stop.token.clone();
        let running = Running {
            stop,
            task: tokio::spawn(job.run()),
        };
        let done = self.watch(running, inbox).await;
        message.parts = vec![Part::context(FragmentSource::UserCommand, told(command, &done))];
        let end = if cancel.is_cancelled() {
            canceled()
        } else {
            Event::Final {
                content: String::new(),
                finish: FinishReason::EndTurn,
            }
        };
        let message = Arc::new(message);
        let said = Event::Message {
            message: Arc::clone(&message),
        };
        match self.sink.store(vec![said, end], Durability::Disk).await {
            Ok(()) => self.history.push(message),
            Err(error) => {
                self.sink.tell_only(not_stored(&error));
                self.stay = Stay::Closing;
            }
        }
    }
}

/// Everything the call needs. Owned, so that it can run in a task of its own.
struct Job {
    call: ToolCall,
    own: UserCommand,
    sink: Arc<Sink>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

impl Job {
    async fn run(self) -> ToolResult {
        let calls = self.own.calls;
        // The user typed it: nobody needs to be asked, whatever the mode. What is denied stays denied.
        let policy = Policy {
            mode: Mode::Full,
            ..calls.policy
        };
        let dispatch = Dispatch {
            tools: &self.own.tools,
            hook: None,
            policy: &policy,
            approver: Arc::new(Typed),
            execution: calls.execution,
            execution_mode: calls.mode,
            timeout: calls.timeout,
            max_result_chars: Some(calls.max_result_chars),
            outputs: calls.outputs,
            retry_transient: false,
            tasks: self.tasks,
        };
        let calling = Calling {
            dispatch: &dispatch,
            clock: self.clock,
            events: self.sink as _,
            cancel: self.cancel,
        };
        call(&calling, self.call).await
    }
}

/// Says yes for whoever typed the command.
struct Typed;

#[async_trait]
impl Approver for Typed {
    fn granted(&self, _: &Proposal) -> bool {
        true
    }

    async fn approve(&self, _: &Proposal) -> Result<(), Denial> {
        Ok(())
    }
}

/// What the model reads of it.
fn told(command: &str, done: &Result<ToolResult, JoinError>) -> String {
    let (lead, output) = match done {
        Ok(result) if result.is_error => ("It failed:", result.content.clone()),
        Ok(result) => ("Its output:", result.content.clone()),
        Err(error) => ("It failed inside:", error.to_string()),
    };
    format!(
        "I ran this command myself:\n\n{}\n\n{lead}\n\n{}",
        fenced(command, "sh"),
        fenced(&output, "")
    )
}

/// A text between fences that it cannot close.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: whatever a command prints stays inside its fence.
    #[test]
    fn outputs_stay_fenced() {
        let cases = [
            ("hi\n", "```\nhi\n```"),
            ("a `b` ```c```", "````\na `b` ```c```\n````"),
            ("", "```\n\n```"),
        ];
        for (text, expected) in cases {
            assert_eq!(fenced(text, ""), expected);
        }
    }
}
