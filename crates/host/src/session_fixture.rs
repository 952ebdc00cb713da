//! OBS-2: exports a session as a test: a script for the simulated model, the user's messages, and the
//! answers.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde_json::{Value, json};
use windlass_api::{Event, FinishReason, Message, Part, Role, SessionInfo};
use windlass_core::log::Entry;
use windlass_core::tool::parse_strict;

use windlass_config::{Problem, ProblemKind};

const RUN: &str = r#"#!/bin/sh
# Runs the session again in an empty folder, with the simulated model in place of the real one, and compares the answers.
# WINDLASS names the program (default: `windlass`), and MODE the permission mode (default: `default`): calls that a
# person approved in the session need MODE=full. Exit code 0 if every answer is the same.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
windlass=${WINDLASS:-windlass}
work=$(mktemp -d)
sim=
trap 'kill "$sim" 2>/dev/null || true; rm -rf "$work"' EXIT
export WINDLASS_HOME="$work/home"
mkdir "$work/folder"
cd "$work/folder"
: > "$work/sim"
"$windlass" sim serve --script "$here/script.yaml" > "$work/sim" &
sim=$!
tries=0
until grep -q '^listening on ' "$work/sim"; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the simulated model did not start" >&2; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$work/sim")
go_on=
for prompt in "$here"/turns/*.prompt; do
    answer=${prompt%.prompt}.answer
    status=0
    "$windlass" exec --quiet --mode "${MODE:-default}" --provider sim -c "providers.sim.base_url=$url" $go_on - \
        < "$prompt" > "$work/answer" || status=$?
    go_on=--continue
    if [ -f "$answer" ]; then
        [ "$status" = 0 ] || { echo "$prompt: exit code $status" >&2; exit 1; }
        cmp "$work/answer" "$answer" || { echo "$prompt: different answer" >&2; exit 1; }
    fi
done
echo "every answer is the same"
"#;

/// Writes the files of a fixture into a new folder. Returns the number of turns.
///
/// # Errors
/// If the folder exists, or the system refuses.
pub fn write(folder: &Path, info: &SessionInfo, entries: &[Entry]) -> Result<usize, Problem> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Problem::usage(format!(
            "{}: already exists; nothing was written",
            folder.display()
        )),
        _ => Problem::new(ProblemKind::Failed, format!("{}: {error}", folder.display())),
    };
    let turns = turns(entries);
    if turns.is_empty() {
        return Err(Problem::usage(format!(
            "session {} has no turns to export as a test",
            info.id
        )));
    }
    fs::DirBuilder::new().mode(0o700).create(folder).map_err(failed)?;
    let turns_folder = folder.join("turns");
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&turns_folder)
        .map_err(failed)?;
    put(&folder.join("script.yaml"), &script(info, entries), 0o600).map_err(failed)?;
    for (number, (prompt, answer)) in turns.iter().enumerate() {
        let name = format!("{:04}", number + 1);
        put(&turns_folder.join(format!("{name}.prompt")), prompt, 0o600).map_err(failed)?;
        if let Some(answer) = answer {
            let text = format!("{}\n", answer.trim_end());
            put(&turns_folder.join(format!("{name}.answer")), &text, 0o600).map_err(failed)?;
        }
    }
    put(&folder.join("run.sh"), RUN, 0o700).map_err(failed)?;
    Ok(turns.len())
}

/// Writes a new file with this mode.
fn put(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(text.as_bytes())
}

/// Returns the user's message and the answer of each turn.
fn turns(entries: &[Entry]) -> Vec<(String, Option<String>)> {
    let mut turns: Vec<(String, Option<String>)> = Vec::new();
    let mut is_open = false;
    for entry in entries {
        match &entry.event {
            Event::Message { message } if message.role == Role::User && !is_open => {
                is_open = true;
                turns.push((said(message), None));
            }
            Event::Final { content, .. } if is_open => {
                is_open = false;
                if let Some(turn) = turns.last_mut() {
                    turn.1 = Some(content.clone());
                }
            }
            event if event.is_terminal() => is_open = false,
            _ => {}
        }
    }
    turns
}

fn said(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Returns the model's replies as a script. JSON is valid YAML.
fn script(info: &SessionInfo, entries: &[Entry]) -> String {
    let mut text = format!(
        "# The replies of session {}, in order. Serve them with\n#   windlass sim serve --script script.yaml\n# or \
         compare a run with them: ./run.sh\non_end: error\nreplies:\n",
        info.id
    );
    let mut seen: Vec<&windlass_api::MessageId> = Vec::new();
    for entry in entries {
        let Event::Message { message } = &entry.event else {
            continue;
        };
        let is_half = matches!(
            message.finish(),
            Some(FinishReason::Canceled | FinishReason::Interrupted)
        );
        if message.role == Role::Assistant && !is_half && !seen.contains(&&message.id) {
            seen.push(&message.id);
            text.push_str(&format!("  - {}\n", reply(message)));
        }
    }
    text
}

fn reply(message: &Message) -> Value {
    let mut reply = serde_json::Map::new();
    let said = message.text();
    if !said.is_empty() {
        reply.insert("text".to_owned(), json!(said));
    }
    let calls: Vec<Value> = message
        .calls()
        .map(|call| match parse_strict(&call.input) {
            Ok(arguments) => json!({"tool": call.name, "args": arguments}),
            Err(_) => json!({"tool": call.name, "raw": call.input}),
        })
        .collect();
    if !calls.is_empty() {
        reply.insert("calls".to_owned(), json!(calls));
    }
    if reply.is_empty() {
        reply.insert("text".to_owned(), json!(""));
    }
    Value::Object(reply)
}
