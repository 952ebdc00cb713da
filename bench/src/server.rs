//! The model of the benchmarks: a server that only replies, in its own process.
//!
//! Plain threads and sockets, so that it costs as little as possible, and the same for every client. It
//! replies with calls of `echo 0`, `echo 1`, … and then with text, each event in its own write, as models
//! stream.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::clock::now;
use crate::record::Recorder;
use crate::wire::{self, Wire};

/// Options of the server.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeOptions {
    /// Wire format.
    #[arg(long, value_enum)]
    pub(crate) wire: Wire,
    /// Number of replies with a call before one with text; then it starts over.
    #[arg(long)]
    pub(crate) calls: usize,
    /// Number of deltas of the text.
    #[arg(long)]
    pub(crate) deltas: usize,
    /// Send a reply in one write instead of one per event.
    #[arg(long)]
    pub(crate) burst: bool,
    /// Delay after each event, in milliseconds.
    #[arg(long, default_value_t = 0)]
    pub(crate) delay_ms: u64,
    /// Reply as to a person at a terminal: paragraphs and a last word that marks the end, and one word to
    /// requests outside the conversation.
    #[arg(long)]
    pub(crate) talk: bool,
    /// Call commands that write a file.
    #[arg(long)]
    pub(crate) write: bool,
    /// Serve many conversations: count the calls of each by their results, and call `glob`, which costs little.
    #[arg(long)]
    pub(crate) many: bool,
    /// Call sub-agents instead of `glob`, with `--many`, and reply to them with text.
    #[arg(long)]
    pub(crate) agents: bool,
    /// Replace [`STAMP`] in every piece with the time at which it is sent.
    #[arg(long)]
    pub(crate) stamp: bool,
    /// Record the requests in this file.
    #[arg(long)]
    pub(crate) record: Option<PathBuf>,
}

impl ServeOptions {
    /// Serves this many calls and then one word, as fast as possible.
    pub(crate) fn new(wire: Wire, calls: usize) -> Self {
        Self {
            wire,
            calls,
            deltas: 1,
            burst: false,
            delay_ms: 0,
            talk: false,
            write: false,
            many: false,
            agents: false,
            stamp: false,
            record: None,
        }
    }
}

/// Placeholder for a time in nanoseconds, in a text of its own length.
pub(crate) const STAMP: &str = "@00000000000000000000@";

const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// End of a reply. Nothing follows it before the next request.
pub(crate) const END: &[u8] = b"\r\n0\r\n\r\n";

struct Shared {
    options: ServeOptions,
    text: Vec<Vec<u8>>,
    /// Reply to a request outside the conversation.
    aside: Vec<Vec<u8>>,
    log: Mutex<Log>,
}

struct Log {
    connections: usize,
    arrivals: Vec<u64>,
    recorder: Option<Recorder<BufWriter<File>>>,
}

/// Serves until standard input ends, then prints its record: the number of connections, and the arrival time
/// of each request.
pub(crate) fn serve(options: ServeOptions) -> Result<()> {
    let recorder = match &options.record {
        Some(path) => Some(Recorder::new(BufWriter::new(
            File::create(path).context("cannot record")?,
        ))),
        None => None,
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen")?;
    println!("{}", listener.local_addr()?.port());
    let text = framed(&options.wire.text(&if options.talk {
        wire::talk(options.deltas)
    } else if options.stamp {
        vec![format!("{STAMP} "); options.deltas]
    } else {
        wire::words(options.deltas)
    }));
    let aside = framed(&options.wire.text(&wire::words(1)));
    let log = Mutex::new(Log {
        connections: 0,
        arrivals: Vec::new(),
        recorder,
    });
    let shared = Arc::new(Shared {
        options,
        text,
        aside,
        log,
    });
    let accepting = Arc::clone(&shared);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&accepting);
            thread::spawn(move || shared.talk(&stream));
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let log = shared.log.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", log.connections);
    let lines: Vec<String> = log.arrivals.iter().map(u64::to_string).collect();
    println!("{}", lines.join(" "));
    Ok(())
}

