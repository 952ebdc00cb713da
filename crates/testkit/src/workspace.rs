//! A folder to work in, with its own home.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use windlass_sim::Protocol;

use crate::{Run, SimServer, must};

/// All wires, for tests that must pass on each.
pub const WIRES: [Protocol; 3] = [Protocol::Anthropic, Protocol::Chat, Protocol::Responses];

/// User and group without files of their own, `nobody` on most systems.
const ORDINARY_USER: u32 = 65534;

/// Returns the name of a wire in the settings.
pub fn settings_name(wire: Protocol) -> &'static str {
    match wire {
        Protocol::Anthropic => "anthropic-messages",
        Protocol::Chat => "openai-chat",
        Protocol::Responses => "openai-responses",
        Protocol::Gemini => "gemini",
    }
}

/// A temporary folder with a project, a home and a `WINDLASS_HOME`, and the binary that runs there.
///
/// When it is dropped, `windlass db check` must find no problem in the database of its runs, unless the test
/// [damaged](Self::expect_damage) it.
#[derive(Debug)]
pub struct Workspace {
    root: TempDir,
    binary: PathBuf,
    /// User that runs the binary, if it is not the one that runs the tests.
    user: Option<u32>,
    /// URL of the store, if it is not the database below `WINDLASS_HOME`.
    store: Option<String>,
    is_damaged: AtomicBool,
}

impl Workspace {
    /// Creates an empty workspace for `binary`, which the test crate knows as
    /// `env!("CARGO_BIN_EXE_windlass")`.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let root = must(
            tempfile::Builder::new().prefix("windlass-test-").tempdir(),
            "create a folder",
        );
        let workspace = Self {
            root,
            binary: binary.into(),
            user: None,
            store: None,
            is_damaged: AtomicBool::new(false),
        };
        for folder in [workspace.path(), workspace.user_home(), workspace.home()] {
            must(fs::create_dir_all(folder), "create a folder");
        }
        workspace
    }

    /// Makes runs from now on use another store.
    #[must_use]
    pub fn with_store(mut self, url: String) -> Self {
        self.store = Some(url);
        self
    }

    /// Declares that the test damages the database, or puts something else in its place.
    pub fn expect_damage(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    /// Returns the project folder, in which runs start.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Returns the user's home.
    pub fn user_home(&self) -> PathBuf {
        self.root.path().join("user")
    }

    /// Returns the value of `WINDLASS_HOME`.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Returns the path of the user's settings file.
    pub fn config_file(&self) -> PathBuf {
        self.home().join("config").join("config.toml")
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        write(&self.path().join(name), content)
    }

    /// Reads a file of the project.
    pub fn read(&self, name: &str) -> String {
        must(fs::read_to_string(self.path().join(name)), name)
    }

    /// Returns true if the project has this file.
    pub fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    /// Writes the user's settings.
    pub fn config(&self, toml: &str) {
        write(&self.config_file(), toml);
    }

    /// Writes settings that use the simulated model `sim-1` over `wire`, and retry without delay.
    pub fn use_sim(&self, sim: &SimServer, wire: Protocol) {
        self.use_sim_with(sim, wire, "");
    }

    /// Like [`Self::use_sim`], with more settings, which may add keys to `[providers.test]` first and tables
    /// after that.
    pub fn use_sim_with(&self, sim: &SimServer, wire: Protocol, more: &str) {
        self.config(&format!(
            "provider = \"test\"\n\n[retry]\nmax_delay_secs = 0\n\n\
             [providers.test]\nwire = \"{}\"\nbase_url = \"{}\"\nmodel = \"sim-1\"\n{more}",
            settings_name(wire),
            sim.url()
        ));
    }

    /// Makes runs from now on those of an ordinary user who owns everything written so far. Changes nothing if
    /// the tests are not run by root, who may use every file.
    pub fn give_to_ordinary_user(&mut self) {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        // Copied by another process: a file that this one has open for writing cannot be run.
        let copy = self.root.path().join("windlass");
        let copied = Command::new("cp").arg(&self.binary).arg(&copy).status();
        assert!(must(copied, "run cp").success(), "the binary can be copied");
        self.binary = copy;
        give(self.root.path());
        self.user = Some(ORDINARY_USER);
    }

    /// Creates a run of the binary in the project folder, with a clean environment.
    pub fn run(&self, args: &[&str]) -> Run {
        self.prepared(Run::new(&self.binary, args))
    }

    /// Like [`Self::run`], on a terminal made by `script`; all output is in `stdout`. `line` is for the
    /// shell, which the binary replaces, because an interrupted shell would have its own exit code.
    pub fn run_on_terminal(&self, line: &str) -> Run {
        let line = format!("exec '{}' {line}", self.binary.display());
        let run = Run::new(Path::new("script"), &["-qec", &line, "/dev/null"]);
        self.prepared(run)
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
    }

    fn prepared(&self, run: Run) -> Run {
        let run = match self.user {
            Some(user) => run.user(user),
            None => run,
        };
        let run = match &self.store {
            Some(url) => run.env("WINDLASS_STORE", url),
            None => run,
        };
        run.cwd(self.path())
            .env("HOME", &self.user_home().display().to_string())
            .env("WINDLASS_HOME", &self.home().display().to_string())
            // Sessions of a test do not know each other, unless it is about that.
            .env("WINDLASS_MEMORY_ENABLED", "false")
    }
}

/// Gives a file, or a folder with everything in it, to the ordinary user.
fn give(path: &Path) {
    let owner = Some(ORDINARY_USER);
    must(std::os::unix::fs::lchown(path, owner, owner), "change an owner");
    let is_folder = must(fs::symlink_metadata(path), "look at a file").is_dir();
    if is_folder {
        for entry in must(fs::read_dir(path), "list a folder") {
            give(&must(entry, "list a folder").path());
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let has_database = self.home().join("data").join("windlass.db").exists();
        if has_database && !self.is_damaged.load(Ordering::Relaxed) && !std::thread::panicking() {
            self.run(&["db", "check"]).output().assert_code(0);
        }
    }
}

fn write(path: &Path, content: &str) -> PathBuf {
    if let Some(folder) = path.parent() {
        must(fs::create_dir_all(folder), "create a folder");
    }
    must(fs::write(path, content), "write a file");
    path.to_owned()
}
