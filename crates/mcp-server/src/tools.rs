//! The tools: their definitions, arguments and calls.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_api::{Begin, ClientError, Event, Find, Label, OnBusy, SessionId, Submission};
use windlass_jsonrpc::RpcError;

use crate::desk::Desk;
use crate::protocol::Request;
use crate::resources::row;
use crate::transcript::transcript;
use crate::turn::{Followed, State};

/// Time that a call waits for a turn, in seconds: the default, and the most.
const WAIT: u64 = 3_600;
const MOST_WAIT: u64 = 86_400;
/// Entries that are read at a time, and sessions in a list.
const ENTRIES: usize = 200;
const MOST_ENTRIES: usize = 1_000;
const SESSIONS: usize = 20;
const MOST_SESSIONS: usize = 200;
/// Entries in which the start of the running turn is looked for.
const LOOK_BACK: usize = 512;

/// Result of a tool, or the reason why it could not run.
pub(crate) type Called = Result<Value, CallError>;

/// Reason why a call failed.
pub(crate) enum CallError {
    /// The model can do something about it: the result is an error.
    Tool(String),
    /// The request itself failed.
    Request(RpcError),
}

impl From<RpcError> for CallError {
    fn from(error: RpcError) -> Self {
        Self::Request(error)
    }
}

