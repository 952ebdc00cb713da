//! Shared test support: conversations, outlines of replies, and a scripted server.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::message::{Message, Part, Role};
use windlass_core::provider::{Completion, Prefix, ProviderEvent, Request, ToolChoice};
use windlass_providers::key::Secret;
use windlass_providers::{
    HttpProvider, ProviderConfig, RetryPolicy, Transport, TransportLimits, Wire, registry,
};

pub(crate) fn data(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Compares with a golden file; `UPDATE_GOLDENS=1` rewrites it.
pub(crate) fn golden(name: &str, actual: &str) {
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(path(name), actual).unwrap();
    }
    let expected = String::from_utf8(data(name)).unwrap();
    assert_eq!(
        actual, expected,
        "{name} differs; UPDATE_GOLDENS=1 writes it anew"
    );
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

pub(crate) fn message(id: &str, role: Role, parts: Vec<Part>) -> Message {
    let mut message = Message::new(&SessionId::from("session-1"), role, parts, Timestamp(0));
    message.id = MessageId::from(id);
    message
}

pub(crate) fn request(messages: Vec<Arc<Message>>) -> Request {
    Request {
        prefix: Arc::new(Prefix {
            system: "Be brief.".to_owned(),
            ..Prefix::default()
        }),
        messages,
        tool_choice: ToolChoice::Auto,
        max_output: None,
        session: SessionId::from("session-1"),
        cancel: CancellationToken::new(),
    }
}

pub(crate) fn hello() -> Request {
    request(vec![Arc::new(message(
        "m1",
        Role::User,
        vec![Part::text("Hello")],
    ))])
}

pub(crate) fn config(wire: Wire, base_url: &str) -> ProviderConfig {
    ProviderConfig {
        name: "test".to_owned(),
        wire,
        base_url: base_url.to_owned(),
        key: Some(Secret::new("hunter2-hunter2")),
        key_hint: "set TEST_API_KEY".to_owned(),
        headers: Vec::new(),
        quirks: Default::default(),
        model: registry::lookup("sim-1", &[]),
        reasoning: None,
        limits: TransportLimits::default(),
        // Retries have their own tests; here each failure must show at once.
        retry: RetryPolicy {
            max_retries: 0,
            ..RetryPolicy::default()
        },
    }
}

pub(crate) fn provider(config: ProviderConfig) -> HttpProvider {
    HttpProvider::new(config, Transport::new(), Arc::new(SystemClock::default())).unwrap()
}

/// One line per event, with deltas of one kind joined, so that the outline does not depend on the chunking.
pub(crate) fn outline_events(events: &[ProviderEvent]) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for event in events {
        let (head, piece) = match event {
            ProviderEvent::ContentStart => ("content_start".to_owned(), ""),
            ProviderEvent::ContentDelta(text) => ("content_delta".to_owned(), text.as_str()),
            ProviderEvent::ContentStop => ("content_stop".to_owned(), ""),
            ProviderEvent::ThinkingDelta(text) => ("thinking_delta".to_owned(), text.as_str()),
            ProviderEvent::ToolUseStart { id, name } => (format!("tool_use_start {id} {name}"), ""),
            ProviderEvent::ToolUseDelta { id, json } => (format!("tool_use_delta {id}"), json.as_str()),
            ProviderEvent::ToolUseStop { id } => (format!("tool_use_stop {id}"), ""),
            ProviderEvent::Complete(_) => ("complete".to_owned(), ""),
            ProviderEvent::Error(error) => (format!("error {:?} {error}", error.kind), ""),
            ProviderEvent::Warning(text) => (format!("warning {text}"), ""),
            ProviderEvent::Retry(notice) => (format!("retry {}", notice.attempt), ""),
        };
        match lines.last_mut() {
            Some((last, text)) if *last == head && !piece.is_empty() => text.push_str(piece),
            _ => lines.push((head, piece.to_owned())),
        }
    }
    let line = |(head, text): (String, String)| {
        if text.is_empty() {
            head
        } else {
            format!("{head} {text:?}")
        }
    };
    lines.into_iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

pub(crate) fn outline_completion(completion: &Completion) -> String {
    let mut text = format!("stop {:?}\nmodel {}\n", completion.stop, completion.model);
    let usage = completion.usage;
    text += &format!(
        "usage input={} output={} cache_read={} cache_write={}\n",
        usage.input, usage.output, usage.cache_read, usage.cache_write
    );
    for part in &completion.parts {
        text += &format!("part {}\n", serde_json::to_string(part).unwrap());
    }
    for item in completion.origin.iter().flat_map(|origin| &origin.items) {
        text += &format!("item {}\n", item.get());
    }
    text
}

/// Behavior of the server on one connection.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Keeps the connection open and silent after the last chunk.
    pub(crate) stall: bool,
}

impl Script {
    pub(crate) fn new(response: impl Into<Vec<u8>>) -> Self {
        Self {
            chunks: vec![response.into()],
            stall: false,
        }
    }

    /// A success with an event stream, ended by closing the connection.
    pub(crate) fn stream(body: &[u8]) -> Self {
        Self::with_type("text/event-stream", body)
    }

    pub(crate) fn with_type(kind: &str, body: &[u8]) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n");
        Self {
            chunks: vec![head.into_bytes(), body.to_vec()],
            stall: false,
        }
    }

    pub(crate) fn status(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::new(format!(
            "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n{body}"
        ))
    }

    pub(crate) fn stalling(mut self) -> Self {
        self.stall = true;
        self
    }
}

/// A server that plays one script per connection and repeats the last one.
pub(crate) struct Server {
    pub(crate) url: String,
    accepting: tokio::task::JoinHandle<()>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let accepting = tokio::spawn(async move {
            let mut count = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let script = scripts[count.min(scripts.len() - 1)].clone();
                count += 1;
                tokio::spawn(play(stream, script, Arc::clone(&log)));
            }
        });
        Self { url, accepting, seen }
    }

    /// Stops listening.
    pub(crate) async fn stop(self) {
        self.accepting.abort();
        let _ = self.accepting.await;
    }

    /// Requests so far, head and body.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn play(mut stream: TcpStream, script: Script, seen: Arc<Mutex<Vec<String>>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&request) {
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    seen.lock()
        .unwrap()
        .push(String::from_utf8_lossy(&request).into_owned());
    for chunk in script.chunks {
        if stream.write_all(&chunk).await.is_err() {
            return;
        }
        let _ = stream.flush().await;
    }
    if script.stall {
        // Returns when the client hangs up.
        let _ = stream.read(&mut buffer).await;
        seen.lock().unwrap().push("hung up".to_owned());
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0_usize)
}

pub(crate) fn short_limits() -> TransportLimits {
    TransportLimits {
        stream_idle: Duration::from_millis(80),
        ..TransportLimits::default()
    }
}
