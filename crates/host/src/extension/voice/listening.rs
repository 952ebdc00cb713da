//! Voice input that is on: a task that asks a speech server for what it heard.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_api::{ClientError, SessionInputs};
use windlass_config::environment;
use windlass_core::text::count;
use windlass_mcp::{McpServer, Phase, plain_text};

pub(super) const START: &str = "stt_start_session";
pub(super) const GET: &str = "stt_get_updates";
pub(super) const STOP: &str = "stt_stop_session";

/// Time between two questions to the server.
const BEAT: Duration = Duration::from_millis(200);
/// Time between two questions after a while of silence.
const QUIET_BEAT: Duration = Duration::from_millis(500);
/// Questions without an answer that count as a while of silence.
const QUIET_AFTER: u32 = 50;
/// Questions between two signs of life to the session.
const KEEP_OPEN: u32 = 20;
/// Time for an answer of the server.
const ANSWER: Duration = Duration::from_secs(30);
/// Time for an answer of the server when voice input ends.
const LAST_ANSWER: Duration = Duration::from_secs(5);
/// Failures in a row after which the server counts as lost, although it runs.
const MAX_FAILURES: u32 = 3;
/// Events that are asked for at once.
const PAGE: u64 = 100;
/// Longest text of an utterance, in characters.
const MAX_UTTERANCE: usize = 4_000;
/// Notices of the server that are shown.
const MAX_NOTICES: u32 = 20;
/// Words of a server for a session that has ended.
const ENDED: [&str; 6] = ["stopped", "ended", "failed", "error", "closed", "completed"];

/// A session on a speech server.
pub(super) struct SpeechSession {
    pub(super) server: Arc<McpServer>,
    pub(super) id: String,
    pub(super) source: &'static str,
}

/// Voice input of a session. Dropping it ends the input.
pub(super) struct Listening {
    heard: Arc<Mutex<Heard>>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    _guard: DropGuard,
}

/// State for `/voice status`.
#[derive(Default)]
struct Heard {
    line: String,
    utterances: usize,
    last: String,
    /// The reason why it ended.
    ended: Option<String>,
}

impl Listening {
    /// Starts to listen. Must be called inside a Tokio runtime.
    pub(super) fn start(session: SpeechSession, inputs: Arc<dyn SessionInputs>) -> Self {
        let heard = Arc::new(Mutex::new(Heard {
            line: format!("{} through {}", session.source, session.server.config().name),
            ..Heard::default()
        }));
        let stop = CancellationToken::new();
        let task = ListeningTask {
            session,
            inputs,
            heard: Arc::clone(&heard),
            stop: stop.clone(),
            pending: VecDeque::new(),
            seen: 0,
            notices: 0,
        };
        Self {
            heard,
            _guard: stop.clone().drop_guard(),
            stop,
            task: Some(tokio::spawn(task.run())),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        lock(&self.heard).ended.is_none()
    }

    /// Ends the input, and waits until the server was told.
    pub(super) async fn end(&mut self, limit: Duration) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = tokio::time::timeout(limit, task).await;
        }
        lock(&self.heard)
            .ended
            .get_or_insert_with(|| "stopped".to_owned());
    }

    pub(super) fn describe(&self) -> String {
        let heard = lock(&self.heard);
        let mut text = match &heard.ended {
            None => format!("Listening to the {}.", heard.line),
            Some(reason) => format!("Voice input is off: {reason}."),
        };
        text.push_str(&format!(" {}", count(heard.utterances, "utterance")));
        if !heard.last.is_empty() {
            text.push_str(&format!(", the last: {}", heard.last));
        }
        text
    }
}

/// Way that a round of questions ended.
enum Round {
    /// The server has more to say later.
    Quiet,
    Spoke,
    /// Voice input is over, for this reason.
    Over(String),
}

struct ListeningTask {
    session: SpeechSession,
    inputs: Arc<dyn SessionInputs>,
    heard: Arc<Mutex<Heard>>,
    stop: CancellationToken,
    /// Utterances that the session has no room for yet.
    pending: VecDeque<String>,
    /// Number of the last event that was taken.
    seen: u64,
    notices: u32,
}

