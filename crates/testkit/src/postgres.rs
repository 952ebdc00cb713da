//! A Postgres server of the test's own.

use std::io::Write;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tempfile::TempDir;

use crate::must;
use crate::wait::PATIENCE;

/// User that runs the server if the tests run as root, which Postgres refuses; `nobody` if there is no `postgres`.
const NOBODY: u32 = 65_534;

/// Database with the tables, from which those of tests are copied.
const TEMPLATE: &str = "windlass_template";

/// Durability of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Commits are flushed to disk, as in use: for tests that crash the server.
    On,
    /// Commits are not flushed, which is faster.
    Off,
}

/// A running Postgres server on a socket in a private folder. It ends with the test process, however that ends.
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    user: Option<u32>,
    flush: Flush,
    /// Address at which it listens besides its socket.
    address: Option<String>,
    /// The process that stops the server once this end of its input is closed.
    guard: Option<(Child, ChildStdin)>,
    databases: AtomicUsize,
}

impl PostgresServer {
    /// Returns the server of this test process. `prepare` makes the tables in the database at a URL, once.
    pub fn shared(prepare: impl FnOnce(&str)) -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| {
            let server = Self::start(Flush::Off);
            server.create(TEMPLATE, None);
            prepare(&server.url(TEMPLATE));
            server
        })
    }

    /// Starts a server that has the extension pgvector: Debian's, or the one in the folder of programs that
    /// `WINDLASS_PGVECTOR` names. `None` if there is none.
    pub fn start_with_vectors() -> Option<Self> {
        let named = std::env::var_os("WINDLASS_PGVECTOR").map(PathBuf::from);
        let is_there = |programs: &PathBuf| {
            let version = programs.parent().and_then(Path::file_name).unwrap_or_default();
            let debian = Path::new("/usr/share/postgresql").join(version);
            debian.join("extension/vector.control").is_file()
        };
        let folder = named.or_else(|| Some(programs()).filter(is_there))?;
        Some(Self::start_in(folder, Flush::Off, None))
    }

    /// Starts a server.
    ///
    /// # Panics
    /// If Postgres is not installed.
    pub fn start(flush: Flush) -> Self {
        Self::start_in(programs(), flush, None)
    }

    /// Starts a server that flushes its commits, and listens at an address of this machine, for everybody.
    ///
    /// # Panics
    /// If Postgres is not installed.
    pub fn start_at(address: &str) -> Self {
        Self::start_in(programs(), Flush::On, Some(address.to_owned()))
    }

    fn start_in(programs: PathBuf, flush: Flush, address: Option<String>) -> Self {
        let folder = must(
            tempfile::Builder::new().prefix("wlpg").tempdir_in("/tmp"),
            "folder",
        );
        let is_root = rustix::process::geteuid().is_root();
        let user = is_root.then(postgres_user);
        if let Some(user) = user {
            must(
                chown(folder.path(), Some(user), Some(user)),
                "owner of the folder",
            );
        }
        let mut server = Self {
            programs,
            folder,
            user,
            flush,
            address,
            guard: None,
            databases: AtomicUsize::new(0),
        };
        let data = server.folder.path().join("data");
        let made = server
            .program("initdb")
            .args([
                "-A",
                "trust",
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--no-locale",
                "--no-sync",
                "-D",
            ])
            .arg(&data)
            .output();
        succeeded(&must(made, "initdb"), "initdb");
        if server.address.is_some() {
            server.admit("host all all all trust");
        }
        server.resume();
        server
    }

    /// Starts the server again after [`Self::crash`].
    pub fn resume(&mut self) {
        let settings = match self.flush {
            Flush::On => "-c fsync=on",
            Flush::Off => "-c fsync=off -c synchronous_commit=off -c full_page_writes=off",
        };
        let folder = self.folder.path();
        let options = format!(
            "-c listen_addresses={} -c max_connections=200 -c unix_socket_directories={} {settings}",
            self.address.as_deref().unwrap_or_default(),
            folder.display()
        );
        let started = self
            .program("pg_ctl")
            .args(["-w", "-t", "60", "-D"])
            .arg(folder.join("data"))
            .arg("-l")
            .arg(folder.join("log"))
            .args(["-o", &options, "start"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        assert!(
            must(started, "pg_ctl").success(),
            "the server does not start: {}",
            log()
        );
        if self.guard.is_none() {
            self.guard = Some(self.watch());
        }
    }

    /// Kills the server as a crash would: nothing that is not on the disk is kept.
    pub fn crash(&self) {
        let mut stop = self.program("pg_ctl");
        stop.args(["-w", "-m", "immediate", "-D"])
            .arg(self.folder.path().join("data"))
            .arg("stop");
        succeeded(&must(stop.output(), "pg_ctl"), "pg_ctl stop");
    }

    /// Starts the process that stops the server when this one has ended, by any means.
    fn watch(&self) -> (Child, ChildStdin) {
        let script = "read -r _; \"$1\" -m immediate -D \"$2/data\" stop; rm -rf \"$2\"";
        let mut guard = Command::new("sh");
        guard
            .args(["-c", script, "sh"])
            .arg(self.programs.join("pg_ctl"))
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if let Some(user) = self.user {
            guard.uid(user).gid(user);
        }
        let mut guard = must(guard.spawn(), "the guard of the server");
        let Some(input) = guard.stdin.take() else {
            panic!("the guard has no input");
        };
        (guard, input)
    }

    /// Returns the URL of a database, at the address if the server has one.
    pub fn url(&self, database: &str) -> String {
        if let Some(address) = &self.address {
            return format!("postgres://postgres@{address}/{database}");
        }
        let folder = self.folder.path().to_string_lossy().replace('/', "%2F");
        format!("postgres://postgres@{folder}/{database}")
    }

    /// Returns the URL of the database with the same name for another user.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        self.url(database).replace("//postgres@", &format!("//{user}@"))
    }

    /// Returns the folder of the server's socket.
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates an empty database, and returns its name.
    pub fn empty(&self) -> String {
        let name = self.next_name();
        self.create(&name, None);
        name
    }

    /// Creates a database with the tables, and returns its name. Only for [`Self::shared`].
    pub fn database(&self) -> String {
        let name = self.next_name();
        self.create(&name, Some(TEMPLATE));
        name
    }

    fn next_name(&self) -> String {
        format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed))
    }

    fn create(&self, name: &str, template: Option<&str>) {
        let begun = Instant::now();
        let template = template.unwrap_or("template0");
        loop {
            // Copies of one template are made one after the other.
            let made = self.sql_output("postgres", &format!("CREATE DATABASE {name} TEMPLATE {template}"));
            let text = String::from_utf8_lossy(&made.stderr).into_owned();
            if made.status.success() {
                return;
            }
            let is_busy = text.contains("being accessed") && begun.elapsed() < PATIENCE;
            assert!(is_busy, "cannot create the database {name}: {text}");
            std::thread::yield_now();
        }
    }

    /// Makes a user give a password.
    pub fn require_password(&self, user: &str) {
        self.admit(&format!("local all {user} scram-sha-256"));
        self.sql("postgres", "SELECT pg_reload_conf()");
    }

    /// Puts a rule in front of those that say who may connect.
    fn admit(&self, rule: &str) {
        let file = self.folder.path().join("data/pg_hba.conf");
        let rules = must(std::fs::read_to_string(&file), "pg_hba.conf");
        must(std::fs::write(&file, format!("{rule}\n{rules}")), "pg_hba.conf");
    }

    /// Returns the user that runs the server, if it is not the one that runs the tests.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// Runs SQL in a database, and returns what it prints, without headings.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.sql_output(database, sql);
        succeeded(&output, sql);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn sql_output(&self, database: &str, sql: &str) -> Output {
        let mut psql = self.program("psql");
        psql.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-h",
        ])
        .arg(self.folder.path())
        .args(["-d", database, "-c", sql]);
        must(psql.output(), "psql")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C");
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some((mut guard, mut input)) = self.guard.take() {
            let _ = input.write_all(b"\n");
            drop(input);
            let _ = guard.wait();
        }
    }
}

fn succeeded(output: &Output, what: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {text}");
}

/// Returns the folder of the server's programs: that of Debian's newest version, or the one on the path.
fn programs() -> PathBuf {
    let has_server = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin"))
        .filter(has_server)
        .collect();
    found.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(has_server);
    match found.pop().or(on_path) {
        Some(folder) => folder,
        None => panic!("Postgres is not installed (on Debian: apt-get install postgresql)"),
    }
}

/// Returns the number of the user `postgres`, or of `nobody`.
fn postgres_user() -> u32 {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let number = users.lines().find_map(|line| {
        let mut parts = line.split(':');
        (parts.next()? == "postgres").then_some(())?;
        parts.nth(1)?.parse().ok()
    });
    number.unwrap_or(NOBODY)
}
