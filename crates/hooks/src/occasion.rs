//! The points at which hooks run.

use std::time::Duration;

/// A point at which hooks run. The names are those of Claude Code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Occasion {
    /// Before a call is judged.
    PreToolUse,
    /// A person is about to be asked about a call.
    PermissionRequest,
    /// After a call that worked.
    PostToolUse,
    /// After a call that failed.
    PostToolUseFailure,
    /// Before a compaction.
    PreCompact,
    /// After a compaction.
    PostCompact,
    /// A session was opened.
    SessionStart,
    /// A session is closed.
    SessionEnd,
    /// The user sent a prompt.
    UserPromptSubmit,
    /// A sub-agent starts.
    SubagentStart,
    /// A sub-agent is about to end.
    SubagentStop,
    /// The turn is about to end.
    Stop,
    /// The user is needed.
    Notification,
}

impl Occasion {
    /// Every occasion.
    pub const ALL: [Self; 13] = [
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PreCompact,
        Self::PostCompact,
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmit,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::Stop,
        Self::Notification,
    ];

    /// Returns the name in files and in the input of a hook.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::Stop => "Stop",
            Self::Notification => "Notification",
        }
    }

    /// Finds an occasion by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|occasion| occasion.name() == name)
    }

    /// Returns true if a hook decides here about a call.
    pub fn decides(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    /// Returns true if hooks here are about a call.
    pub fn is_about_calls(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PermissionRequest | Self::PostToolUse | Self::PostToolUseFailure
        )
    }

    /// Returns true if a matcher is ignored here.
    pub fn ignores_matcher(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::Stop)
    }

    /// Returns true if plain text on standard output is context for the model.
    pub fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }

    /// Time limit of a hook that names none.
    pub fn time_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::UserPromptSubmit => 30,
            // All hooks together have five seconds when a session is closed.
            Self::SessionEnd => 4,
            _ => 600,
        })
    }
}
