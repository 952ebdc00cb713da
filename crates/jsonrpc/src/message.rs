//! Messages and errors, and the reader of standard input.

use std::io::{BufRead, BufReader, Read};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Maximum length of a line. A prompt with several images is well below it.
const MAX_LINE: usize = 64 << 20;

/// Number of parsed messages that wait for the connection.
const INBOX: usize = 64;

/// Error of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Code of the error.
    pub code: i64,
    /// Description in one line.
    pub message: String,
    /// Details for programs.
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        // Clients show the message on one line.
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            code,
            message,
            data: None,
        }
    }

    /// The message is not JSON.
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    /// The message is not a request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    /// There is no such method.
    pub fn unknown_method(method: &str) -> Self {
        Self::new(-32601, format!("there is no method `{method}`"))
    }

    /// A parameter is wrong.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// The request failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    fn read(value: &Value) -> Self {
        let code = value.get("code").and_then(Value::as_i64).unwrap_or(-32603);
        let message = value.get("message").and_then(Value::as_str).unwrap_or_default();
        Self::new(code, message)
    }

    /// Returns the error as JSON.
    pub fn to_value(&self) -> Value {
        let mut value = json!({ "code": self.code, "message": self.message });
        if let (Some(data), Some(map)) = (&self.data, value.as_object_mut()) {
            map.insert("data".to_owned(), data.clone());
        }
        value
    }
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// A request, which must be answered.
    Request {
        /// Id of the answer.
        id: Value,
        /// The method.
        method: String,
        /// Its parameters; null if there are none.
        params: Value,
    },
    /// A notification, which has no answer.
    Notification {
        /// The method.
        method: String,
        /// Its parameters; null if there are none.
        params: Value,
    },
    /// The answer to a request of ours.
    Response {
        /// Id of our request.
        id: Value,
        /// The answer.
        result: Result<Value, RpcError>,
    },
    /// Not a message. The answer has this id.
    Invalid {
        /// Id of the answer.
        id: Value,
        /// The answer.
        error: RpcError,
    },
}

impl Incoming {
    /// Parses a line.
    pub fn parse(line: &[u8]) -> Self {
        let invalid = |id: Value, error| Self::Invalid { id, error };
        let mut value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => return invalid(Value::Null, RpcError::parse(format!("not JSON: {error}"))),
        };
        let Some(map) = value.as_object_mut() else {
            let text = "a message is one JSON object; batches are not supported";
            return invalid(Value::Null, RpcError::invalid_request(text));
        };
        let id = map.remove("id");
        let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64() || id.is_null();
        if map.get("jsonrpc").and_then(Value::as_str) != Some("2.0") || !id.iter().all(is_id) {
            let error = RpcError::invalid_request("`jsonrpc` must be \"2.0\", and `id` a number or a string");
            return invalid(id.filter(is_id).unwrap_or_default(), error);
        }
        let params = map.remove("params").unwrap_or_default();
        match (map.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Self::Request { id, method, params },
            (Some(Value::String(method)), None) => Self::Notification { method, params },
            (None, Some(id)) if map.contains_key("result") || map.contains_key("error") => {
                let result = match map.get("error") {
                    Some(error) if !error.is_null() => Err(RpcError::read(error)),
                    _ => Ok(map.remove("result").unwrap_or_default()),
                };
                Self::Response { id, result }
            }
            (_, id) => {
                let error = RpcError::invalid_request("a message has a `method`, a `result` or an `error`");
                invalid(id.unwrap_or_default(), error)
            }
        }
    }
}

/// Reads the parameters of a method.
///
/// # Errors
/// When a parameter is missing or has the wrong type.
pub fn params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    serde_json::from_value(params).map_err(|error| RpcError::invalid_params(error.to_string()))
}

/// Reads messages on a thread of its own, until the end of the input. A line that is too long is skipped and
/// reported.
pub fn read_messages(input: impl Read + Send + 'static) -> mpsc::Receiver<Incoming> {
    let (sender, receiver) = mpsc::channel(INBOX);
    std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(1 << 16, input);
        while let Some(line) = read_line(&mut input, MAX_LINE) {
            let message = match line {
                Ok(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(line) => Incoming::parse(&line),
                Err(TooLong) => Incoming::Invalid {
                    id: Value::Null,
                    error: RpcError::parse(format!("the line is longer than {} MB", MAX_LINE >> 20)),
                },
            };
            if sender.blocking_send(message).is_err() {
                break;
            }
        }
    });
    receiver
}

#[derive(Debug, PartialEq)]
struct TooLong;

/// Reads a line without its end; `None` at the end of the input. Keeps at most `limit` bytes in memory.
fn read_line(input: &mut impl BufRead, limit: usize) -> Option<Result<Vec<u8>, TooLong>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        };
        if piece.is_empty() {
            return (!line.is_empty()).then_some(Ok(line));
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = end.unwrap_or(piece.len());
        is_too_long |= line.len() + length > limit;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend(piece.iter().take(length));
        }
        input.consume(end.map_or(length, |end| end + 1));
        if end.is_some() {
            return Some(if is_too_long { Err(TooLong) } else { Ok(line) });
        }
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
