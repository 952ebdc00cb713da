//! A server under test, and a small HTTP client that sends what it is told to, right or wrong.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::{PATIENCE, Run, Running, eventually, must};

/// Time without a byte after which a connection counts as stuck.
const SILENCE: Duration = Duration::from_secs(60);

/// Time that a request may take that is [tried](try_http).
const TRIED: Duration = Duration::from_secs(10);

/// Answer to a request.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    /// Status code.
    pub status: u16,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl HttpAnswer {
    /// Returns the body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        must(serde_json::from_str(&self.body), &self.body)
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Sends one request and reads the whole answer. `Host` and `Content-Length` are added unless given.
#[track_caller]
pub fn http(addr: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
    let text = request(addr, method, path, headers, body);
    must(send(addr, &text, SILENCE).and_then(read_answer), path)
}

/// Like [`http`], for a server that may be down, or go down meanwhile.
///
/// # Errors
/// If there is no whole answer in time.
pub fn try_http(
    addr: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<HttpAnswer> {
    send(addr, &request(addr, method, path, headers, body), TRIED).and_then(read_answer)
}

fn send(addr: &str, request: &str, silence: Duration) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(silence))?;
    // A server that refuses may close before it has read everything.
    let _ = stream.write_all(request.as_bytes());
    Ok(BufReader::new(stream))
}

/// Sends one request over TLS, to a server that must have a certificate for `name` that this authority signed.
///
/// # Errors
/// The reason that the connection cannot be used, such as a certificate that is not valid.
#[track_caller]
pub fn https(
    addr: &str,
    (name, authority): (&str, &[u8]),
    headers: &[(&str, &str)],
    (method, path, body): (&str, &str, &str),
) -> Result<HttpAnswer, String> {
    let mut roots = RootCertStore::empty();
    must(roots.add(authority.to_vec().into()), "read the authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = must(config, "choose a protocol")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = must(ServerName::try_from(name.to_owned()), name);
    let client = must(ClientConnection::new(Arc::new(config), server), "prepare TLS");
    let connected = must(TcpStream::connect(addr), "connect");
    must(connected.set_read_timeout(Some(SILENCE)), "set a time limit");
    let mut stream = StreamOwned::new(client, connected);
    let sent = stream.write_all(request(addr, method, path, headers, body).as_bytes());
    let answer = sent.and_then(|()| read_answer(BufReader::new(stream)));
    answer.map_err(|error| error.to_string())
}

/// Returns the text of a request.
fn request(addr: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    let is_given = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    if !is_given("host") {
        head.push_str(&format!("Host: {addr}\r\n"));
    }
    if !is_given("content-length") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}\r\n{body}")
}

fn read_head(stream: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_owned())),
            None => return Ok((status, headers)),
        }
    }
}

