//! Slash commands as a prompt: runs the command and prints its text. No model is called, unless the command
//! expands to a prompt.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use windlass_api::{
    ClientError, Commands, EVENT_VERSION, Envelope, Event, EventStream, FinishReason, Follow, SessionId,
    command_line,
};

use super::{Job, Runner, connect};
use crate::engine::not_begun;
use crate::exit::Exit;
use crate::output::Outcome;
use windlass_config::Problem;
use windlass_core::permission::Mode;
use windlass_host::models::Models;

impl Runner<'_> {
    /// Runs the command of a job. `last` is the number of the session's last entry.
    pub(super) async fn command(
        &mut self,
        job: &Job,
        models: &Models,
        last: u64,
    ) -> Result<Outcome, Problem> {
        let mut reply = match self.client.command(&self.session, &job.prompt).await {
            Ok(reply) => reply,
            Err(error) => return Ok(refused(of_terminal(&job.prompt).unwrap_or(error))),
        };
        match reply.follow {
            Follow::Nothing | Follow::Leave => {}
            Follow::Edit { text, .. } => reply.text = text,
            Follow::Session(info) => self.went_to = Some(info.id),
            Follow::Submit(said) => {
                connect(models, job.style).await?;
                return Ok(self.work(job, said).await);
            }
            Follow::Watch(events) => {
                job.style.note(&reply.text);
                return Ok(self.follow(&job.prompt, events).await);
            }
        }
        let event = told(&self.session, last, &reply.text);
        let broken = self.printer.event(&event).is_err();
        let exit = if broken { Exit::BrokenPipe } else { Exit::Ok };
        Ok(Outcome::answered(exit, crate::terminal::plain(&reply.text)))
    }

    /// Prints a running turn to its end. If it has no answer, the output of the last tool call is the answer.
    pub(super) async fn outcome(&mut self, events: EventStream) -> Outcome {
        let called = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&called);
        let events = events.inspect(move |envelope| {
            if let Event::ToolResult {
                content, is_error, ..
            } = &envelope.event
            {
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((content.clone(), *is_error));
            }
        });
        let ending = self.watch(EventStream::new(events)).await;
        let called = called.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (called, ending.answer.as_deref()) {
            (Some((content, has_failed)), Some("")) => Outcome {
                exit: if has_failed { Exit::Failed } else { ending.exit },
                answer: Some(crate::terminal::plain(&content)),
                ..ending
            },
            _ => ending,
        }
    }
}

/// Refuses a command that would last until the end of the session, which is the end of this run.
pub(super) fn check(prompt: &str) -> Result<(), Problem> {
    let line = command_line(prompt).map(|line| (line.name.to_ascii_lowercase(), line.arguments));
    let mode = match line.as_ref().map(|(name, arguments)| (name.as_str(), *arguments)) {
        Some(("mode", mode)) if mode.parse::<Mode>().is_ok() => mode,
        Some(("plan", "")) => "plan",
        _ => return Ok(()),
    };
    let goal = "; `--goal TEXT` works unattended, and `/plan TEXT` plans a task";
    Err(Problem::usage(format!(
        "the mode lasts until a session ends, and this run ends at once: use `windlass exec --mode {mode} \"PROMPT\"`{}",
        if mode == "plan" { goal } else { "" }
    )))
}

/// Wraps the text in the only event of the run. It is not part of the log.
fn told(session: &SessionId, last: u64, text: &str) -> Envelope {
    Envelope {
        v: EVENT_VERSION,
        session: session.clone(),
        seq: last + 1,
        event: Event::Final {
            content: text.to_owned(),
            finish: FinishReason::EndTurn,
        },
    }
}

/// Returns the error for a command that only the terminal UI has.
fn of_terminal(prompt: &str) -> Option<ClientError> {
    let name = command_line(prompt)?.name;
    let text = || format!("/{name} is a command of the terminal UI: run `windlass` in a terminal");
    windlass_tui::is_local_command(name).then(|| ClientError::CommandUsage(text()))
}

fn refused(error: ClientError) -> Outcome {
    let kind = match &error {
        ClientError::CommandUsage(_) => "usage",
        ClientError::Busy(_) | ClientError::CommandBusy { .. } => "busy",
        ClientError::Store(_) => "store",
        _ => "command",
    };
    let problem = not_begun(error);
    Outcome::failed(problem.kind.into(), kind, problem.message, None)
}
