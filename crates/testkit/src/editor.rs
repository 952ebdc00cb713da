//! A client of the Agent Client Protocol, for tests of `windlass acp`.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::acp_schema::complaints;
use crate::{Output, Run, Running, must};

/// Answers a request of the agent; `None` leaves it without an answer.
type Answering = Box<dyn FnMut(&Value) -> Option<Result<Value, Value>>>;

/// An editor that runs the agent. Every line that the agent writes is checked against the schema.
pub struct Editor {
    running: Running,
    /// Folder that the agent was started in.
    folder: PathBuf,
    /// Number of bytes of the output that were read.
    read: usize,
    next: u64,
    /// Methods of the requests without an answer, by id.
    open: HashMap<String, String>,
    answers: HashMap<String, Result<Value, Value>>,
    answering: Answering,
    /// Updates so far, as `params.update`, with the id of their session.
    pub updates: Vec<(String, Value)>,
    /// Requests of the agent so far.
    pub asked: Vec<Value>,
    /// Ids of our requests whose answers arrived, and `updates.len()` at that time.
    pub answered: Vec<(u64, usize)>,
}

impl Editor {
    /// Starts the agent. Permission requests are rejected.
    pub fn start(run: Run) -> Self {
        Self {
            folder: run.folder(),
            running: run.open_stdin().start(),
            read: 0,
            next: 1,
            open: HashMap::new(),
            answers: HashMap::new(),
            answering: Box::new(|_| Some(Ok(selected("reject")))),
            updates: Vec::new(),
            asked: Vec::new(),
            answered: Vec::new(),
        }
    }

    /// Starts the agent and initializes it as a client with these capabilities.
    pub fn connect(run: Run, capabilities: Value) -> Self {
        let mut editor = Self::start(run);
        editor.initialize(capabilities);
        editor
    }

    /// Answers requests of the agent with the given function from now on.
    pub fn answering(
        &mut self,
        answer: impl FnMut(&Value) -> Option<Result<Value, Value>> + 'static,
    ) -> &mut Self {
        self.answering = Box::new(answer);
        self
    }

    /// Answers permission requests with this option.
    pub fn choosing(&mut self, option: &str) -> &mut Self {
        let outcome = selected(option);
        self.answering(move |_| Some(Ok(outcome.clone())))
    }

    /// Sends `initialize` and returns its result.
    #[track_caller]
    pub fn initialize(&mut self, capabilities: Value) -> Value {
        self.call(
            "initialize",
            json!({ "protocolVersion": 1, "clientCapabilities": capabilities }),
        )
    }

    /// Creates a session in the folder that the agent was started in, and returns its id.
    #[track_caller]
    pub fn open_here(&mut self) -> String {
        self.open(self.folder.clone())
    }

    /// Creates a session in a folder and returns its id.
    #[track_caller]
    pub fn open(&mut self, folder: impl AsRef<std::path::Path>) -> String {
        let params = json!({ "cwd": folder.as_ref(), "mcpServers": [] });
        let result = self.call("session/new", params);
        result["sessionId"].as_str().unwrap_or_default().to_owned()
    }

    /// Sends a prompt and returns its stop reason.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.ask(session, text);
        match self.wait(id) {
            Ok(result) => result["stopReason"].as_str().unwrap_or_default().to_owned(),
            Err(error) => panic!("the prompt failed: {error}"),
        }
    }

    /// Sends a prompt and returns the id of the request.
    pub fn ask(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.open.insert(id.to_string(), method.to_owned());
        self.line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a line as it is.
    pub fn line(&mut self, line: &str) {
        self.running.say(&format!("{line}\n"));
    }

    /// Sends a request that must succeed.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.wait(id)
            .unwrap_or_else(|error| panic!("{method} failed: {error}"))
    }

    /// Sends a request that must fail, and returns the error.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        match self.wait(id) {
            Ok(result) => panic!("{method} succeeded: {result}"),
            Err(error) => error,
        }
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn wait(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            if let Some(answer) = self.answers.remove(&id.to_string()) {
                return answer;
            }
            self.receive();
        }
    }

    /// Waits for an update for which `is_it` returns true.
    #[track_caller]
    pub fn wait_for_update(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut seen = 0;
        loop {
            while let Some((_, update)) = self.updates.get(seen) {
                if is_it(update) {
                    return update.clone();
                }
                seen += 1;
            }
            self.receive();
        }
    }

    /// Receives one message, takes it, and returns it.
    #[track_caller]
    pub fn receive(&mut self) -> Value {
        let from = self.read;
        let rest = |run: &Running| run.stdout().get(from..).unwrap_or_default().to_owned();
        self.running
            .wait_until("the agent writes a line", |run| rest(run).contains('\n'));
        let rest = rest(&self.running);
        let line = rest.lines().next().unwrap_or_default();
        self.read += line.len() + 1;
        self.take(line)
    }

    #[track_caller]
    fn take(&mut self, line: &str) -> Value {
        let message: Value = must(serde_json::from_str(line), line);
        let id = message["id"].to_string();
        let is_response = message.get("method").is_none();
        let method = if is_response { self.open.remove(&id) } else { None };
        let found = complaints(&message, method.as_deref());
        assert!(
            found.is_empty(),
            "{line}\nis not a message of the protocol: {found:?}"
        );
        if is_response {
            let answer = match message.get("error") {
                Some(error) => Err(error.clone()),
                None => Ok(message["result"].clone()),
            };
            if let Ok(number) = id.parse() {
                self.answered.push((number, self.updates.len()));
            }
            self.answers.insert(id, answer);
        } else if message.get("id").is_some() {
            self.asked.push(message.clone());
            if let Some(answer) = (self.answering)(&message) {
                let id = &message["id"];
                let answer = match answer {
                    Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
                };
                self.line(&answer.to_string());
            }
        } else if message["method"] == "session/update" {
            let session = message["params"]["sessionId"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            self.updates.push((session, message["params"]["update"].clone()));
        }
        message
    }

    /// Returns the updates of a kind so far.
    pub fn of_kind(&self, kind: &str) -> Vec<&Value> {
        let updates = self.updates.iter().map(|(_, update)| update);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// Returns the text of the agent's messages so far.
    pub fn text(&self) -> String {
        self.text_of("agent_message_chunk")
    }

    /// Returns the text of all chunks of a kind so far.
    pub fn text_of(&self, kind: &str) -> String {
        let chunks = self.of_kind(kind);
        chunks
            .iter()
            .filter_map(|chunk| chunk["content"]["text"].as_str())
            .collect()
    }

    /// Returns the process, for signals.
    pub fn process(&self) -> &Running {
        &self.running
    }

    /// Closes the agent's input, waits for its end, and takes what it wrote until then.
    #[track_caller]
    pub fn end(mut self) -> Output {
        self.running.hush();
        let Self {
            running,
            read,
            mut open,
            ..
        } = self;
        let output = running.output();
        let rest = output.stdout.get(read..).unwrap_or_default();
        for line in rest.lines() {
            let message: Value = must(serde_json::from_str(line), line);
            let method = open.remove(&message["id"].to_string());
            let found = complaints(&message, method.as_deref());
            assert!(
                found.is_empty(),
                "{line}\nis not a message of the protocol: {found:?}"
            );
        }
        assert!(
            output.stdout.is_empty() || output.stdout.ends_with('\n'),
            "the last line is whole"
        );
        output
    }
}

/// Returns the outcome of a permission request.
fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}
