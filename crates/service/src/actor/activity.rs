//! The work that a session's task waits for: one at a time.

use std::sync::Arc;

use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use windlass_core::message::{Message, ToolResult};
use windlass_core::turn::TurnReport;

use super::checking::{Checking, Observation, Purpose};
use super::user_command::{RunningCommand, TypedCommand};
use crate::handle::Stoppable;

/// The work that a session's task waits for.
pub(super) enum Activity {
    Idle,
    /// The hooks of the opened session run. Requests wait until they end.
    Opening(Running<Vec<String>>),
    Turn(Running<TurnReport>),
    UserCommand(Box<RunningCommand>),
    Summary(Running<Result<Vec<Arc<Message>>, String>>),
    /// Commands that verify something run.
    Checking(Box<Checking>),
}

/// The end of an activity.
pub(super) enum Finished {
    Opening(Result<Vec<String>, JoinError>),
    Turn(Result<TurnReport, JoinError>),
    UserCommand(Box<TypedCommand>, Result<ToolResult, JoinError>),
    Summary(
        CancellationToken,
        Result<Result<Vec<Arc<Message>>, String>, JoinError>,
    ),
    Checking(Purpose, CancellationToken, Result<Vec<Observation>, JoinError>),
}

/// Work in a task of its own, and the means to stop it.
pub(super) struct Running<T> {
    pub(super) task: JoinHandle<T>,
    pub(super) stop: Stoppable,
}

impl Activity {
    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    pub(super) fn is_opening(&self) -> bool {
        matches!(self, Self::Opening(_))
    }

    pub(super) fn stop(&self) {
        let stop = match self {
            Self::Idle => return,
            Self::Opening(running) => &running.stop,
            Self::Turn(running) => &running.stop,
            Self::UserCommand(command) => &command.running.stop,
            Self::Summary(running) => &running.stop,
            Self::Checking(checking) => &checking.running.stop,
        };
        stop.token.cancel();
    }

    /// Waits for the end; never returns while nothing runs. Can be dropped and called again.
    pub(super) async fn finished(&mut self) -> Finished {
        let finished = match self {
            Self::Idle => std::future::pending().await,
            Self::Opening(running) => Finished::Opening((&mut running.task).await),
            Self::Turn(running) => Finished::Turn((&mut running.task).await),
            Self::UserCommand(command) => {
                let result = (&mut command.running.task).await;
                Finished::UserCommand(Box::new(command.about.clone()), result)
            }
            Self::Summary(running) => {
                let result = (&mut running.task).await;
                Finished::Summary(running.stop.token.clone(), result)
            }
            Self::Checking(checking) => {
                let result = (&mut checking.running.task).await;
                let token = checking.running.stop.token.clone();
                Finished::Checking(checking.purpose.clone(), token, result)
            }
        };
        *self = Self::Idle;
        finished
    }
}
