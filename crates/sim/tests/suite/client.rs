//! A small HTTP/1.1 client that exposes the bytes on the wire.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use windlass_sim::{Brain, Protocol, Reply, Script, Sim, SimConfig, SimHandle};

pub(crate) const WIRES: [Protocol; 3] = [Protocol::Anthropic, Protocol::Chat, Protocol::Responses];

/// A response. `complete` is true if the body ended as HTTP requires.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) complete: bool,
    /// Sizes of the chunks, if the body was chunked.
    pub(crate) chunks: Vec<usize>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }

    /// Returns the data of the events, in the plain framing.
    pub(crate) fn events(&self) -> Vec<String> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: ").map(str::to_owned))
            .collect()
    }
}

pub(crate) async fn start(script: Script) -> SimHandle {
    let config = SimConfig {
        brain: Brain::script(script),
        ..SimConfig::default()
    };
    Sim::start(config).await.unwrap()
}

pub(crate) async fn start_with(reply: Reply) -> SimHandle {
    start(Script::new().reply(reply.forever())).await
}

pub(crate) fn path(wire: Protocol) -> &'static str {
    match wire {
        Protocol::Anthropic => "/v1/messages",
        Protocol::Chat => "/v1/chat/completions",
        Protocol::Responses => "/v1/responses",
        Protocol::Gemini => "/v1beta/models/m:generateContent",
    }
}

/// Builds a small valid request.
pub(crate) fn request(wire: Protocol, text: &str, stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": text}]);
    match wire {
        Protocol::Anthropic => {
            json!({"model": "m", "max_tokens": 99, "stream": stream, "messages": messages})
        }
        Protocol::Chat => json!({"model": "m", "stream": stream, "messages": messages}),
        Protocol::Responses => json!({"model": "m", "stream": stream, "input": messages}),
        Protocol::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
    }
}

pub(crate) async fn ask(sim: &SimHandle, wire: Protocol, stream: bool) -> Answer {
    post(sim, path(wire), &request(wire, "hello", stream).to_string(), &[]).await
}

pub(crate) async fn post(sim: &SimHandle, path: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
    let mut more = String::new();
    for (name, value) in headers {
        more.push_str(&format!("{name}: {value}\r\n"));
    }
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\nanthropic-version: 2023-06-01\r\n{more}content-length: {}\r\n\r\n",
        body.len()
    );
    exchange(sim, &format!("{head}{body}")).await
}

pub(crate) async fn get(sim: &SimHandle, path: &str) -> Answer {
    exchange(
        sim,
        &format!("GET {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n\r\n"),
    )
    .await
}

async fn exchange(sim: &SimHandle, request: &str) -> Answer {
    let mut socket = TcpStream::connect(sim.addr()).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    // A dropped connection may appear as an end or as a reset; the bytes before it count either way.
    let _ = socket.read_to_end(&mut raw).await;
    parse(&raw)
}

fn parse(raw: &[u8]) -> Answer {
    let end = raw
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .expect("a whole head");
    let head = String::from_utf8(raw[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let rest = &raw[end + 4..];
    let mut answer = Answer {
        status,
        head,
        body: Vec::new(),
        complete: false,
        chunks: Vec::new(),
    };
    match answer.header("content-length") {
        Some(length) => {
            answer.body = rest.to_vec();
            answer.complete = rest.len() == length.parse::<usize>().unwrap();
        }
        None => read_chunks(&mut answer, rest),
    }
    answer
}

fn read_chunks(answer: &mut Answer, mut rest: &[u8]) {
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            answer.complete = true;
            return;
        }
        let data = &rest[end + 2..];
        let kept = size.min(data.len());
        answer.body.extend_from_slice(&data[..kept]);
        answer.chunks.push(size);
        rest = data.get(size + 2..).unwrap_or_default();
    }
}
