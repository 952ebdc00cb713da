//! Network failures as messages that a model can act on.

use std::error::Error;
use std::io;

use windlass_core::tool::ToolError;

use super::guard::Refusal;
use super::target::Target;

/// Explains why a request failed.
pub(super) fn network(error: &reqwest::Error, target: &Target) -> ToolError {
    let host = target.host();
    if let Some(refusal) = cause::<Refusal>(error) {
        return refused(refusal);
    }
    if error.is_dns() {
        return no_address(&innermost(error), host);
    }
    if let Some(reason) = cause::<rustls::Error>(error) {
        return ToolError::Permanent(format!(
            "No secure connection to {host}: {reason}. Check the host, or look for another source."
        ));
    }
    if error.is_connect() && error.is_timeout() {
        return ToolError::Transient(format!(
            "{host} did not accept a connection in time. Try again later, or look for another source."
        ));
    }
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if cause::<io::Error>(error).is_some_and(refused) {
        let port = target.url().port_or_known_default().unwrap_or_default();
        return ToolError::Permanent(format!(
            "{host} refuses connections on port {port}. Check the host and the port in `url`."
        ));
    }
    ToolError::Transient(format!(
        "The request to {host} failed: {}. Try again, or look for another source.",
        innermost(error)
    ))
}

/// Explains why a host is not contacted at all.
pub(super) fn refused(refusal: &Refusal) -> ToolError {
    ToolError::Permanent(format!(
        "Refused: {refusal}. `fetch` reaches public addresses only, unless the user's settings allow this host."
    ))
}

fn no_address(reason: &str, host: &str) -> ToolError {
    // The resolver's errors have no kinds, only texts.
    if reason.contains("Temporary failure") {
        return ToolError::Transient(format!(
            "The name {host} cannot be resolved right now: {reason}. The network may be down; try again later."
        ));
    }
    ToolError::Permanent(format!(
        "The name {host} has no address: {reason}. Check the host in `url`."
    ))
}

/// Returns the first cause of this type. I/O errors may hide their cause inside themselves.
fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = inside.and_then(|inside| cause::<T>(inside)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns the innermost cause, which says what happened; the outer ones only say that something did.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    let mut last: &dyn Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
