//! Where things are, and how the three processes of a run are started.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::process::{self, Cost, Memory};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// What runs are made with.
pub(crate) struct Lab {
    windlass: PathBuf,
    own: PathBuf,
    folder: TempDir,
    /// Fewer and shorter runs.
    pub(crate) quick: bool,
    /// Whether results are written down.
    pub(crate) is_written: bool,
}

/// What the server saw.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// How many connections were made.
    pub(crate) connections: usize,
    /// When each request had arrived as a whole.
    pub(crate) arrivals: Vec<u64>,
}

impl Lab {
    /// Uses the program beside this one unless told otherwise.
    pub(crate) fn new(windlass: Option<PathBuf>, quick: bool) -> Result<Self> {
        let own = std::env::current_exe()?;
        let windlass = match windlass {
            Some(given) => given
                .canonicalize()
                .with_context(|| format!("cannot find {}", given.display()))?,
            None => own.with_file_name("windlass"),
        };
        if !windlass.is_file() {
            bail!("the program to measure is not built: cargo build --release -p windlass");
        }
        // Beside the program, and not among everybody's temporary files: the wall goes around its neighbours one by one.
        let folder = tempfile::tempdir_in(own.parent().unwrap_or(Path::new(".")))?;
        for name in ["work", "temp", "user"] {
            std::fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self {
            windlass,
            own,
            folder,
            quick,
            is_written: false,
        })
    }

    /// Starts a server for one run.
    pub(crate) fn serve(&self, options: &ServeOptions) -> Result<Server> {
        let mut command = Command::new(&self.own);
        command.args(["serve", "--wire", options.wire.name()]);
        command.arg("--calls").arg(options.calls.to_string());
        command.arg("--deltas").arg(options.deltas.to_string());
        command.arg("--delay-ms").arg(options.delay_ms.to_string());
        if options.burst {
            command.arg("--burst");
        }
        if options.talk {
            command.arg("--talk");
        }
        if let Some(path) = &options.record {
            command.arg("--record").arg(path);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut port = String::new();
        output.read_line(&mut port)?;
        let port = port.trim().parse().context("the server did not start")?;
        Ok(Server { child, output, port })
    }

    /// Lets Windlass work against `server`.
    pub(crate) fn agent(&self, server: &Server, wire: Wire, format: &str) -> Command {
        let mut command = self.command(&self.windlass);
        command.args([
            "exec",
            "--provider",
            wire.preset(),
            "-o",
            format,
            "-c",
            "agent.max_iterations=2000",
        ]);
        let url = format!("http://127.0.0.1:{}", server.port);
        match wire {
            Wire::Anthropic => command
                .env("ANTHROPIC_API_KEY", "bench")
                .env("ANTHROPIC_BASE_URL", url),
            Wire::Chat | Wire::Responses => command
                .env("OPENAI_API_KEY", "bench")
                .arg("-c")
                .arg(format!("providers.{}.base_url={url}/v1", wire.preset())),
        };
        command.arg("Run the commands, then answer.");
        command
    }

    /// Sends recorded requests in one of our own modes.
    pub(crate) fn client(&self, mode: &str, server: &Server, requests: &Path) -> Command {
        let mut command = self.command(&self.own);
        command
            .arg(mode)
            .arg("--port")
            .arg(server.port.to_string())
            .arg("--requests")
            .arg(requests);
        command
    }

    /// The floor: recorded requests, and commands behind the same wall.
    pub(crate) fn floor(&self, server: &Server, requests: &Path) -> Command {
        let mut command = self.client("floor", server, requests);
        command.arg("--helper").arg(&self.windlass);
        command
    }

    /// The loop as a library that keeps nothing, with the same prompt, and commands behind the same wall.
    pub(crate) fn alone(&self, server: &Server, requests: &Path) -> Command {
        let mut command = self.client("alone", server, requests);
        command.arg("--helper").arg(&self.windlass);
        command
    }

    /// Starts a program that does nothing, without and with the wall.
    pub(crate) fn launch(&self, rounds: usize) -> Command {
        let mut command = self.command(&self.own);
        command.arg("launch").arg("--helper").arg(&self.windlass);
        command.arg("--rounds").arg(rounds.to_string());
        command
    }

    /// A tool of Windlass on its own, in `folder`.
    pub(crate) fn tool(&self, folder: &Path, name: &str, arguments: &str) -> Command {
        let mut command = self.command(&self.windlass);
        command
            .current_dir(folder)
            .args(["tools", "run", name, arguments]);
        command
    }

    /// Another program in the same surroundings.
    pub(crate) fn other(&self, folder: &Path, program: &str) -> Command {
        let mut command = self.command(Path::new(program));
        command.current_dir(folder);
        command
    }

    /// One of our own modes in a folder.
    pub(crate) fn own(&self, folder: &Path) -> Command {
        let mut command = self.command(&self.own);
        command.current_dir(folder);
        command
    }

    /// The program under test.
    pub(crate) fn windlass(&self) -> &Path {
        &self.windlass
    }

    /// A place for what a figure needs.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A place for what is kept from one run to the next, beside what is built.
    pub(crate) fn lasting(&self, name: &str) -> PathBuf {
        let built = self.own.ancestors().nth(2).unwrap_or(Path::new("."));
        built.join(name)
    }

    /// The same surroundings for whoever is measured: an empty folder and a small environment.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path().join("work")).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
            .env("HOME", self.folder.path().join("user"))
            .env("TMPDIR", self.folder.path().join("temp"))
            .env("WINDLASS_HOME", self.folder.path().join("home"));
        command.env("LANG", "C.UTF-8").env("TERM", "dumb");
        command
    }

    /// Records the requests of a run of Windlass.
    pub(crate) fn record(&self, wire: Wire, calls: usize) -> Result<PathBuf> {
        let path = self.folder.path().join(format!("{}-{calls}", wire.name()));
        if !path.exists() {
            let options = ServeOptions {
                record: Some(path.clone()),
                ..ServeOptions::new(wire, calls)
            };
            let (_, log) = self.measure(&options, Memory::Ignored, |server| {
                self.agent(server, wire, "text")
            })?;
            if log.arrivals.len() != calls + 1 {
                bail!("{} requests came, and not {}", log.arrivals.len(), calls + 1);
            }
        }
        Ok(path)
    }

    /// Runs one client against a server of its own.
    pub(crate) fn measure(
        &self,
        options: &ServeOptions,
        memory: Memory,
        client: impl FnOnce(&Server) -> Command,
    ) -> Result<(Cost, Log)> {
        let server = self.serve(options)?;
        let cost = process::run(&mut client(&server), memory)?;
        Ok((cost, server.finish()?))
    }
}

/// A server that runs.
pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Where it listens.
    pub(crate) port: u16,
}

impl Server {
    /// Ends it and takes what it saw.
    pub(crate) fn finish(mut self) -> Result<Log> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        self.child.wait()?;
        let (connections, arrivals) = text.split_once('\n').context("the server said nothing")?;
        let arrivals: Result<Vec<u64>, _> = arrivals.split_ascii_whitespace().map(str::parse).collect();
        Ok(Log {
            connections: connections.parse()?,
            arrivals: arrivals?,
        })
    }
}
