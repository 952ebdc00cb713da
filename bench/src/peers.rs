//! Other programs of the kind, to compare their terminal UI: their installation and their commands.

pub(crate) mod sessions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::figures::ServerEntry;
use crate::lab::Lab;
use crate::wire::Wire;

/// Program on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Windlass,
    Codex,
    Pi,
}

const OPENCODE: &str = "1.18.33";
const CODEX: &str = "0.166.0";
/// Newest version whose dependencies can all be installed.
const PI: &str = "0.87.1";
/// Version of Node.js for pi.
const NODE: &str = "24.21.0";
/// Name of the model.
const MODEL: &str = "bench-model";

impl Who {
    pub(crate) const ALL: [Self; 3] = [Self::Windlass, Self::Codex, Self::Pi];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Windlass => "windlass",
            Self::Codex => "codex",
            Self::Pi => "pi",
        }
    }

    /// Returns the wire it uses.
    pub(crate) const fn wire(self) -> Wire {
        match self {
            Self::Windlass => Wire::Anthropic,
            Self::Codex => Wire::Responses,
            Self::Pi => Wire::Chat,
        }
    }

    /// Returns true if a screen shows an input and the model's name.
    pub(crate) fn is_ready(self, screen: &str) -> bool {
        match self {
            Self::Windlass => screen.contains("What should I do?") && screen.contains("anthropic/"),
            Self::Codex => screen
                .rsplit_once("\n› ")
                .is_some_and(|(_, below)| below.contains(MODEL)),
            Self::Pi => {
                let is_rule =
                    |line: &&str| line.chars().count() > 100 && line.chars().all(|letter| letter == '─');
                screen.contains(MODEL) && screen.lines().filter(is_rule).count() >= 2
            }
        }
    }
}

/// An available program.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    who: Who,
    /// The program, and its first arguments.
    command: Vec<PathBuf>,
}

impl Program {
    /// Returns Windlass and the available peers. Reports why a peer is not available.
    pub(crate) fn all(lab: &Lab) -> Vec<Self> {
        let folder = lab.lasting("peers");
        let mut programs = Vec::new();
        for who in Who::ALL {
            let command = match who {
                Who::Windlass => Ok(vec![lab.windlass().to_owned()]),
                Who::Codex => codex(&folder),
                Who::Pi => pi(&folder),
            };
            match command {
                Ok(command) => programs.push(Self { who, command }),
                Err(error) => eprintln!("  without {}: {error:#}", who.name()),
            }
        }
        programs
    }
}

/// A program with its own home, which holds its configuration and its sessions.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    pub(crate) who: Who,
    /// The program, and its first arguments.
    program: Vec<PathBuf>,
    home: PathBuf,
    work: PathBuf,
}

impl Guest {
    /// Creates a home of this name for a program.
    pub(crate) fn new(lab: &Lab, program: &Program, home: &str) -> Result<Self> {
        let who = program.who;
        let home = lab.path(&format!("{home}-{}", who.name()));
        fs::create_dir_all(&home)?;
        Ok(Self {
            who,
            program: program.command.clone(),
            home,
            work: lab.path("work").canonicalize()?,
        })
    }

    /// Returns a command that opens a terminal UI with the model at `port`.
    pub(crate) fn command(&self, lab: &Lab, port: u16, session: Option<&str>) -> Result<Command> {
        let (program, first) = self.program.split_first().context("no program")?;
        let mut command = lab.other(&self.work, &program.display().to_string());
        command
            .args(first)
            .env("HOME", &self.home)
            .env("SHELL", "/bin/sh");
        match self.who {
            Who::Windlass => {
                command
                    .env("WINDLASS_HOME", &self.home)
                    .env("ANTHROPIC_API_KEY", "bench")
                    .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
                    .args(["--provider", Wire::Anthropic.preset()]);
                command.args(session.map(|id| ["--resume", id]).into_iter().flatten());
            }
            Who::Codex => {
                self.set_up_codex(port)?;
                command.env("BENCH_API_KEY", "bench").arg("--no-daemon");
                command.args(session.map(|id| ["resume", id]).into_iter().flatten());
            }
            Who::Pi => {
                self.set_up_pi(port)?;
                let switches = [
                    ("PI_OFFLINE", "1"),
                    ("PI_SKIP_VERSION_CHECK", "1"),
                    ("PI_TELEMETRY", "0"),
                ];
                command.envs(switches);
                command.args(session.map(|file| ["--session", file]).into_iter().flatten());
            }
        }
        Ok(command)
    }

    /// Creates a session of this many messages and returns the argument that opens it.
    pub(crate) fn fill(&self, lab: &Lab, messages: usize) -> Result<String> {
        match self.who {
            Who::Windlass => sessions::windlass(lab, &self.home, messages),
            Who::Codex => sessions::codex(lab, self, messages),
            Who::Pi => sessions::pi(&self.home, &self.work, messages),
        }
    }

