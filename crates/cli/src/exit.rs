//! Exit codes.

use windlass_api::{FailureKind, FinishReason};
use windlass_config::ProblemKind;

/// Exit codes, as documented in `docs/exec.md` and `windlass exec --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run has an answer.
    Ok = 0,
    /// The run failed.
    Failed = 1,
    /// Wrong usage of the command line.
    Usage = 2,
    /// Invalid settings file or variable.
    Config = 3,
    /// The session is busy with another turn.
    Busy = 4,
    /// A tool call was denied.
    Denied = 5,
    /// The iteration limit was reached.
    TurnLimit = 6,
    /// The cost limit was reached.
    CostLimit = 7,
    /// The provider failed, refused the key or could not be reached.
    Provider = 8,
    /// The answer does not match the output schema.
    Schema = 9,
    /// The session store cannot be used.
    Store = 10,
    /// The turn limit of a goal was reached.
    GoalTurns = 11,
    /// The budget of a goal was reached: money, tokens or time.
    GoalBudget = 12,
    /// A goal cannot be reached without the user.
    GoalBlocked = 13,
    /// Work towards a goal was paused.
    GoalPaused = 14,
    /// A claim is false.
    FalseClaim = 15,
    /// A claim is stale, or could not be checked.
    StaleClaim = 16,
    /// Interrupted by the user.
    Interrupted = 130,
    /// The reader of the output is gone.
    BrokenPipe = 141,
}

impl Exit {
    /// Returns the code of a failed turn.
    pub(crate) fn of_failure(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Provider(_) => Self::Provider,
            FailureKind::PermissionDenied => Self::Denied,
            FailureKind::CostLimit => Self::CostLimit,
            FailureKind::Repetition
            | FailureKind::MaxTokens
            | FailureKind::EmptyReply
            | FailureKind::Refusal
            | FailureKind::Stopped
            | FailureKind::Interrupted => Self::Failed,
            FailureKind::Log => Self::Store,
        }
    }

    /// Returns the code of an answer.
    pub(crate) fn of_answer(finish: FinishReason) -> Self {
        if finish == FinishReason::MaxIterations {
            Self::TurnLimit
        } else {
            Self::Ok
        }
    }
}

impl From<ProblemKind> for Exit {
    fn from(kind: ProblemKind) -> Self {
        match kind {
            ProblemKind::Failed => Self::Failed,
            ProblemKind::Usage => Self::Usage,
            ProblemKind::Config => Self::Config,
            ProblemKind::Busy => Self::Busy,
            ProblemKind::Denied => Self::Denied,
            ProblemKind::Provider | ProblemKind::Auth => Self::Provider,
            ProblemKind::Store => Self::Store,
            ProblemKind::Interrupted => Self::Interrupted,
            ProblemKind::BrokenPipe => Self::BrokenPipe,
        }
    }
}
