//! Commands that ran when the program stopped. They end with the program, and the user learns which.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Entry;
use crate::dispatch::title;
use crate::event::Event;
use crate::message::{Role, ToolCall};
use crate::tool::raw_arguments;

/// Start of the notice about jobs, which also marks them as reported.
const JOBS: &str = "Background jobs that ended with Windlass: ";

/// Returns notices about the calls and the background jobs that ran when the program stopped and were not
/// reported before. `entries` is the record before it is completed.
pub fn ended_commands(entries: &[Entry]) -> Vec<String> {
    let mut calls: Vec<(&str, String)> = Vec::new();
    let mut jobs: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in entries {
        match &entry.event {
            Event::Message { message } if message.role == Role::Assistant => {
                let described = |call: &ToolCall| title(&call.name, &raw_arguments(&call.input));
                calls = message
                    .calls()
                    .map(|call| (call.id.as_str(), described(call)))
                    .collect();
            }
            Event::ToolResult { call_id, details, .. } => {
                calls.retain(|(id, _)| *id != call_id.as_str());
                details.iter().for_each(|details| note_job(&mut jobs, details));
            }
            Event::Warning { message } if message.starts_with(JOBS) => jobs.clear(),
            event if event.is_terminal() => calls.clear(),
            _ => {}
        }
    }
    let calls = calls
        .iter()
        .map(|(_, title)| format!("Windlass was stopped while this ran: {title}"));
    let jobs: Vec<String> = jobs
        .iter()
        .map(|(job, command)| format!("{job} `{command}`"))
        .collect();
    let jobs = (!jobs.is_empty()).then(|| format!("{JOBS}{}", jobs.join(", ")));
    calls.chain(jobs).collect()
}

fn note_job<'a>(jobs: &mut BTreeMap<&'a str, &'a str>, details: &'a Value) {
    let text = |name: &str| details.get(name).and_then(Value::as_str);
    let (Some(job), Some(command)) = (text("job"), text("command")) else {
        return;
    };
    match details.get("running").and_then(Value::as_bool) {
        Some(true) => drop(jobs.insert(job, command)),
        _ => drop(jobs.remove(job)),
    }
}
