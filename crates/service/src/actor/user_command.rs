//! A command that the user typed: runs as a tool call without a model, and is reported to the model in its
//! next turn.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{Event, Message, Part, Role, own_call};
use windlass_core::clock::Clock;
use windlass_core::dispatch::{Calls, call};
use windlass_core::event::EventSink;
use windlass_core::message::FragmentSource;
use windlass_core::message::{FinishReason, ToolCall, ToolResult};
use windlass_core::permission::{Approver, Denial, Mode, NobodyToAsk, Proposal};
use windlass_core::tool::CallModel;

use super::{Activity, Begun, Running, SessionActor, canceled};
use crate::environment::UserCommand;

impl SessionActor {
    /// Starts a command that the user typed.
    pub(super) async fn user_command(&mut self, command: &str, answer: oneshot::Sender<Begun>) -> Activity {
        let now = self.inner.clock.now();
        // The id is needed now, so that file changes of the command are attributed to it; the text is known
        // at the end.
        let message = Message::new(&self.info.id, Role::User, Vec::new(), now);
        let start = self.turn_start(Some(&message), &format!("!{command}"));
        let stop = self.handle.begin();
        let _ = answer.send(Ok(()));
        let own = tokio::select! {
            biased;
            () = stop.token.cancelled() => None,
            own = self.env.permissions().user_command(&start, command) => Some(own),
        };
        let Some(own) = own else {
            self.end(vec![canceled()]).await;
            return Activity::Idle;
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
            author: Author::User,
            events: Arc::clone(&self.sink) as _,
            clock: Arc::clone(&self.inner.clock),
            tasks: self.inner.strays.clone(),
            cancel: stop.token.clone(),
        };
        let cancel = stop.token.clone();
        Activity::UserCommand(Box::new(RunningCommand {
            running: Running {
                stop,
                task: tokio::spawn(job.run()),
            },
            about: TypedCommand {
                cancel,
                command: command.to_owned(),
                message,
            },
        }))
    }

    /// Records a command that ended, and its output for the model.
    pub(super) async fn user_command_ended(
        &mut self,
        ended: TypedCommand,
        done: Result<ToolResult, JoinError>,
    ) {
        let TypedCommand {
            cancel,
            command,
            mut message,
        } = ended;
        message.parts = vec![Part::context(FragmentSource::UserCommand, told(&command, &done))];
        let end = if cancel.is_cancelled() {
            canceled()
        } else {
            Event::Final {
                content: String::new(),
                finish: FinishReason::EndTurn,
            }
        };
        let message = Arc::new(message);
        let events = vec![Event::Message { message }, end];
        if self.end(events.clone()).await {
            self.apply(&events);
        }
    }
}

/// A running command of the user.
pub(super) struct RunningCommand {
    pub(super) running: Running<ToolResult>,
    pub(super) about: TypedCommand,
}

/// A command that the user typed.
#[derive(Clone)]
pub(super) struct TypedCommand {
    cancel: CancellationToken,
    command: String,
    /// The message that tells the model about it.
    message: Message,
}

/// The connections of the call. Owned, so that it can run in a task of its own.
pub(super) struct Job {
    pub(super) call: ToolCall,
    pub(super) own: UserCommand,
    pub(super) author: Author,
    pub(super) events: Arc<dyn EventSink>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: TaskTracker,
    pub(super) cancel: CancellationToken,
}

/// Author of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// The user typed it, so no approval is needed in any mode. Denied commands stay denied.
    User,
    /// A model wrote it, and the user wants it verified. It runs if the sandbox contains it; nobody is asked.
    Model,
}

impl Job {
    pub(super) async fn run(self) -> ToolResult {
        let mut config = self.own.calls;
        config.retry_transient = false;
        let approver: Arc<dyn Approver> = match self.author {
            Author::User => {
                config.policy.mode = Mode::Full;
                config.policy.attended = true;
                Arc::new(Typed)
            }
            Author::Model => {
                config.policy.mode = Mode::Auto;
                config.policy.attended = false;
                Arc::new(NobodyToAsk)
            }
        };
        let calls = Calls {
            config: &config,
            hooks: &self.own.hooks,
            approver: &approver,
            model: &CallModel::none(),
            outputs: self.own.outputs.as_ref(),
            clock: &self.clock,
            events: &self.events,
            cancel: &self.cancel,
            tasks: &self.tasks,
        };
        call(&calls, self.call).await
    }
}

/// Approves on behalf of the user who typed the command.
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

/// Returns the report for the model.
fn told(command: &str, done: &Result<ToolResult, JoinError>) -> String {
    let (lead, output) = match done {
        Ok(result) if result.is_error => ("It failed:", result.content.clone()),
        Ok(result) => ("Its output:", result.content.clone()),
        Err(error) => ("It failed with an internal error:", error.to_string()),
    };
    format!(
        "I ran this command myself:\n\n{}\n\n{lead}\n\n{}",
        fenced(command, "sh"),
        fenced(&output, "")
    )
}

/// Fences a text so that it cannot close the fence.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: the output of a command always stays inside its fence.
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