impl ListeningTask {
    async fn run(mut self) {
        let (clock, stop) = (environment::clock(), self.stop.clone());
        let (mut failures, mut silence, mut round) = (0, 0, 0_u32);
        let reason = loop {
            let asked = tokio::select! {
                () = stop.cancelled() => break None,
                asked = self.round(ANSWER) => asked,
            };
            match asked {
                Ok(Round::Over(reason)) => break Some(reason),
                Ok(Round::Spoke) => (failures, silence) = (0, 0),
                Ok(Round::Quiet) => (failures, silence) = (0, silence + 1),
                Err(why) => {
                    failures += 1;
                    let is_lost = self.session.server.phase() != Phase::Ready || failures >= MAX_FAILURES;
                    if is_lost {
                        break Some(format!("MCP server {}: {why}", self.session.server.config().name));
                    }
                }
            }
            round = round.wrapping_add(1);
            if round.is_multiple_of(KEEP_OPEN) && !self.inputs.keep_open() {
                break Some("the session was left".to_owned());
            }
            let beat = if silence > QUIET_AFTER { QUIET_BEAT } else { BEAT };
            tokio::select! {
                () = stop.cancelled() => break None,
                () = clock.sleep(beat) => {}
            }
        };
        self.finish(reason).await;
    }

    /// Tells the server to stop, and takes what was said before.
    async fn finish(mut self, reason: Option<String>) {
        if self.session.server.phase() == Phase::Ready {
            let id = self.arguments();
            let _ = self.session.server.ask(STOP, id, LAST_ANSWER).await;
            let _ = self.round(LAST_ANSWER).await;
        }
        if let Some(reason) = &reason {
            self.inputs.tell(format!("voice input stopped: {reason}"));
        }
        lock(&self.heard).ended = Some(reason.unwrap_or_else(|| "stopped".to_owned()));
    }

    fn arguments(&self) -> Map<String, Value> {
        let mut arguments = Map::new();
        arguments.insert("session_id".to_owned(), json!(self.session.id));
        arguments
    }

    /// Hands over what waits, and asks for more if nothing does.
    async fn round(&mut self, limit: Duration) -> Result<Round, String> {
        if let Some(reason) = self.hand_over().await {
            return Ok(Round::Over(reason));
        }
        if !self.pending.is_empty() {
            return Ok(Round::Quiet);
        }
        let mut arguments = self.arguments();
        arguments.insert("since_seq".to_owned(), json!(self.seen));
        arguments.insert("limit".to_owned(), json!(PAGE));
        let asked = self.session.server.ask(GET, arguments, limit).await;
        let answer = asked.map_err(|error| error.to_string())?;
        let empty = Vec::new();
        let events = answer.get("events").and_then(Value::as_array).unwrap_or(&empty);
        let before = self.seen;
        for event in events {
            self.take(event, before);
        }
        if let Some(next) = answer.get("next_seq").and_then(Value::as_u64) {
            self.seen = self.seen.max(next);
        }
        if let Some(reason) = self.hand_over().await {
            return Ok(Round::Over(reason));
        }
        let status = answer.get("status").and_then(Value::as_str).unwrap_or_default();
        Ok(match events.is_empty() {
            true if ENDED.contains(&status) => {
                Round::Over(format!("the speech server ended the session ({status})"))
            }
            true => Round::Quiet,
            false => Round::Spoke,
        })
    }

    /// Takes one event. Those up to `before` were taken already.
    fn take(&mut self, event: &Value, before: u64) {
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = event.get("seq").and_then(Value::as_u64).unwrap_or(before + 1);
        if number <= before {
            return;
        }
        self.seen = self.seen.max(number);
        match text("type") {
            "utterance_final" => {
                let said = plain_text(text("text"), MAX_UTTERANCE).trim().to_owned();
                if !said.is_empty() {
                    self.pending.push_back(said);
                }
            }
            "error" | "warning" if self.notices < MAX_NOTICES => {
                self.notices += 1;
                let notice = plain_text(text("message"), 500);
                self.inputs.tell(format!("voice input: {}", notice.trim()));
            }
            _ => {}
        }
    }

    /// Submits the utterances that wait, in order. Those that the queue has no room for stay. Returns the reason if the
    /// session takes none any more.
    async fn hand_over(&mut self) -> Option<String> {
        while let Some(said) = self.pending.front() {
            match self.inputs.submit(said).await {
                Ok(()) => {
                    let mut heard = lock(&self.heard);
                    heard.utterances += 1;
                    heard.last = self.pending.pop_front().unwrap_or_default();
                }
                Err(ClientError::QueueFull(_)) => return None,
                Err(error) => return Some(error.to_string()),
            }
        }
        None
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
