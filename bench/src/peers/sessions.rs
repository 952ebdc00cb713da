//! Sessions of many messages, in the format of each program.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Guest, MODEL};
use crate::lab::Lab;
use crate::process::{self, Memory};
use crate::server::ServeOptions;
use crate::terminal::Terminal;

/// Start of the last message.
pub(crate) const LAST: &str = "LASTMESSAGE";
/// Length of a message in bytes.
const LENGTH: usize = 300;
/// Maximum time for a short turn.
const LIMIT: Duration = Duration::from_secs(60);

/// Creates the session through the store, as for the session figures: with calls and results, and more than
/// 100 MB.
pub(super) fn windlass(lab: &Lab, home: &Path, messages: usize) -> Result<String> {
    let mut fill = lab.own(&lab.path("work"));
    fill.args(["fill", "--session", "big", "--messages", &messages.to_string()]);
    fill.arg("--place").arg(lab.path("work"));
    fill.arg("--database").arg(home.join("data/windlass.db"));
    process::run(&mut fill, Memory::Ignored)?;
    Ok("big".to_owned())
}

/// Writes one line for each message.
pub(super) fn pi(home: &Path, work: &Path, messages: usize) -> Result<String> {
    let path = home.join("big.jsonl");
    let mut file = BufWriter::new(File::create(&path)?);
    let time = "2026-11-01T00:00:00.000Z";
    let lines = [
        json!({"type": "session", "version": 3, "id": "0192c0de-0000-7000-8000-000000000001", "timestamp": time,
               "cwd": work}),
        json!({"type": "model_change", "id": "f0000000", "parentId": null, "timestamp": time, "provider": "bench",
               "modelId": MODEL}),
    ];
    for line in lines {
        writeln!(file, "{line}")?;
    }
    let mut parent = "f0000000".to_owned();
    let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
    let usage =
        json!({"input": 10, "output": 80, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 90, "cost": cost});
    for number in 0..messages {
        let (text, stamp) = (text(number, messages), 1_793_491_200_000_u64 + number as u64);
        let message = if number % 2 == 0 {
            json!({"role": "user", "content": text, "timestamp": stamp})
        } else {
            json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "openai-completions",
                   "provider": "bench", "model": MODEL, "usage": usage, "stopReason": "stop", "timestamp": stamp})
        };
        let id = format!("{number:08x}");
        let line =
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message});
        writeln!(file, "{line}")?;
        parent = id;
    }
    file.flush()?;
    Ok(path.display().to_string())
}

/// Lets codex record two turns, and repeats its record of the second one.
pub(super) fn codex(lab: &Lab, guest: &Guest, messages: usize) -> Result<String> {
    let scratch = Guest {
        home: lab.path("recorded-codex"),
        ..guest.clone()
    };
    fs::create_dir_all(&scratch.home)?;
    let notes = record(lab, &scratch)?;
    let lines: Result<Vec<Value>, _> = fs::read_to_string(&notes)?
        .lines()
        .map(serde_json::from_str)
        .collect();
    let lines = lines.context("the record is not JSON")?;
    let kind = |line: &Value| line.pointer("/payload/type").and_then(Value::as_str) == Some("task_started");
    let second = lines.iter().rposition(kind).context("no turn was recorded")?;
    let (head, turn) = lines.split_at_checked(second).context("no turn was recorded")?;
    let session = head
        .first()
        .and_then(|line| line.pointer("/payload/id")?.as_str());
    let session = session.context("a session without an id")?;
    let path = guest.home.join(notes.strip_prefix(&scratch.home)?);
    fs::create_dir_all(path.parent().context("the record has no folder")?)?;
    let mut file = BufWriter::new(File::create(&path)?);
    let mut ordinal = 0_u64;
    let mut write = |mut line: Value| -> Result<()> {
        if let Some(field) = line.get_mut("ordinal") {
            *field = ordinal.into();
            ordinal += 1;
        }
        Ok(writeln!(file, "{line}")?)
    };
    for line in head {
        write(line.clone())?;
    }
    let is_kept = |line: &&Value| line.get("type").and_then(Value::as_str) != Some("token_usage_record");
    for number in (2..messages).step_by(2) {
        for line in turn.iter().filter(is_kept) {
            let mut line = line.clone();
            rename(&mut line, session, number, messages);
            write(line)?;
        }
    }
    file.flush()?;
    Ok(session.to_owned())
}

