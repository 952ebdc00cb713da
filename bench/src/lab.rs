//! Paths, and the three processes of a run.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::figures::CodeData;
use crate::process::{self, Cost, Memory};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Setup for the runs.
pub(crate) struct Lab {
    windlass: PathBuf,
    own: PathBuf,
    folder: TempDir,
    /// True for fewer and shorter runs.
    pub(crate) quick: bool,
    /// True if results are written to a file.
    pub(crate) is_written: bool,
    /// Data for the code index.
    pub(crate) code: CodeData,
    /// Data of the memory benchmark, and the file of the embedding model.
    pub(crate) memory: (Option<PathBuf>, Option<PathBuf>),
}

/// Record of the server.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// Number of connections.
    pub(crate) connections: usize,
    /// Times at which each request had arrived completely.
    pub(crate) arrivals: Vec<u64>,
}

impl Lab {
    /// Uses the program next to this one by default.
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
        // Next to the program, not in the shared temporary folder: the sandbox excludes each of its
        // neighbours separately.
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
            code: CodeData {
                issues: None,
                repositories: None,
                all_issues: false,
            },
            memory: (None, None),
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
        if options.write {
            command.arg("--write");
        }
        if options.many {
            command.arg("--many");
        }
        if options.agents {
            command.arg("--agents");
        }
        if options.stamp {
            command.arg("--stamp");
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

    /// Returns a command that runs Windlass against `server`.
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

    /// Returns a command that serves an editor, with `server` as the model.
    pub(crate) fn editor(&self, server: &Server) -> Command {
        let mut command = self.command(&self.windlass);
        command.args([
            "acp",
            "--provider",
            "anthropic",
            "-c",
            "agent.max_iterations=2000",
        ]);
        command
            .env("ANTHROPIC_API_KEY", "bench")
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", server.port));
        command
    }

    /// Returns a command that serves sessions over HTTP on any free port, with `server` as the model.
    pub(crate) fn sessions(&self, server: &Server) -> Command {
        let mut command = self.command(&self.windlass);
        command.args(["serve", "--listen", "127.0.0.1:0", "--provider", "anthropic"]);
        command
            .env("ANTHROPIC_API_KEY", "bench")
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", server.port));
        command
    }

    /// Returns a command that creates a token for all of the server's routes.
    pub(crate) fn token(&self) -> Command {
        let name = format!("bench-{}", crate::clock::now());
        let mut command = self.command(&self.windlass);
        command.args(["token", "create", &name, "--scope", "admin"]);
        command
    }

    /// Returns a command that prints a login link for a server.
    pub(crate) fn login_link(&self, url: &str) -> Command {
        let mut command = self.command(&self.windlass);
        command.args(["token", "link", "--url", url]);
        command
    }

    /// Returns a command that revokes a token.
    pub(crate) fn revoke(&self, token: &str) -> Command {
        let mut command = self.command(&self.windlass);
        command.args(["token", "revoke", token]);
        command
    }

    /// Returns a command that sends recorded requests in one of our own modes.
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

    /// Returns the command of the floor: recorded requests, and commands in the same sandbox.
    pub(crate) fn floor(&self, server: &Server, requests: &Path) -> Command {
        let mut command = self.client("floor", server, requests);
        command.arg("--helper").arg(&self.windlass);
        command
    }

    /// Returns the command of the floor without any sandbox.
    pub(crate) fn unconfined(&self, server: &Server, requests: &Path) -> Command {
        self.client("floor", server, requests)
    }

    /// Returns the command of the loop as a library, without a store, with the same prompt and commands in
    /// the same sandbox.
    pub(crate) fn alone(&self, server: &Server, requests: &Path) -> Command {
        let mut command = self.client("alone", server, requests);
        command.arg("--helper").arg(&self.windlass);
        command
    }

    /// Returns a command that runs Windlass in a folder.
    pub(crate) fn windlass_in(&self, folder: &Path) -> Command {
        let mut command = self.command(&self.windlass);
        command.current_dir(folder);
        command
    }

    /// Returns a command that starts a program that does nothing, without and with the sandbox.
    pub(crate) fn launch(&self, rounds: usize) -> Command {
        let mut command = self.command(&self.own);
        command.arg("launch").arg("--helper").arg(&self.windlass);
        command.arg("--rounds").arg(rounds.to_string());
        command
    }

    /// Returns a command that runs one tool of Windlass in `folder`.
    pub(crate) fn tool(&self, folder: &Path, name: &str, arguments: &str) -> Command {
        let mut command = self.command(&self.windlass);
        command
            .current_dir(folder)
            .args(["tools", "run", name, arguments]);
        command
    }

    /// Returns a command for another program in the same environment.
    pub(crate) fn other(&self, folder: &Path, program: &str) -> Command {
        let mut command = self.command(Path::new(program));
        command.current_dir(folder);
        command
    }

    /// Returns a command for one of our own modes in a folder.
    pub(crate) fn own(&self, folder: &Path) -> Command {
        let mut command = self.command(&self.own);
        command.current_dir(folder);
        command
    }

    /// Returns the path of the program under test.
    pub(crate) fn windlass(&self) -> &Path {
        &self.windlass
    }

    /// Returns the path of this program.
    pub(crate) fn own_program(&self) -> &Path {
        &self.own
    }

    /// Returns a path for the files of a figure.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a path for files kept from one run to the next, next to the build output.
    pub(crate) fn lasting(&self, name: &str) -> PathBuf {
        let built = self.own.ancestors().nth(2).unwrap_or(Path::new("."));
        built.join(name)
    }

    /// Returns a command in the same environment for every program: an empty folder and few variables.
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
        // As on any real machine. Without it, the shell looks the user up.
        command.env("SHELL", "/bin/bash");
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
                bail!("{} requests arrived instead of {}", log.arrivals.len(), calls + 1);
            }
        }
        Ok(path)
    }

    /// Runs one client against its own server.
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

/// A running server.
pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Port it listens on.
    pub(crate) port: u16,
}

impl Server {
    /// Stops the server and returns its record.
    pub(crate) fn finish(mut self) -> Result<Log> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        self.child.wait()?;
        let (connections, arrivals) = text.split_once('\n').context("the server printed nothing")?;
        let arrivals: Result<Vec<u64>, _> = arrivals.split_ascii_whitespace().map(str::parse).collect();
        Ok(Log {
            connections: connections.parse()?,
            arrivals: arrivals?,
        })
    }
}
