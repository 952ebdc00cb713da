//! `cargo xtask order`: lists the functions that a start runs, for the linker to put side by side.
//!
//! Callgrind records them in the released program: `exec` and the terminal UI, each with a turn that makes a call.
//! `xtask/link/cc` uses the list.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::child;
use crate::repo::Root;

/// The list, and the program that removes what differs from one compiler to the next from a name.
const LIST: &str = "xtask/link/start.txt";
const NAMES: &str = "xtask/link/order.awk";
/// Fewer functions than this are not a start.
const FEWEST: usize = 4_000;
/// Names of the recorded runs.
const EXEC: &str = "exec";
const TERMINAL: &str = "terminal";
/// A question that the simulated model answers with a call.
const QUESTION: &str = "list the files";

pub(crate) fn command(root: &Root) -> Result<()> {
    for tool in ["valgrind", "script", "nm"] {
        let found = child::succeeds(child::command(root, tool).arg("--version"));
        ensure!(
            found,
            "`{tool}` is missing; on Debian: apt-get install valgrind bsdutils binutils"
        );
    }
    let build = [
        "rustc",
        "--release",
        "--package",
        "windlass",
        "--bin",
        "windlass",
        "--",
        "-Cstrip=none",
    ];
    child::run(child::cargo(root).args(build))?;
    let target = root.target_dir()?;
    let folder = target.join("order");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the last run")?;
    }
    let recorder = Recorder {
        root,
        program: target.join("release/windlass"),
        home: folder.join("home"),
        folder,
    };
    fs::create_dir_all(recorder.work()).context("cannot create a folder for the runs")?;
    recorder.exec()?;
    recorder.terminal()?;
    let names = recorder.names()?;
    ensure!(
        names.len() >= FEWEST,
        "only {} functions were recorded",
        names.len()
    );
    let list: String = names.iter().flat_map(|name| [name, "\n"]).collect();
    fs::write(root.join(LIST), list).with_context(|| format!("cannot write {LIST}"))?;
    println!(
        "{LIST}: {} functions; build the program again to use them",
        names.len()
    );
    Ok(())
}

/// Runs the program under Callgrind.
struct Recorder<'a> {
    root: &'a Root,
    program: PathBuf,
    folder: PathBuf,
    home: PathBuf,
}

impl Recorder<'_> {
    fn work(&self) -> PathBuf {
        self.home.join("work")
    }

    /// Prepares a command with a home of its own.
    fn prepared(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("TERM", "xterm-256color");
        command
    }

    /// Arguments of Valgrind that record a run of the program.
    fn recording(&self, run: &str) -> Vec<String> {
        let output = self.folder.join(run);
        let output = format!("--callgrind-out-file={}", output.display());
        let program = self.program.display().to_string();
        vec![
            "-q".into(),
            "--tool=callgrind".into(),
            output,
            "--demangle=no".into(),
            program,
        ]
    }

    fn exec(&self) -> Result<()> {
        let server = Server::start(self.prepared(&self.program))?;
        let mut command = self.prepared("valgrind");
        command
            .env("ANTHROPIC_BASE_URL", &server.url)
            .env("ANTHROPIC_API_KEY", "simulated")
            .args(self.recording(EXEC))
            .args(["exec", "--provider", "anthropic", QUESTION]);
        child::run(&mut command)
    }

    fn terminal(&self) -> Result<()> {
        let line = format!("valgrind {}", self.recording(TERMINAL).join(" "));
        let mut child = self
            .prepared("script")
            .env("WINDLASS_PROVIDER", "sim")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start `script`")?;
        let mut keys = child.stdin.take().context("no standard input")?;
        for (wait, typed) in [(4, QUESTION), (1, "\r"), (8, "/quit"), (1, "\r")] {
            std::thread::sleep(Duration::from_secs(wait));
            keys.write_all(typed.as_bytes())?;
        }
        let status = child.wait()?;
        ensure!(status.success(), "the terminal UI failed ({status})");
        Ok(())
    }

    /// The recorded functions of the program, without what differs from one compiler to the next: those of `exec` first,
    /// which most starts run.
    fn names(&self) -> Result<Vec<String>> {
        let symbols = ["--defined-only", "--format=just-symbols"];
        let own = child::output(Command::new("nm").args(symbols).arg(&self.program))?;
        let own: BTreeSet<&str> = own.lines().collect();
        let mut names = Vec::new();
        for run in [EXEC, TERMINAL] {
            let called = functions(&self.folder.join(run))?;
            let called = called.into_iter().filter(|name| own.contains(name.as_str()));
            let file = self.folder.join("symbols");
            fs::write(&file, called.map(|name| name + "\n").collect::<String>())?;
            let mut awk = child::command(self.root, "awk");
            let bare = child::output(awk.args(["-v", "only_bare=1", "-f", NAMES]).arg(&file))?;
            let known: BTreeSet<String> = names.iter().cloned().collect();
            let bare: BTreeSet<String> = bare.lines().map(str::to_owned).collect();
            names.extend(bare.difference(&known).cloned());
        }
        Ok(names)
    }
}

/// Returns the functions in a file of Callgrind, which names each one once: `fn=(12) name`.
fn functions(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text
        .lines()
        .filter(|line| line.starts_with("fn=") || line.starts_with("cfn="));
    let names = lines.filter_map(|line| line.split_once(") "));
    // A recursive call has the depth at its end.
    Ok(names
        .map(|(_, name)| name.split('\'').next().unwrap_or(name).to_owned())
        .collect())
}

/// The simulated model, which ends when it is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(mut program: Command) -> Result<Self> {
        let mut child = program.args(["sim", "serve"]).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no standard output")?;
        let mut server = Self {
            child,
            url: String::new(),
        };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        server.url = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        ensure!(
            server.url.starts_with("http"),
            "the simulated model printed {line:?}"
        );
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