/// Runs two short turns and returns the file that records them.
fn record(lab: &Lab, guest: &Guest) -> Result<PathBuf> {
    let server = lab.serve(&ServeOptions {
        talk: true,
        ..ServeOptions::new(guest.who.wire(), 0)
    })?;
    let mut terminal = Terminal::start(guest.command(lab, server.port, None)?)?;
    let who = guest.who;
    terminal.wait("composer", LIMIT, |screen| who.is_ready(&screen.contents()))?;
    for turn in 1..=2 {
        terminal.settle(LIMIT)?;
        terminal.write(QUESTION)?;
        terminal.press("\r")?;
        let is_done = || {
            let notes = newest(&guest.home.join(".codex/sessions"))?;
            let text = fs::read_to_string(&notes).ok()?;
            (text.matches(r#""task_complete""#).count() >= turn).then_some(notes)
        };
        for _ in 0..200 {
            if is_done().is_some() {
                break;
            }
            terminal.rest(Duration::from_millis(100))?;
        }
    }
    drop(terminal);
    server.finish()?;
    newest(&guest.home.join(".codex/sessions")).context("nothing was recorded")
}

/// Prompt of a recorded turn.
const QUESTION: &str = "question";
/// Start of the model's answer to it.
const ANSWER: &str = "word0";

/// Returns the only file in a tree.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let file = entries.iter().find(|path| path.is_file()).cloned();
    file.or_else(|| entries.iter().find_map(|path| newest(path)))
}

/// Replaces the ids in a record, and its texts.
fn rename(value: &mut Value, session: &str, number: usize, messages: usize) {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| rename(value, session, number, messages)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| rename(value, session, number, messages)),
        Value::String(string) => {
            if string == QUESTION {
                *string = text(number, messages);
            } else if string.starts_with(ANSWER) {
                *string = text(number + 1, messages);
            } else if string == "msg_1" || string == "resp_1" {
                *string = format!("{string}_{number}");
            } else if string != session && ends_in_id(string) {
                let kept = string.len() - 8;
                string.truncate(kept);
                string.push_str(&format!("{number:08x}"));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns true if a string is an id of five groups, or ends in one.
fn ends_in_id(string: &str) -> bool {
    let groups: Vec<&str> = string.rsplitn(5, '-').collect();
    let [last, fourth, third, second, first] = groups.as_slice() else {
        return false;
    };
    let lengths = [last.len(), fourth.len(), third.len(), second.len()];
    let is_hex = |text: &&str| text.chars().all(|letter| letter.is_ascii_hexdigit());
    lengths == [12, 4, 4, 4] && first.len() >= 8 && [*last, *fourth, *third, *second].iter().all(is_hex)
}

/// Returns the text of a message.
fn text(number: usize, messages: usize) -> String {
    let mut text = if number + 1 == messages {
        format!("{LAST} ")
    } else {
        String::new()
    };
    text.push_str(&format!("message {number}"));
    let mut word = number;
    while text.len() < LENGTH {
        word += 1;
        text.push_str(&format!(" word{}", word * 7_919 % 5_003));
    }
    text
}

/// Returns true if the screen shows the session's last message.
pub(crate) fn shows_last(who: super::Who, screen: &str) -> bool {
    match who {
        // Nothing else on its screen contains this.
        super::Who::Windlass => screen.contains("word"),
        super::Who::Codex | super::Who::Pi => screen.contains(LAST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: a repeated turn has its own ids and texts, and stays in its session.
    #[test]
    fn a_repeated_turn_is_another() {
        let session = "01a1df91-bce4-7c70-b826-fc3ed896a397";
        let mut line = json!({"session": session, "turn": "msg_01a1df91-d2cf-76f2-b9aa-7e0eec5c5c07",
                              "said": ["question", "word0 \n\nTHEEND"], "mode": "de-fa-ul-t0-00", "id": "msg_1"});
        rename(&mut line, session, 18, 20);
        let turn = line.get("turn").and_then(Value::as_str);
        assert_eq!(turn, Some("msg_01a1df91-d2cf-76f2-b9aa-7e0e00000012"));
        assert_eq!(line.get("session").and_then(Value::as_str), Some(session));
        assert_eq!(line.get("mode").and_then(Value::as_str), Some("de-fa-ul-t0-00"));
        assert_eq!(line.get("id").and_then(Value::as_str), Some("msg_1_18"));
        let said = line
            .pointer("/said/1")
            .and_then(Value::as_str)
            .unwrap_or_default();
        assert!(said.starts_with(LAST), "{said}");
    }
}