    fn set_up_codex(&self, port: u16) -> Result<()> {
        let folder = self.home.join(".codex");
        fs::create_dir_all(&folder)?;
        let work = self.work.display();
        let text = format!(
            r#"model = "{MODEL}"
model_provider = "bench"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.bench]
name = "bench"
base_url = "http://127.0.0.1:{port}/v1"
env_key = "BENCH_API_KEY"
wire_api = "responses"

[projects."{work}"]
trust_level = "trusted"

[analytics]
enabled = false

[feedback]
enabled = false

[tui]
screen_reader_detection_done = true

[tui.model_availability_nux]
"gpt-6.1-sol" = 1
"#
        );
        Ok(fs::write(folder.join("config.toml"), text)?)
    }

    fn set_up_pi(&self, port: u16) -> Result<()> {
        let folder = self.home.join(".pi/agent");
        fs::create_dir_all(&folder)?;
        let model = json!({"id": MODEL, "contextWindow": 100_000_000, "maxTokens": 100_000});
        let models = json!({"providers": {"bench": {
            "baseUrl": format!("http://127.0.0.1:{port}/v1"), "api": "openai-completions", "apiKey": "bench",
            "models": [model]}}});
        let settings = json!({"defaultProvider": "bench", "defaultModel": MODEL, "defaultProjectTrust": "always",
            "enableInstallTelemetry": false, "compaction": {"enabled": false}, "lastChangelogVersion": PI});
        fs::write(folder.join("models.json"), models.to_string())?;
        Ok(fs::write(folder.join("settings.json"), settings.to_string())?)
    }
}

/// Returns a command that lets Codex answer one prompt without a terminal, with the model at `port` and these MCP servers.
pub(crate) fn codex_exec(lab: &Lab, port: u16, servers: &[ServerEntry]) -> Result<Command> {
    let program = Program {
        who: Who::Codex,
        command: codex(&lab.lasting("peers"))?,
    };
    let guest = Guest::new(lab, &program, &format!("servers-{}", servers.len()))?;
    guest.set_up_codex(port)?;
    let mut text = fs::read_to_string(guest.home.join(".codex/config.toml"))?;
    for (name, command, arguments) in servers {
        text.push_str(&format!(
            "\n[mcp_servers.{name}]\ncommand = {command:?}\nargs = {arguments:?}\n"
        ));
    }
    fs::write(guest.home.join(".codex/config.toml"), text)?;
    let (codex, _) = guest.program.split_first().context("no program")?;
    let mut command = lab.other(&guest.work, &codex.display().to_string());
    command
        .env("HOME", &guest.home)
        .env("BENCH_API_KEY", "bench")
        .args(["exec", "--skip-git-repo-check", "Run the commands, then answer."]);
    Ok(command)
}

/// Finds the program itself: the script that npm puts before it would add to the start.
fn codex(folder: &Path) -> Result<Vec<PathBuf>> {
    let (short, long) = machine()?;
    let folder = installed(folder, "codex", &[format!("@openai/codex@{CODEX}")])?;
    let program = folder.join(format!(
        "@openai/codex-linux-{short}/vendor/{long}-unknown-linux-musl/bin/codex"
    ));
    Ok(vec![found(program)?])
}

/// Returns opencode's program, for its web page.
pub(crate) fn opencode(folder: &Path) -> Result<PathBuf> {
    let (short, _) = machine()?;
    let package = format!("opencode-linux-{short}");
    let folder = installed(folder, "opencode", &[format!("{package}@{OPENCODE}")])?;
    found(folder.join(package).join("bin/opencode"))
}

fn pi(folder: &Path) -> Result<Vec<PathBuf>> {
    let (short, _) = machine()?;
    let packages = [
        format!("node-linux-{short}@{NODE}"),
        format!("@earendil-works/pi-coding-agent@{PI}"),
    ];
    let folder = installed(folder, "pi", &packages)?;
    let node = folder.join(format!("node-linux-{short}/bin/node"));
    let script = folder.join("@earendil-works/pi-coding-agent/dist/bundle/cli.js");
    Ok(vec![found(node)?, found(script)?])
}

/// Returns the short and the long name that packages use for this kind of machine.
fn machine() -> Result<(&'static str, &'static str)> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Ok(("x64", "x86_64")),
        ("linux", "aarch64") => Ok(("arm64", "aarch64")),
        (system, kind) => bail!("not available for {system} on {kind}"),
    }
}

/// Returns the folder in which npm installed these packages, now or in an earlier run.
fn installed(folder: &Path, name: &str, packages: &[String]) -> Result<PathBuf> {
    let folder = folder.join(name);
    let modules = folder.join("node_modules");
    // A changed version is another list.
    let (done, wanted) = (folder.join("installed"), packages.join(" "));
    if fs::read_to_string(&done).is_ok_and(|had| had == wanted) {
        return Ok(modules);
    }
    fs::create_dir_all(&folder)?;
    eprintln!("  installing {wanted} …");
    let status = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--fetch-retries",
            "1",
            "--prefix",
        ])
        .arg(&folder)
        .args(packages)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("npm is not installed")?;
    if !status.success() {
        bail!("npm cannot install {wanted}");
    }
    fs::write(done, wanted)?;
    Ok(modules)
}

fn found(path: PathBuf) -> Result<PathBuf> {
    if !path.is_file() {
        let name = path.file_name().unwrap_or_default();
        bail!("the package has no {}", name.display());
    }
    Ok(path)
}
