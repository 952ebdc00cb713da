//! A running server, and clients that are a socket and a scan for the marks they need.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::milliseconds;
use crate::clock::now;
use crate::lab::{Lab, Server};
use crate::server::STAMP;

/// Maximum length of a line, so that a broken server ends the run.
const MAX_LINES: usize = 10_000_000;

/// Address and credential of a server.
#[derive(Debug, Clone)]
pub(in crate::figures) struct Address {
    pub(in crate::figures) socket: SocketAddr,
    pub(in crate::figures) token: String,
}

/// `windlass serve`, with a token for it.
pub(in crate::figures) struct Running {
    child: Child,
    /// Kept open: the server writes to it.
    _output: BufReader<ChildStdout>,
    address: Address,
}

impl Running {
    pub(in crate::figures) fn start(lab: &Lab, model: &Server) -> Result<Self> {
        let token = token(lab.token())?;
        Self::launch(lab.sessions(model), token)
    }

    /// Starts a server with a command, for clients with a token.
    pub(in crate::figures) fn launch(mut command: Command, token: String) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut line = String::new();
        for _ in 0..20 {
            line.clear();
            if output.read_line(&mut line)? == 0 {
                bail!("the server ended");
            }
            if let Some((_, address)) = line.trim().split_once("listening on http://") {
                let socket = address.parse().context("the server has no address")?;
                return Ok(Self {
                    child,
                    _output: output,
                    address: Address { socket, token },
                });
            }
        }
        bail!("the server does not say where it listens")
    }

    pub(in crate::figures) fn address(&self) -> Address {
        self.address.clone()
    }

    pub(in crate::figures) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(in crate::figures) fn stop(mut self) -> Result<()> {
        self.signal(rustix::process::Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }

    pub(in crate::figures) fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Waits for the end of a server that was told to stop.
    pub(in crate::figures) fn wait(mut self) -> Result<()> {
        self.child.wait()?;
        Ok(())
    }

    /// Creates a session and returns its id.
    pub(in crate::figures) async fn create(&self) -> Result<String> {
        let answer = self.post("/api/sessions", &json!({})).await?;
        let id = answer["session"]["id"].as_str();
        Ok(id.with_context(|| format!("no session: {answer}"))?.to_owned())
    }

    /// Sends a message to a session.
    pub(in crate::figures) async fn say(&self, session: &str) -> Result<()> {
        let id = format!("00000000-0000-4000-8000-{:012x}", now() & 0xffff_ffff_ffff);
        let path = format!("/api/sessions/{session}/messages");
        let answer = self.post(&path, &json!({ "id": id, "text": "Count." })).await?;
        if answer["seq"].is_null() {
            bail!("the message was not accepted: {answer}");
        }
        Ok(())
    }

    pub(in crate::figures) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let (_, body) = request(&self.address, "POST", path, &body.to_string()).await?;
        serde_json::from_slice(&body).with_context(|| String::from_utf8_lossy(&body).into_owned())
    }

    /// Returns the page of counts.
    pub(in crate::figures) async fn metrics(&self) -> Result<String> {
        let (_, body) = request(&self.address, "GET", "/metrics", "").await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Waits until the server has this many streams.
    pub(in crate::figures) async fn wait_for_streams(&self, wanted: usize) -> Result<()> {
        for _ in 0..600 {
            let text = self.metrics().await?;
            let count = text.lines().find_map(|line| {
                let value = line.strip_prefix("windlass_event_streams ")?;
                value.trim().parse::<usize>().ok()
            });
            match count {
                Some(count) if count >= wanted => return Ok(()),
                Some(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                None => bail!("the server does not count its streams: {text}"),
            }
        }
        bail!("{wanted} clients did not connect")
    }
}

/// Returns the token that a command creates.
pub(in crate::figures) fn token(mut command: Command) -> Result<String> {
    let text = String::from_utf8(command.output()?.stdout)?;
    let token = text.split_ascii_whitespace().find(|word| word.starts_with("wl_"));
    Ok(token.context("there is no token")?.to_owned())
}

/// Sends one request and returns its status and body.
pub(in crate::figures) async fn request(
    address: &Address,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address.socket).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        address.socket,
        address.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n");
    let end = end.context("the server sent no answer")?;
    let status = String::from_utf8_lossy(answer.get(9..12).unwrap_or_default()).parse()?;
    Ok((status, answer.split_off(end + 4)))
}

/// Result of following a session.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// Delay of each delta in milliseconds.
    pub(super) delays: Vec<f64>,
    /// State events that did not arrive.
    pub(super) gaps: usize,
}

/// Follows sessions until the first of them has ended its turn.
pub(super) async fn follow(address: Address, sessions: Vec<String>) -> Result<Followed> {
    let mut stream = TcpStream::connect(address.socket).await?;
    let query: Vec<String> = sessions
        .iter()
        .map(|id| format!("session={id}&after=0"))
        .collect();
    let head = format!(
        "GET /api/events?{} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        query.join("&"),
        address.socket,
        address.token
    );
    stream.write_all(head.as_bytes()).await?;
    let mut reader = tokio::io::BufReader::with_capacity(4 * 1024, stream);
    let mut followed = Followed::default();
    let (mut line, mut last) = (Vec::new(), 0_usize);
    for _ in 0..MAX_LINES {
        line.clear();
        if reader.read_until(b'\n', &mut line).await? == 0 {
            bail!("the stream ended");
        }
        let arrived = now();
        if let Some(number) = line.strip_prefix(b"id: ") {
            let number: usize = String::from_utf8_lossy(number).trim().parse()?;
            followed.gaps += number.saturating_sub(last + 1);
            last = number;
        } else if line.starts_with(b"data: ") {
            if contains(&line, br#""type":"delta""#) {
                followed.delays.extend(delays(&line, arrived));
            } else if contains(&line, br#""type":"final""#) {
                return Ok(followed);
            }
        }
    }
    bail!("the server does not stop talking")
}

fn contains(line: &[u8], wanted: &[u8]) -> bool {
    line.windows(wanted.len()).any(|part| part == wanted)
}

/// Returns the delays of the times in a text.
pub(in crate::figures) fn delays(line: &[u8], arrived: u64) -> Vec<f64> {
    let text = String::from_utf8_lossy(line);
    let times = text.split('@').filter(|part| part.len() == STAMP.len() - 2);
    let times = times.filter_map(|part| part.parse::<u64>().ok());
    times.map(|sent| milliseconds(sent, arrived)).collect()
}

/// Runs `exec -o stream-json` and returns the delays of its deltas.
pub(super) fn delays_of_exec(mut command: Command) -> Result<Vec<f64>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut output = BufReader::new(child.stdout.take().context("there is no output")?);
    let (mut line, mut found) = (Vec::new(), Vec::new());
    while output.read_until(b'\n', &mut line)? > 0 {
        let arrived = now();
        if contains(&line, br#""type":"delta""#) {
            found.extend(delays(&line, arrived));
        }
        line.clear();
    }
    child.wait()?;
    Ok(found)
}
