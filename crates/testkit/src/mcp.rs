//! A client of the Model Context Protocol, for tests of `windlass mcp serve`.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::{Output, Run, Running, must};

/// Answers a request of the server; `None` leaves it without an answer.
type Answering = Box<dyn FnMut(&Value) -> Option<Value>>;

/// A client that runs the server over standard input and output.
pub struct McpClient {
    running: Running,
    /// Number of bytes of the output that were read.
    read: usize,
    next: u64,
    answers: HashMap<String, Result<Value, Value>>,
    answering: Answering,
    /// `_meta` of every request; null for a client with a handshake.
    meta: Value,
    /// Notifications so far.
    pub notices: Vec<Value>,
    /// Requests of the server so far.
    pub asked: Vec<Value>,
}

impl McpClient {
    /// Starts the server. Questions are declined.
    pub fn start(run: Run) -> Self {
        Self {
            running: run.open_stdin().start(),
            read: 0,
            next: 1,
            answers: HashMap::new(),
            answering: Box::new(|_| Some(json!({ "action": "decline" }))),
            meta: Value::Null,
            notices: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Starts the server and shakes hands.
    #[track_caller]
    pub fn connect(run: Run, version: &str, capabilities: Value) -> Self {
        let mut client = Self::start(run);
        client.initialize(version, capabilities);
        client
    }

    /// Starts the server as a stateless client.
    pub fn stateless(run: Run, capabilities: Value) -> Self {
        let mut client = Self::start(run);
        client.meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        client
    }

    /// Shakes hands and returns the result.
    #[track_caller]
    pub fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
        let result = self.call("initialize", params);
        self.line(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        result
    }

    /// Answers questions with the given function from now on.
    pub fn answering(&mut self, answer: impl FnMut(&Value) -> Option<Value> + 'static) -> &mut Self {
        self.answering = Box::new(answer);
        self
    }

    /// Accepts forms with this content.
    pub fn accepting(&mut self, content: Value) -> &mut Self {
        self.answering(move |_| Some(json!({ "action": "accept", "content": content })))
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if let Some(meta) = self.meta.as_object() {
            for (key, value) in meta {
                params["_meta"][key] = value.clone();
            }
        }
        self.line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// Calls a tool, with progress, and returns the id of the request.
    pub fn start_tool(&mut self, name: &str, arguments: Value) -> u64 {
        let meta = json!({ "progressToken": format!("p{}", self.next) });
        self.send(
            "tools/call",
            json!({ "name": name, "arguments": arguments, "_meta": meta }),
        )
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let id = self.start_tool(name, arguments);
        self.wait(id)
            .unwrap_or_else(|error| panic!("{name} failed: {error}"))
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

    /// Waits for a notification for which `is_it` returns true.
    #[track_caller]
    pub fn wait_for_notice(&mut self, is_it: impl Fn(&Value) -> bool) {
        while !self.notices.iter().any(&is_it) {
            self.receive();
        }
    }

    /// Receives one message, takes it, and returns it.
    #[track_caller]
    pub fn receive(&mut self) -> Value {
        let from = self.read;
        let rest = |run: &Running| run.stdout().get(from..).unwrap_or_default().to_owned();
        self.running
            .wait_until("the server writes a line", |run| rest(run).contains('\n'));
        let rest = rest(&self.running);
        let line = rest.lines().next().unwrap_or_default();
        self.read += line.len() + 1;
        let message: Value = must(serde_json::from_str(line), line);
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        match (message.get("method"), message.get("id")) {
            (None, Some(id)) => {
                let answer = match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
                self.answers.insert(id.to_string(), answer);
            }
            (Some(_), Some(id)) => {
                self.asked.push(message.clone());
                if let Some(result) = (self.answering)(&message) {
                    self.line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string());
                }
            }
            _ => self.notices.push(message.clone()),
        }
        message
    }

    /// Returns the process, for signals.
    pub fn process(&self) -> &Running {
        &self.running
    }

    /// Closes the server's input and waits for its end.
    pub fn end(mut self) -> Output {
        self.running.hush();
        self.running.output()
    }
}
