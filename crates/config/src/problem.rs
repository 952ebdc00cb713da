//! The error type shared by the code that prepares a run.

use std::fmt;

use windlass_core::text::in_plain_words;

/// Class of a [`Problem`]. The binary turns it into an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// Any error without a class of its own.
    Failed,
    /// Invalid command line.
    Usage,
    /// Invalid settings file or environment variable.
    Config,
    /// Another process is using the session.
    Busy,
    /// A tool call was denied.
    Denied,
    /// The provider failed, refused the key or could not be reached.
    Provider,
    /// There is no key for the provider.
    Auth,
    /// The session store cannot be used.
    Store,
    /// Interrupted by the user.
    Interrupted,
    /// The reader of the output is gone.
    BrokenPipe,
}

impl ProblemKind {
    /// Returns true for an error of a provider, a missing key included.
    pub fn is_of_provider(self) -> bool {
        matches!(self, Self::Provider | Self::Auth)
    }
}

/// An error for the user, with its class.
#[derive(Debug)]
pub struct Problem {
    /// Class of the error.
    pub kind: ProblemKind,
    /// The error, and how to fix it.
    pub message: String,
}

impl Problem {
    /// Creates a problem of the given class. Words of libraries in the message are replaced.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: in_plain_words(&message.into()),
        }
    }

    /// Creates a problem with the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Usage, message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