fn read_answer(mut stream: impl BufRead) -> io::Result<HttpAnswer> {
    let (status, headers) = read_head(&mut stream)?;
    let is_chunked = headers.iter().any(|header| header.0 == "transfer-encoding");
    let mut body = Vec::new();
    if is_chunked {
        while let Some(chunk) = read_chunk(&mut stream) {
            body.extend(chunk);
        }
    } else {
        let _ = stream.read_to_end(&mut body);
    }
    Ok(HttpAnswer {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn read_chunk(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let size = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}

/// A running `windlass serve`, and a browser that is signed in.
pub struct HttpServer {
    /// The process.
    pub running: Running,
    /// Address and port.
    pub addr: String,
    /// Value of the `Cookie` header.
    pub cookie: String,
}

impl HttpServer {
    /// Starts the server and signs in with its link.
    #[track_caller]
    pub fn start(run: Run) -> Self {
        let mut running = run.start();
        running.wait_for_stdout("/#t=");
        running.wait_until("the link is printed", |running| running.stdout().ends_with('\n'));
        let said = running.stdout();
        let link = said
            .split_whitespace()
            .find(|word| word.contains("/#t="))
            .unwrap_or_default();
        let (url, token) = must(link.split_once("/#t=").ok_or("no link"), &said);
        let addr = url.trim_start_matches("http://").to_owned();
        let body = json!({ "token": token, "name": "test browser" }).to_string();
        let answer = http(
            &addr,
            "POST",
            "/api/login",
            &[("Content-Type", "application/json")],
            &body,
        );
        let cookie = answer
            .header("set-cookie")
            .and_then(|cookie| cookie.split(';').next());
        let cookie = must(cookie.ok_or("no cookie"), &answer.body).to_owned();
        Self {
            running,
            addr,
            cookie,
        }
    }

    /// Sends a request as the browser that is signed in.
    #[track_caller]
    pub fn request(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        let headers = [
            ("Cookie", self.cookie.as_str()),
            ("X-Windlass", "1"),
            ("Content-Type", "application/json"),
        ];
        http(&self.addr, method, path, &headers, body)
    }

    /// Reads something.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let answer = self.request("GET", path, "");
        assert_eq!(answer.status, 200, "GET {path}: {}", answer.body);
        answer.json()
    }

    /// Sends something, which must succeed.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.request("POST", path, &body.to_string());
        assert!(
            (200..300).contains(&answer.status),
            "POST {path}: {}",
            answer.body
        );
        match answer.body.is_empty() {
            true => Value::Null,
            false => answer.json(),
        }
    }

    /// Creates a session and returns its id.
    #[track_caller]
    pub fn session(&self) -> String {
        let begun = self.post("/api/sessions", &json!({}));
        begun["session"]["id"].as_str().unwrap_or_default().to_owned()
    }

    /// Sends a text to a session.
    #[track_caller]
    pub fn say(&self, session: &str, text: &str) -> Value {
        self.post(
            &format!("/api/sessions/{session}/messages"),
            &json!({ "text": text }),
        )
    }

    /// Follows events in the background.
    #[track_caller]
    pub fn events(&self, path: &str) -> SseEvents {
        SseEvents::open(&self.addr, path, &[("Cookie", &self.cookie)])
    }

    /// Waits until the session asks something, and returns the question.
    #[track_caller]
    pub fn question(&self, session: &str) -> Value {
        let path = format!("/api/sessions/{session}/state");
        let mut found = Value::Null;
        let asked = eventually(PATIENCE, || {
            found = self.get(&path)["questions"][0].clone();
            !found.is_null()
        });
        assert!(asked, "the session asks nothing");
        found
    }

    /// Waits until no turn runs.
    #[track_caller]
    pub fn wait_idle(&self, session: &str) -> Value {
        let path = format!("/api/sessions/{session}/state");
        let mut state = Value::Null;
        let ended = eventually(PATIENCE, || {
            state = self.get(&path);
            let entries = state["entries"].as_array();
            let last = entries.and_then(|entries| entries.iter().rev().find(|entry| is_edge(entry)));
            state["overview"]["is_busy"] == false && last.is_some_and(|last| last["type"] != "start")
        });
        assert!(ended, "the turn does not end: {state}");
        state
    }
}

/// Returns true for an entry that starts or ends a turn.
fn is_edge(entry: &Value) -> bool {
    matches!(
        entry["type"].as_str(),
        Some("start" | "final" | "canceled" | "failed")
    )
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub struct SseEvent {
    /// Name; empty for events of a session.
    pub name: String,
    /// Id, if it has one.
    pub id: Option<u64>,
    /// Data.
    pub data: Value,
}

/// Events read in the background.
pub struct SseEvents {
    events: Arc<Mutex<(Vec<SseEvent>, bool)>>,
}

impl SseEvents {
    /// Opens a stream.
    #[track_caller]
    pub fn open(addr: &str, path: &str, headers: &[(&str, &str)]) -> Self {
        must(Self::try_open(addr, path, headers), path)
    }

    /// Opens a stream of a server that may be down.
    ///
    /// # Errors
    /// If the server does not answer in time, or refuses.
    pub fn try_open(addr: &str, path: &str, headers: &[(&str, &str)]) -> io::Result<Self> {
        let mut stream = send(addr, &request(addr, "GET", path, headers, ""), SILENCE)?;
        let (status, _) = read_head(&mut stream)?;
        if status != 200 {
            return Err(io::Error::other(format!("GET {path}: status {status}")));
        }
        let events = Arc::new(Mutex::new((Vec::new(), false)));
        let found = Arc::clone(&events);
        std::thread::spawn(move || {
            let mut text = String::new();
            while let Some(chunk) = read_chunk(&mut stream) {
                text.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((block, rest)) = text.split_once("\n\n") {
                    let event = parse(block);
                    lock(&found).0.extend(event);
                    text = rest.to_owned();
                }
            }
            lock(&found).1 = true;
        });
        Ok(Self { events })
    }

    /// Returns true once the stream has ended.
    pub fn has_ended(&self) -> bool {
        lock(&self.events).1
    }

    /// Returns the events so far.
    pub fn so_far(&self) -> Vec<SseEvent> {
        lock(&self.events).0.clone()
    }

    /// Returns the state events so far: number and type.
    pub fn states(&self) -> Vec<(u64, String)> {
        let events = self.so_far();
        let states = events
            .iter()
            .filter_map(|event| Some((event.id?, &event.data["type"])));
        states
            .map(|(id, kind)| (id, kind.as_str().unwrap_or_default().to_owned()))
            .collect()
    }

    /// Waits until an event arrives, and returns it.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_it: impl Fn(&SseEvent) -> bool) -> SseEvent {
        let mut found = None;
        let came = eventually(PATIENCE, || {
            found = self.so_far().into_iter().find(&is_it);
            found.is_some()
        });
        assert!(came, "{what} does not come: {:#?}", self.so_far());
        must(found.ok_or("nothing"), what)
    }

    /// Waits until the stream ends.
    #[track_caller]
    pub fn wait_for_end(&self) {
        assert!(
            eventually(PATIENCE, || self.has_ended()),
            "the stream does not end"
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parses one block; comments and `retry` are no events.
fn parse(block: &str) -> Option<SseEvent> {
    let field = |name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let data = field("data")?;
    Some(SseEvent {
        name: field("event").unwrap_or_default().to_owned(),
        id: field("id").and_then(|id| id.parse().ok()),
        data: must(serde_json::from_str(data), data),
    })
}
