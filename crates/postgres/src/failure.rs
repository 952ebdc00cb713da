//! Errors of the database, converted for callers.

use std::error::Error as _;

use tokio_postgres::error::SqlState;
use windlass_core::log::LogError;

/// Reason why work with the database ended.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database.
    Database(tokio_postgres::Error),
    /// The pool of connections could not give one.
    Pool(deadpool_postgres::PoolError),
    /// The work itself.
    Log(LogError),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<deadpool_postgres::PoolError> for Fault {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => Self::Database(error),
            other => Self::Pool(other),
        }
    }
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl Fault {
    /// Returns true if the connection is gone, so that it is not known whether the work was done.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Database(error) => error.code().map_or_else(
                || error.is_closed() || is_io(error),
                |code| {
                    code.code().starts_with("08")
                        || [
                            SqlState::ADMIN_SHUTDOWN,
                            SqlState::CRASH_SHUTDOWN,
                            SqlState::CANNOT_CONNECT_NOW,
                        ]
                        .contains(code)
                },
            ),
            Self::Pool(_) => true,
            Self::Log(_) => false,
        }
    }

    /// Returns true if the database undid the work because of other work at the same time.
    pub(super) fn is_conflict(&self) -> bool {
        let code = match self {
            Self::Database(error) => error.code(),
            _ => None,
        };
        code.is_some_and(|code| {
            [
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::T_R_SERIALIZATION_FAILURE,
            ]
            .contains(code)
        })
    }

    /// Converts the error for the caller.
    pub(super) fn told(self) -> LogError {
        match self {
            Self::Log(error) => error,
            Self::Pool(error) => LogError::Failed(error.to_string()),
            Self::Database(error) => database(&error),
        }
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

fn database(error: &tokio_postgres::Error) -> LogError {
    let text = described(error);
    let Some(code) = error.code() else {
        return LogError::Failed(text);
    };
    match code.code() {
        "53100" => LogError::Full(format!("{text}; make space on the machine of the database")),
        "53200" => LogError::Full(text),
        "25006" | "42501" => LogError::ReadOnly(text),
        "55P03" => LogError::Locked(text),
        "22021" => LogError::Failed(format!("{text}; text with a NUL character cannot be stored")),
        class if class.starts_with("XX") => LogError::Damaged {
            what: "the database".to_owned(),
            why: text,
        },
        _ => LogError::Failed(text),
    }
}

/// Returns an error with its cause, on one line.
pub(super) fn described(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    match error.source() {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

/// Builds the error for stored data that cannot be parsed.
pub(super) fn damaged(what: impl Into<String>, why: impl std::fmt::Display) -> LogError {
    LogError::Damaged {
        what: what.into(),
        why: why.to_string(),
    }
}