impl From<ClientError> for CallError {
    fn from(error: ClientError) -> Self {
        Self::Tool(match error {
            ClientError::Unknown(session) => {
                format!("session_id: there is no session {session}; list_sessions shows them")
            }
            ClientError::Empty => "prompt: it is empty".to_owned(),
            ClientError::Busy(session) => format!(
                "session_id: a turn runs in session {session}; use steer_session, wait_for_session, or when_busy \"queue\""
            ),
            error => error.to_string(),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    prompt: String,
    folder: Option<String>,
    name: Option<String>,
    wait: Option<bool>,
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Continue {
    session_id: String,
    prompt: String,
    #[serde(default)]
    when_busy: WhenBusy,
    wait: Option<bool>,
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "snake_case")]
enum WhenBusy {
    #[default]
    Refuse,
    Queue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Steer {
    session_id: String,
    prompt: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneSession {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    session_id: String,
    timeout_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    session_id: String,
    before: Option<u64>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    query: Option<String>,
    folder: Option<String>,
    limit: Option<usize>,
}

/// Reads the arguments of a tool. An error names the field.
fn arguments<T: DeserializeOwned>(given: &Value) -> Result<T, CallError> {
    let empty = json!({});
    let given = if given.is_null() { &empty } else { given };
    serde_path_to_error::deserialize(given).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." {
            String::new()
        } else {
            format!("{path}: ")
        };
        CallError::Tool(format!("{place}{}", error.inner()))
    })
}

fn limit(seconds: Option<u64>) -> Result<Duration, CallError> {
    match seconds {
        Some(seconds) if seconds > MOST_WAIT => {
            let text = format!("timeout_seconds: it is {seconds}, at most {MOST_WAIT}");
            Err(CallError::Tool(text))
        }
        seconds => Ok(Duration::from_secs(seconds.unwrap_or(WAIT))),
    }
}

fn at_most(field: &str, given: Option<usize>, default: usize, most: usize) -> Result<usize, CallError> {
    match given {
        Some(number) if number == 0 || number > most => Err(CallError::Tool(format!(
            "{field}: it is {number}, not 1 to {most}"
        ))),
        number => Ok(number.unwrap_or(default)),
    }
}

impl Desk {
    /// Calls a tool.
    pub(crate) async fn call_tool(&self, request: &Request, params: &Value) -> Result<Value, RpcError> {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| RpcError::invalid_params("name: it must be a string"))?;
        let given = params.get("arguments").unwrap_or(&Value::Null);
        let called = match params.get("requestState").and_then(Value::as_str) {
            Some(state) => self.answered(request, params, name, state).await,
            None => self.run_tool(request, params, name, given).await,
        };
        match called {
            Ok(result) => Ok(result),
            Err(CallError::Tool(text)) => Ok(json!({
                "content": [{ "type": "text", "text": text }],
                "isError": true,
            })),
            Err(CallError::Request(error)) => Err(error),
        }
    }

    async fn run_tool(&self, request: &Request, params: &Value, name: &str, given: &Value) -> Called {
        match name {
            "start_session" => self.start(request, params, arguments(given)?).await,
            "continue_session" => self.go_on(request, params, arguments(given)?).await,
            "steer_session" => self.steer(arguments(given)?).await,
            "cancel_session" => self.cancel(arguments(given)?).await,
            "wait_for_session" => self.wait(request, params, arguments(given)?).await,
            "read_session" => self.read(arguments(given)?).await,
            "list_sessions" => self.list(arguments(given)?).await,
            _ => Err(RpcError::invalid_params(format!("name: there is no tool {name}")).into()),
        }
    }

    async fn start(&self, request: &Request, params: &Value, given: Start) -> Called {
        let limit = limit(given.timeout_seconds)?;
        if given.prompt.trim().is_empty() {
            return Err(CallError::Tool("prompt: it is empty".to_owned()));
        }
        let admitted = self.host.admit(given.folder.as_deref());
        let place = admitted.map_err(|why| CallError::Tool(format!("folder: {why}")))?;
        let label = Label {
            name: given.name,
            ..Label::default()
        };
        let begin = Begin::New {
            id: None,
            place,
            label,
            parent: None,
        };
        let info = self.turns.backend.begin(begin).await?;
        let submission = Submission::text(info.id, given.prompt);
        self.send(request, params, "start_session", submission, (given.wait, limit))
            .await
    }

    async fn go_on(&self, request: &Request, params: &Value, given: Continue) -> Called {
        let limit = limit(given.timeout_seconds)?;
        let session = self.open(given.session_id).await?;
        let mut submission = Submission::text(session, given.prompt);
        submission.on_busy = match given.when_busy {
            WhenBusy::Refuse => OnBusy::Refuse,
            WhenBusy::Queue => OnBusy::Queue,
        };
        self.send(
            request,
            params,
            "continue_session",
            submission,
            (given.wait, limit),
        )
        .await
    }

    /// Submits an input, and follows its turn unless the client does not want to wait.
    async fn send(
        &self,
        request: &Request,
        params: &Value,
        tool: &str,
        submission: Submission,
        (wait, limit): (Option<bool>, Duration),
    ) -> Called {
        let session = submission.session.clone();
        let before = self.turns.backend.overview(&session).await?.info.last_seq;
        let events = self.turns.backend.submit(submission).await?;
        if wait == Some(false) {
            self.turns.linger(&session, before, request.can_ask);
            return Ok(self.turns.result(&session, State::Running, Vec::new()).await?);
        }
        let turn = Followed {
            session,
            tool,
            events,
            history: 0,
            is_own: true,
            limit,
            denied: Vec::new(),
        };
        Ok(self.turns.follow(request, params, turn).await?)
    }

    async fn steer(&self, given: Steer) -> Called {
        let session = self.open(given.session_id).await?;
        if !self.turns.backend.overview(&session).await?.is_busy {
            let text = format!("session_id: no turn runs in session {session}; use continue_session");
            return Err(CallError::Tool(text));
        }
        let mut submission = Submission::text(session.clone(), given.prompt);
        submission.on_busy = OnBusy::Steer;
        self.turns.backend.submit(submission).await?;
        Ok(self.turns.result(&session, State::Steered, Vec::new()).await?)
    }

    async fn cancel(&self, given: OneSession) -> Called {
        let session = self.open(given.session_id).await?;
        for message in self.turns.backend.overview(&session).await?.queue {
            self.turns.backend.take_back(&session, &message.id).await;
        }
        let state = if self.turns.backend.cancel(&session).await {
            State::Canceled
        } else {
            State::Idle
        };
        Ok(self.turns.result(&session, state, Vec::new()).await?)
    }

    async fn wait(&self, request: &Request, params: &Value, given: Wait) -> Called {
        let limit = limit(given.timeout_seconds)?;
        let session = self.open(given.session_id).await?;
        self.follow_running(
            request,
            params,
            "wait_for_session",
            session,
            (false, limit, Vec::new()),
        )
        .await
    }

    /// Follows the running turn of a session. If none runs, returns the end of the last one.
    async fn follow_running(
        &self,
        request: &Request,
        params: &Value,
        tool: &str,
        session: SessionId,
        (is_own, limit, denied): (bool, Duration, Vec<String>),
    ) -> Called {
        let backend = &self.turns.backend;
        let overview = backend.overview(&session).await?;
        let entries = backend.tail(&session, None, LOOK_BACK).await?;
        if !overview.is_busy {
            let ended = entries
                .into_iter()
                .rev()
                .map(|entry| entry.event)
                .find(Event::is_terminal);
            let state = ended.map_or(State::Idle, State::Ended);
            return Ok(self.turns.result(&session, state, denied).await?);
        }
        let is_start = |entry: &&windlass_api::Entry| matches!(entry.event, Event::Start { .. });
        let start = entries.iter().rev().find(is_start).or(entries.first());
        let after = start.map_or(0, |entry| entry.seq.saturating_sub(1));
        let events = backend.subscribe(&session, after).await?;
        // The turn may have ended since the entries were read; then its end is not history.
        let history = entries.last().map_or(0, |entry| entry.seq);
        let turn = Followed {
            session,
            tool,
            events,
            history,
            is_own,
            limit,
            denied,
        };
        Ok(self.turns.follow(request, params, turn).await?)
    }

    /// Goes on with a stateless call after the client's answer.
    async fn answered(&self, request: &Request, params: &Value, name: &str, state: &str) -> Called {
        let carried = self.turns.signer.open(state)?;
        if carried.tool != name {
            return Err(RpcError::invalid_params("requestState: it belongs to another tool").into());
        }
        let session = SessionId::from(carried.session.as_str());
        let answer = params
            .get("inputResponses")
            .and_then(|all| all.get(&carried.call));
        if let Some(answer) = answer {
            let asked = self
                .turns
                .backend
                .tail(&session, Some(carried.seq + 1), 1)
                .await?;
            let question = asked.first().and_then(|entry| match &entry.event {
                Event::Waiting(waiting) => crate::ask::Question::read(entry.seq, waiting),
                _ => None,
            });
            if let Some(question) = question.filter(|question| question.call.as_str() == carried.call) {
                let reply = question.reply(answer);
                self.turns.reply(&session, &question, reply).await;
            }
        }
        let given = params
            .get("arguments")
            .and_then(|given| given.get("timeout_seconds"));
        let limit = limit(given.and_then(Value::as_u64))?;
        let is_own = name != "wait_for_session";
        self.follow_running(request, params, name, session, (is_own, limit, carried.denied))
            .await
    }

    async fn read(&self, given: Read) -> Called {
        let limit = at_most("limit", given.limit, ENTRIES, MOST_ENTRIES)?;
        let session = SessionId::from(given.session_id);
        let entries = self.turns.backend.tail(&session, given.before, limit).await?;
        let first = entries.first().map(|entry| entry.seq);
        let text = transcript(&entries);
        let mut content = json!({ "session_id": session, "transcript": text, "entries": entries.len() });
        if let (Some(first), Some(content)) = (first.filter(|first| *first > 1), content.as_object_mut()) {
            content.insert("before".to_owned(), json!(first));
        }
        Ok(json!({ "content": [{ "type": "text", "text": text }], "structuredContent": content }))
    }

    async fn list(&self, given: List) -> Called {
        let limit = at_most("limit", given.limit, SESSIONS, MOST_SESSIONS)?;
        let find = Find {
            words: given.query.unwrap_or_default(),
            place: given.folder,
            user: Some(windlass_api::UserName::default()),
            limit,
        };
        let found = self.turns.backend.sessions(&find).await?;
        let rows: Vec<Value> = found.iter().map(row).collect();
        let content = json!({ "sessions": rows });
        Ok(json!({
            "content": [{ "type": "text", "text": content.to_string() }],
            "structuredContent": content,
        }))
    }

    /// Opens a session here, so that it can be used.
    async fn open(&self, id: String) -> Result<SessionId, CallError> {
        let info = self
            .turns
            .backend
            .begin(Begin::Resume(SessionId::from(id)))
            .await?;
        Ok(info.id)
    }
}

/// Returns the definitions of all tools, always in the same order.
pub(crate) fn definitions() -> Value {
    serde_json::from_str(include_str!("tools.json")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MCP-8: the limits in the definitions are those of the calls.
    #[test]
    fn definitions_match_the_calls() {
        let tools = definitions();
        let field = |tool: usize, name: &str| tools["tools"][tool]["inputSchema"]["properties"][name].clone();
        let limits = |field: Value| (field["default"].clone(), field["maximum"].clone());
        for tool in [0, 1, 4] {
            assert_eq!(
                limits(field(tool, "timeout_seconds")),
                (json!(WAIT), json!(MOST_WAIT))
            );
        }
        assert_eq!(limits(field(5, "limit")), (json!(ENTRIES), json!(MOST_ENTRIES)));
        assert_eq!(limits(field(6, "limit")), (json!(SESSIONS), json!(MOST_SESSIONS)));
    }
}
