//! The carrier between servers in these tests: HTTP from server to server.

/// Returns the settings for it.
pub(super) fn settings() -> String {
    String::new()
}
