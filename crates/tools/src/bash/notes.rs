//! Descriptions of how a process ended.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// Placeholder for an empty output.
pub(super) const NO_OUTPUT: &str = "(no output)";

/// Returns notes for the model in addition to the output.
pub(super) fn notes_on(status: ExitStatus, left_running: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if left_running {
        notes.push("[a background process still holds the output; it was left running]".to_owned());
    }
    match status.signal() {
        None if status.success() => {}
        None => notes.push(format!("[{}]", how(status))),
        Some(signal) => notes.push(format!("[killed by signal {}]", signal_name(signal))),
    }
    notes
}

/// Describes the exit status of a process.
pub(super) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {}", signal_name(signal)),
        (None, None) => status.to_string(),
    }
}

/// Combines an output with its notes; `nothing` replaces an empty output.
pub(crate) fn compose(mut text: String, nothing: &str, notes: &[String]) -> String {
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    if text.is_empty() {
        text.push_str(nothing);
    }
    for note in notes {
        text.push('\n');
        text.push_str(note);
    }
    text
}

pub(super) fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        time.as_secs().to_string()
    } else {
        format!("{:.1}", time.as_secs_f64())
    }
}

/// Returns the name of a signal that has the same number on every system, or the number of any other.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        _ => return signal.to_string(),
    };
    name.to_owned()
}
