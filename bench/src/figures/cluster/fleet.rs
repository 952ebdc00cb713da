//! Servers of a cluster over one database, and clients that follow sessions.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use windlass_testkit::PostgresServer;

use crate::clock::now;
use crate::figures::server::{Address, Running, delays, token};
use crate::lab::{Lab, Server};

/// Maximum time until an event.
const PATIENCE: Duration = Duration::from_secs(60);

/// A database of its own, with a token for all servers over it.
pub(super) struct Fleet<'a> {
    lab: &'a Lab,
    pub(super) postgres: &'a PostgresServer,
    pub(super) database: String,
    token: String,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(lab: &'a Lab, postgres: &'a PostgresServer) -> Result<Self> {
        let database = postgres.empty();
        let mut create = lab.token();
        // Makes the tables as well.
        create.env("WINDLASS_STORE", postgres.url(&database));
        Ok(Self {
            token: token(create)?,
            lab,
            postgres,
            database,
        })
    }

    /// Starts a server with a home of its own.
    pub(super) fn server(&self, model: &Server, arguments: &[&str]) -> Result<Running> {
        let home = self.lab.path(&format!("cluster-{}", now()));
        let mut command: Command = self.lab.sessions(model);
        command
            .arg("--cluster")
            .args(arguments)
            .env("WINDLASS_STORE", self.postgres.url(&self.database))
            .env("WINDLASS_MEMORY_ENABLED", "false")
            .env("WINDLASS_HOME", home);
        Running::launch(command, self.token.clone())
    }

    /// Starts several servers at the same time.
    pub(super) fn servers(&self, model: &Server, count: usize) -> Result<Vec<Running>> {
        std::thread::scope(|scope| {
            let start = || self.server(model, &[]);
            let starting: Vec<_> = (0..count).map(|_| scope.spawn(start)).collect();
            let started = starting.into_iter().map(|thread| match thread.join() {
                Ok(started) => started,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            started.collect()
        })
    }

    /// Returns the first value that a query of this database returns.
    pub(super) fn number(&self, sql: &str) -> Result<u64> {
        let text = self.postgres.sql(&self.database, sql);
        text.parse().with_context(|| format!("{sql}: {text}"))
    }
}

/// An event as a client got it.
pub(super) struct Seen {
    /// Time of its arrival.
    pub(super) at: u64,
    pub(super) event: Value,
    /// Delays of the deltas in it, in milliseconds.
    pub(super) delays: Vec<f64>,
}

/// A client that follows a session.
pub(super) struct Watch(mpsc::UnboundedReceiver<Seen>);

impl Watch {
    pub(super) async fn open(address: Address, session: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address.socket).await?;
        let head = format!(
            "GET /api/sessions/{session}/events?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            address.socket, address.token
        );
        stream.write_all(head.as_bytes()).await?;
        let mut reader = BufReader::with_capacity(4 * 1024, stream);
        let mut line = String::new();
        reader.read_line(&mut line).await?;
        if !line.contains(" 200 ") {
            bail!("the events of {session} are refused: {line}");
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut line = Vec::new();
            while reader
                .read_until(b'\n', &mut line)
                .await
                .is_ok_and(|read| read > 0)
            {
                let at = now();
                if let Some(data) = line.strip_prefix(b"data: ") {
                    let event = serde_json::from_slice(data).unwrap_or_default();
                    let delays = delays(&line, at);
                    if sender.send(Seen { at, event, delays }).is_err() {
                        return;
                    }
                }
                line.clear();
            }
        });
        Ok(Self(receiver))
    }

    pub(super) async fn next(&mut self) -> Result<Seen> {
        let next = tokio::time::timeout(PATIENCE, self.0.recv());
        next.await
            .context("no event came in time")?
            .context("the stream ended")
    }

    /// Waits for an event of this type.
    pub(super) async fn until(&mut self, kind: &str) -> Result<Seen> {
        loop {
            let seen = self.next().await?;
            if seen.event["type"] == kind {
                return Ok(seen);
            }
            if matches!(seen.event["type"].as_str(), Some("failed")) {
                bail!("a turn failed: {}", seen.event);
            }
        }
    }
}
