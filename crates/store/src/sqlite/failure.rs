//! Converts SQLite errors.

use rusqlite::ErrorCode;
use windlass_core::log::LogError;

/// Converts a SQLite error for the caller.
pub(super) fn told(error: rusqlite::Error) -> LogError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => LogError::Full(text),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            LogError::ReadOnly(text)
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LogError::Locked(text),
        Some(ErrorCode::NotADatabase) => {
            LogError::Foreign("the file is not a database of Windlass's".to_owned())
        }
        Some(ErrorCode::DatabaseCorrupt) => LogError::Damaged {
            what: "the database".to_owned(),
            why: text,
        },
        _ => LogError::Failed(text),
    }
}

/// Builds the error for stored data that cannot be parsed.
pub(super) fn damaged(what: impl Into<String>, why: impl std::fmt::Display) -> LogError {
    LogError::Damaged {
        what: what.into(),
        why: why.to_string(),
    }
}
