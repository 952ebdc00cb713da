//! Modes: what runs without a rule, from strict to free.

use std::str::FromStr;

/// Permissions of the agent if no rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Reads only.
    Plan,
    /// Every write asks.
    Ask,
    /// File edits run; commands that write ask.
    Edits,
    /// Reads and writes in the workspace run; destructive calls and those that reach outside ask.
    #[default]
    Auto,
    /// Everything runs unless a rule denies it or asks.
    Full,
    /// Reads run, everything else only if a rule allows it: nobody is there to ask.
    Unattended,
}

/// A text that names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a mode; expected plan, ask, edits, auto, full or unattended")]
pub struct ModeError(String);

/// Names of Codex for its sandbox modes and approval policies, and of Claude Code for its permission modes where
/// they mean nothing else here.
const OTHER_NAMES: &[(&str, Mode)] = &[
    ("default", Mode::Auto),
    ("accept-edits", Mode::Edits),
    ("acceptEdits", Mode::Edits),
    ("bypassPermissions", Mode::Full),
    ("dontAsk", Mode::Unattended),
    ("read-only", Mode::Plan),
    ("workspace-write", Mode::Auto),
    ("danger-full-access", Mode::Full),
    ("untrusted", Mode::Ask),
    ("on-request", Mode::Auto),
    ("on-failure", Mode::Auto),
    ("never", Mode::Unattended),
];

impl Mode {
    /// Every mode, from strict to free, then the one without a person.
    pub const ALL: [Self; 6] = [
        Self::Plan,
        Self::Ask,
        Self::Edits,
        Self::Auto,
        Self::Full,
        Self::Unattended,
    ];

    /// Returns the name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::Auto => "auto",
            Self::Full => "full",
            Self::Unattended => "unattended",
        }
    }

    /// Returns the meaning of the mode, on one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Plan => "only reads run",
            Self::Ask => "every edit and every command that writes asks",
            Self::Edits => "file edits run; commands that write ask",
            Self::Auto => {
                "edits and commands in this folder run; deleting, the network and other folders ask"
            }
            Self::Full => "nothing asks unless a rule says so",
            Self::Unattended => "only reads and what a rule allows run; nothing asks",
        }
    }

    /// SUB-3: returns the stricter of two modes. A mode in which nobody is asked is stricter than one in which
    /// somebody is.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let rank = |mode: Self| match mode {
            Self::Plan => 0,
            Self::Unattended => 1,
            Self::Ask => 2,
            Self::Edits => 3,
            Self::Auto => 4,
            Self::Full => 5,
        };
        if rank(other) < rank(self) { other } else { self }
    }

    /// Returns the mode that a permission mode of Claude Code means: like [`Mode::from_str`], but `default` asks
    /// before every write.
    ///
    /// # Errors
    /// If the text names no mode.
    pub fn from_permission_mode(name: &str) -> Result<Self, ModeError> {
        match name {
            "default" | "manual" => Ok(Self::Ask),
            name => name.parse(),
        }
    }
}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(name: &str) -> Result<Self, ModeError> {
        let own = Self::ALL.iter().find(|mode| mode.name() == name).copied();
        let other = || OTHER_NAMES.iter().find(|(other, _)| *other == name);
        own.or_else(|| other().map(|(_, mode)| *mode))
            .ok_or_else(|| ModeError(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SUB-3: a sub-agent gets the stricter of two modes, whichever comes first.
    #[test]
    fn the_stricter_mode_counts() {
        let strict = [
            Mode::Plan,
            Mode::Unattended,
            Mode::Ask,
            Mode::Edits,
            Mode::Auto,
            Mode::Full,
        ];
        for (place, mode) in strict.into_iter().enumerate() {
            for other in strict.into_iter().skip(place) {
                assert_eq!((mode.stricter(other), other.stricter(mode)), (mode, mode));
            }
        }
    }

    /// SAFE-11: every mode has its name, earlier names and those of other agents are understood, and Claude's
    /// `default` asks.
    #[test]
    fn names_of_modes() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(Mode::from_permission_mode(mode.name()), Ok(mode));
        }
        for (name, mode, permission_mode) in [
            ("default", Mode::Auto, Mode::Ask),
            ("accept-edits", Mode::Edits, Mode::Edits),
            ("acceptEdits", Mode::Edits, Mode::Edits),
            ("bypassPermissions", Mode::Full, Mode::Full),
            ("dontAsk", Mode::Unattended, Mode::Unattended),
            ("read-only", Mode::Plan, Mode::Plan),
            ("workspace-write", Mode::Auto, Mode::Auto),
            ("danger-full-access", Mode::Full, Mode::Full),
            ("untrusted", Mode::Ask, Mode::Ask),
            ("on-request", Mode::Auto, Mode::Auto),
            ("never", Mode::Unattended, Mode::Unattended),
        ] {
            assert_eq!(name.parse(), Ok(mode), "{name}");
            assert_eq!(Mode::from_permission_mode(name), Ok(permission_mode), "{name}");
        }
        let error = "yolo".parse::<Mode>().expect_err("no mode");
        assert!(error.to_string().contains("`yolo`"), "{error}");
    }
}