impl Shared {
    /// Replies to the requests of one connection until it is closed, which shows as an error.
    fn talk(&self, stream: &TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .connections += 1;
        let mut reader = BufReader::with_capacity(64 * 1024, stream);
        let (mut head, mut body) = (Vec::new(), Vec::new());
        while read_request(&mut reader, &mut head, &mut body)? {
            let arrived = now();
            let is_apart =
                self.options.talk && is_aside(&head, &body) || self.options.agents && is_sub_agent(&body);
            if is_apart {
                send(stream, &self.aside)?;
                continue;
            }
            let mut number = self.note(arrived, &head, &body)?;
            if self.options.many {
                number = wire::last_call(&body).map_or(0, |last| last + 1);
            }
            self.answer(stream, number)?;
        }
        Ok(())
    }

    fn note(&self, arrived: u64, head: &[u8], body: &[u8]) -> Result<usize> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.arrivals.push(arrived);
        if let Some(recorder) = &mut log.recorder {
            recorder.record(head, body)?;
        }
        Ok(log.arrivals.len() - 1)
    }

    fn answer(&self, mut stream: &TcpStream, number: usize) -> Result<()> {
        let number = number % (self.options.calls + 1);
        let call;
        let chunks = if number < self.options.calls {
            let wire = self.options.wire;
            call = framed(&if self.options.agents {
                wire.call_of(number, "agent", &wire::task(number))
            } else if self.options.many {
                wire.call_of(number, "glob", &wire::search(number))
            } else if self.options.write {
                wire.call(number, &wire::writing_command(number))
            } else {
                wire.call(number, &wire::command(number))
            });
            &call
        } else {
            &self.text
        };
        if self.options.burst {
            send(stream, chunks)?;
        } else {
            for chunk in chunks {
                if self.options.stamp {
                    stream.write_all(&stamped(chunk))?;
                } else {
                    stream.write_all(chunk)?;
                }
                if self.options.delay_ms > 0 {
                    thread::sleep(Duration::from_millis(self.options.delay_ms));
                }
            }
        }
        Ok(())
    }
}

/// Returns a piece with the current time in it.
fn stamped(chunk: &[u8]) -> Vec<u8> {
    let mut piece = chunk.to_vec();
    if let Some(at) = piece
        .windows(STAMP.len())
        .position(|part| part == STAMP.as_bytes())
    {
        let time = format!("@{:020}@", now());
        piece.splice(at..at + STAMP.len(), time.into_bytes());
    }
    piece
}

/// Returns true for a request outside the conversation, such as for the list of models or for a title: it has
/// no tools.
fn is_aside(head: &[u8], body: &[u8]) -> bool {
    let nothing = br#""tools":[]"#;
    head.starts_with(b"GET ") || body.windows(nothing.len()).any(|part| part == nothing)
}

/// Returns true for a request of a sub-agent, which has a sentence of its own in the prompt. Conversations of a
/// sub-agent are short here, so that long requests need not be searched.
fn is_sub_agent(body: &[u8]) -> bool {
    const SENTENCE: &[u8] = b"started for one task";
    body.len() < 64 * 1024 && body.windows(SENTENCE.len()).any(|part| part == SENTENCE)
}

fn send(mut stream: &TcpStream, chunks: &[Vec<u8>]) -> Result<()> {
    stream.write_all(&chunks.concat())?;
    Ok(())
}

/// Returns the pieces of a response: its head with the first event, one event each, and the end.
fn framed(events: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut chunks: Vec<Vec<u8>> = Vec::with_capacity(events.len() + 1);
    for event in events {
        let mut chunk = if chunks.is_empty() {
            HEAD.to_vec()
        } else {
            Vec::new()
        };
        chunk.extend_from_slice(format!("{:x}\r\n", event.len()).as_bytes());
        chunk.extend_from_slice(event);
        chunk.extend_from_slice(b"\r\n");
        chunks.push(chunk);
    }
    // The line break before the end was sent with the last event.
    chunks.push(END.iter().skip(2).copied().collect());
    chunks
}

/// Reads one request; false if there are no more.
fn read_request(reader: &mut impl BufRead, head: &mut Vec<u8>, body: &mut Vec<u8>) -> Result<bool> {
    head.clear();
    let mut length = 0;
    loop {
        let start = head.len();
        if reader.read_until(b'\n', head)? == 0 {
            return Ok(false);
        }
        let line = head.get(start..).unwrap_or_default();
        if line == b"\r\n" {
            break;
        }
        let line = String::from_utf8_lossy(line).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().context("the request has no valid length")?;
        }
    }
    body.resize(length, 0);
    reader.read_exact(body)?;
    Ok(true)
}
