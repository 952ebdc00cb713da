//! Commands that ran when the program stopped. They end with the program, and the user learns which.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Entry;
use crate::event::Event;

/// Start of the notice about jobs, which also marks them as reported.
const JOBS: &str = "Background jobs that ended with Windlass: ";

/// Returns the descriptions of the calls that had started and not ended.
pub(super) fn calls(entries: &[Entry]) -> Vec<String> {
    let mut open: Vec<(&str, &str)> = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::StepStart { call_id, title, .. } => open.push((call_id.as_str(), title)),
            Event::StepComplete { call_id, .. } => open.retain(|(id, _)| *id != call_id.as_str()),
            event if event.is_terminal() => open.clear(),
            _ => {}
        }
    }
    open.into_iter().map(|(_, title)| title.to_owned()).collect()
}

/// Returns the notice about background jobs that ran when the program stopped; `None` if there were none, or
/// they were reported before.
pub fn ended_jobs(entries: &[Entry]) -> Option<Event> {
    let mut running: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in entries {
        match &entry.event {
            Event::ToolResult {
                details: Some(details), ..
            } => {
                let text = |name: &str| details.get(name).and_then(Value::as_str);
                let (Some(job), Some(command)) = (text("job"), text("command")) else {
                    continue;
                };
                match details.get("running").and_then(Value::as_bool) {
                    Some(true) => drop(running.insert(job, command)),
                    _ => drop(running.remove(job)),
                }
            }
            Event::Warning { message } if message.starts_with(JOBS) => running.clear(),
            _ => {}
        }
    }
    let list: Vec<String> = running
        .iter()
        .map(|(job, command)| format!("{job} `{command}`"))
        .collect();
    (!list.is_empty()).then(|| Event::Warning {
        message: format!("{JOBS}{}", list.join(", ")),
    })
}
