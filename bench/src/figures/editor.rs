//! Editors: `windlass acp` from its start to the first update, and a turn beside one of `exec`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{median, milliseconds, told};
use crate::clock::now;
use crate::lab::{Lab, Log};
use crate::process::Memory;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Maximum number of messages in a run, so that a broken agent ends it.
const MAX_MESSAGES: usize = 1_000_000;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let (calls, deltas) = if lab.quick { (20, 2_000) } else { (200, 20_000) };
    let many = ServeOptions {
        deltas,
        ..ServeOptions::new(Wire::Anthropic, 0)
    };
    Ok(vec![
        first_update(lab)?,
        turn(
            lab,
            &ServeOptions::new(Wire::Anthropic, calls),
            &format!("{calls} iterations in an editor (floor: exec)"),
        )?,
        turn(lab, &many, &format!("{deltas} deltas in an editor (floor: exec)"))?,
    ])
}

fn first_update(lab: &Lab) -> Result<Figure> {
    let samples = if lab.quick { 5 } else { 41 };
    let server = lab.serve(&ServeOptions::new(Wire::Anthropic, 0))?;
    let mut times = Vec::new();
    for _ in 0..samples {
        let begun = now();
        let mut editor = Editor::start(lab.editor(&server))?;
        editor.open(&lab.path("work"))?;
        editor.until(|message| message["method"] == "session/update")?;
        times.push(milliseconds(begun, now()));
        editor.end()?;
    }
    server.finish()?;
    let time = median(times);
    Ok(Figure {
        name: "start and initialize to the first update".to_owned(),
        agent: told(time),
        floor: "–".to_owned(),
        value: time,
        unit: "ms",
        target: Target::AtMost(20.0),
    })
}

/// Compares the time from the first request's arrival to the end of the turn.
fn turn(lab: &Lab, options: &ServeOptions, name: &str) -> Result<Figure> {
    let rounds = if lab.quick { 3 } else { 11 };
    let (mut editors, mut runs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (cost, log) = lab.measure(options, Memory::Ignored, |server| {
            lab.agent(server, options.wire, "stream-json")
        })?;
        runs.push(milliseconds(first(&log)?, cost.ended));
        let server = lab.serve(options)?;
        let mut editor = Editor::start(lab.editor(&server))?;
        let session = editor.open(&lab.path("work"))?;
        let ended = editor.prompt(&session)?;
        editor.end()?;
        editors.push(milliseconds(first(&server.finish()?)?, ended));
    }
    Ok(Figure {
        name: name.to_owned(),
        value: median(
            editors
                .iter()
                .zip(&runs)
                .map(|(editor, run)| editor / run)
                .collect(),
        ),
        agent: told(median(editors)),
        floor: told(median(runs)),
        unit: "×",
        target: Target::AtMost(1.1),
    })
}

fn first(log: &Log) -> Result<u64> {
    log.arrivals.first().copied().context("no request arrived")
}

/// An editor that runs the agent.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Editor {
    fn start(mut command: Command) -> Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().context("the agent has no input")?;
        let output = BufReader::new(child.stdout.take().context("the agent has no output")?);
        Ok(Self { child, input, output })
    }

    fn send(&mut self, id: u64, method: &str, params: Value) -> Result<()> {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.input, "{message}")?;
        Ok(())
    }

    /// Reads messages until one for which `is_it` returns true.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut line = String::new();
        for _ in 0..MAX_MESSAGES {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                bail!("the agent ended");
            }
            let message: Value = serde_json::from_str(&line)?;
            if is_it(&message) {
                return Ok(message);
            }
        }
        bail!("the agent does not stop talking")
    }

    /// Initializes the agent and creates a session, whose id is returned.
    fn open(&mut self, folder: &std::path::Path) -> Result<String> {
        self.send(1, "initialize", json!({ "protocolVersion": 1 }))?;
        self.send(2, "session/new", json!({ "cwd": folder, "mcpServers": [] }))?;
        let answer = self.until(|message| message["id"] == 2)?;
        let session = answer["result"]["sessionId"].as_str();
        Ok(session.context("there is no session")?.to_owned())
    }

    /// Runs a turn and returns the time of its end.
    fn prompt(&mut self, session: &str) -> Result<u64> {
        let prompt = json!([{ "type": "text", "text": "Run the commands, then answer." }]);
        self.send(
            3,
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )?;
        let answer = self.until(|message| message["id"] == 3)?;
        if answer["result"]["stopReason"] != "end_turn" {
            bail!("the turn ended with {answer}");
        }
        Ok(now())
    }

    fn end(mut self) -> Result<()> {
        drop(self.input);
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the agent ended with {status}");
        }
        Ok(())
    }
}
