//! Queries of a front end to a live session. Answered at any time, even while a turn runs.

use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_api::{Checkpoint, ClientError, ContextReport, FileChange, Message, MessageId, Overview, Wait};
use windlass_core::checkpoint::CheckpointError;

use super::{CommandContext, context};
use crate::format::one_line;
use crate::goal::Goal;

/// A query.
pub(crate) enum Look {
    Overview(oneshot::Sender<Result<Overview, ClientError>>),
    /// Removes an input from the queue. Changes the session, but is answered at any time like a query.
    TakeBack(MessageId, oneshot::Sender<Option<Arc<Message>>>),
    /// Releases a held queue. Changes the session, but is answered at any time like a query.
    GoOn(oneshot::Sender<()>),
    Checkpoints(oneshot::Sender<Result<Vec<Checkpoint>, ClientError>>),
    Changes(u64, oneshot::Sender<Result<Vec<FileChange>, ClientError>>),
    Context(oneshot::Sender<Result<ContextReport, ClientError>>),
}

impl CommandContext<'_> {
    pub(crate) async fn look(&mut self, look: Look) {
        match look {
            Look::Overview(answer) => drop(answer.send(self.overview().await)),
            Look::TakeBack(message, answer) => {
                let taken = self.queue.take_back(&message, self.sink).await;
                let _ = answer.send(taken);
            }
            Look::GoOn(answer) => {
                self.queue.release();
                let _ = answer.send(());
            }
            Look::Checkpoints(answer) => drop(answer.send(self.checkpoints().await)),
            Look::Changes(number, answer) => drop(answer.send(self.changes(number).await)),
            Look::Context(answer) => {
                let report = context::report(self).await;
                let _ = answer.send(report.map_err(|stop| self.refusal(stop, "context", "/context")));
            }
        }
    }

    /// OBS-3: returns the wait chain of the turn; empty if none runs.
    pub(super) fn why(&self) -> Vec<Wait> {
        match self.is_busy {
            true => self.service().chain(&self.info.id, 0),
            false => Vec::new(),
        }
    }

    async fn overview(&mut self) -> Result<Overview, ClientError> {
        let id = self.info.id.clone();
        let info = self.service().info(&id).await?;
        let info = info.ok_or(ClientError::Unknown(id))?;
        let env = &mut *self.env;
        let models = env.models();
        let (provider, model) = models.active().unwrap_or_default();
        let window = if model.is_empty() {
            0
        } else {
            models.window(&model)
        };
        let effort = models.effort().to_owned();
        let access = env.permissions();
        let mode = access.policy().mode.name().to_owned();
        let goals = env.goals();
        Ok(Overview {
            info,
            provider,
            model,
            window,
            mode,
            effort,
            surroundings: env.surroundings(),
            is_busy: self.is_busy,
            queue: self.queue.messages().to_vec(),
            goal: self
                .pursuit
                .goal
                .followed(&goals)
                .and_then(Goal::explicit)
                .map(one_line),
            subgoal: goals.subgoal,
        })
    }

    async fn checkpoints(&self) -> Result<Vec<Checkpoint>, ClientError> {
        match self.env.checkpoints() {
            Some(kept) => kept.list().await.map_err(told),
            None => Ok(Vec::new()),
        }
    }

    async fn changes(&self, number: u64) -> Result<Vec<FileChange>, ClientError> {
        match self.env.checkpoints() {
            Some(kept) => kept.show(number).await.map_err(told),
            None => Err(told(CheckpointError::Unknown { number, last: 0 })),
        }
    }
}

fn told(error: CheckpointError) -> ClientError {
    ClientError::Command(error.to_string())
}
