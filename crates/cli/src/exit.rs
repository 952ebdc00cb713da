//! What a run's exit code says.

use windlass_api::{FailureKind, FinishReason};
use windlass_config::ProblemKind;

/// The exit codes, as documented in `docs/exec.md` and `windlass exec --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// There is an answer.
    Ok = 0,
    /// It failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A settings file or variable is wrong.
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
    /// The store of sessions cannot be used.
    Store = 10,
    /// Interrupted by the user.
    Interrupted = 130,
    /// Whoever read the output has gone.
    BrokenPipe = 141,
}

/// The table that help texts and documents show.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    there is an answer
  1    failed
  2    wrong usage
  3    a settings file or variable is wrong
  4    the session is busy
  5    a tool call was denied
  6    the iteration limit was reached
  7    the cost limit was reached
  8    the provider failed, refused the key or could not be reached
  9    the answer does not match --output-schema
  10   the store of sessions cannot be used
  130  interrupted";

impl Exit {
    /// The code of a failed turn.
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

    /// The code of an answer.
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
            ProblemKind::Provider => Self::Provider,
            ProblemKind::Store => Self::Store,
            ProblemKind::Interrupted => Self::Interrupted,
            ProblemKind::BrokenPipe => Self::BrokenPipe,
        }
    }
}
