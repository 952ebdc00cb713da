//! A NATS server of the test's own.

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use tempfile::TempDir;

use crate::must;
use crate::wait::{PATIENCE, eventually};

/// Place of the program on Debian, which ordinary users do not have on their path.
const DEBIAN: &str = "/usr/sbin/nats-server";

/// A running NATS server on a port of loopback. It ends with the test process, however that ends.
pub struct NatsServer {
    folder: TempDir,
    options: Vec<String>,
    port: u16,
    starts: usize,
    /// The process that kills the server once this end of its input is closed.
    guard: Option<(Child, ChildStdin)>,
}

impl NatsServer {
    /// Starts a server with further options, such as `--auth TOKEN`.
    ///
    /// # Panics
    /// If NATS is not installed.
    pub fn start(options: &[&str]) -> Self {
        let mut server = Self {
            folder: must(tempfile::tempdir(), "folder"),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            port: 0,
            starts: 0,
            guard: None,
        };
        server.resume();
        server
    }

    /// Starts the server again after [`Self::kill`], on the same port.
    pub fn resume(&mut self) {
        self.starts += 1;
        let log = self.folder.path().join(format!("log{}", self.starts));
        let program = match Path::new(DEBIAN).is_file() {
            true => DEBIAN,
            false => "nats-server",
        };
        let port = match self.port {
            0 => "-1".to_owned(),
            port => port.to_string(),
        };
        let mut guard = Command::new("sh");
        guard
            .args([
                "-c",
                "log=$1; shift; \"$@\" 2>\"$log\" & read -r _; kill -9 $!; wait",
                "sh",
            ])
            .arg(&log)
            .args([program, "-a", "127.0.0.1", "-p", &port])
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut guard = must(guard.spawn(), "the guard of the server");
        let Some(input) = guard.stdin.take() else {
            panic!("the guard has no input");
        };
        self.guard = Some((guard, input));
        let read = || std::fs::read_to_string(&log).unwrap_or_default();
        let is_ready = || read().contains("Server is ready");
        assert!(
            eventually(PATIENCE, is_ready),
            "the server does not start: {}",
            read()
        );
        let text = read();
        let port = text.split("client connections on 127.0.0.1:").nth(1);
        let port = port.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        self.port = must(port.ok_or("no port in the log"), &text);
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        if let Some((mut guard, input)) = self.guard.take() {
            drop(input);
            must(guard.wait(), "the guard of the server");
        }
    }

    /// Returns the URL of the server, with credentials such as `user:password@`.
    pub fn url(&self, credentials: &str) -> String {
        format!("nats://{credentials}127.0.0.1:{}", self.port)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
