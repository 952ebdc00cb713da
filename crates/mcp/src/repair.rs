//! Messages of servers that are not quite what the protocol says: one odd field must not cost the others, and an answer that
//! cannot be read is a failed answer, not one to wait for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rmcp::model::{ServerJsonRpcMessage, Tool};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};
use windlass_core::json::repaired;

use crate::client::Hub;
use crate::content;

/// Bytes read at once.
const PORTION: usize = 16 << 10;
/// Longest description of a tool that is passed on, in characters.
const LONGEST: usize = 64_000;
/// JSON-RPC's code for an internal error.
const INTERNAL: i64 = -32603;

/// Returns a message that can be read, or `None` if it can be as it is.
pub(crate) fn readable(message: &[u8], hub: &Hub) -> Option<Vec<u8>> {
    let start = message.trim_ascii_start();
    if !start.starts_with(b"{") {
        return None;
    }
    let has = |name: &[u8]| message.windows(name.len()).any(|part| part == name);
    let is_list = has(b"\"tools\"") || has(b"\"serverInfo\"");
    if !is_list && serde_json::from_slice::<ServerJsonRpcMessage>(message).is_ok() {
        return None;
    }
    let text = String::from_utf8_lossy(message);
    let mut value: Value = match serde_json::from_str(&repaired(&text)) {
        Ok(value) => value,
        Err(error) => return unreadable(&text, &error.to_string()),
    };
    correct(&mut value, hub);
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    Some(line)
}

/// Returns a failed answer in place of one that is not JSON, if its id can be found.
fn unreadable(text: &str, why: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once("\"id\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let id: Value = match rest.strip_prefix('"') {
        Some(rest) => rest.split_once('"')?.0.into(),
        None => {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().ok()?.into()
        }
    };
    let why = format!("its answer is not a message: {why}");
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": INTERNAL, "message": why } });
    Some(format!("{answer}\n").into_bytes())
}

fn correct(message: &mut Value, hub: &Hub) {
    if message["id"].is_null() || message.get("method").is_some() {
        return;
    }
    if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
        let said = error["message"]
            .as_str()
            .map_or_else(|| error.to_string(), str::to_owned);
        let code = error["code"].as_i64().unwrap_or(INTERNAL);
        message["error"] = match error["data"].clone() {
            Value::Null => json!({ "code": code, "message": said }),
            data => json!({ "code": code, "message": said, "data": data }),
        };
        if let Some(fields) = message.as_object_mut() {
            fields.shift_remove("result");
        }
    } else if let Some(result) = message.get_mut("result").filter(|result| result.is_object()) {
        complete_initialization(result);
        keep_tools(result, hub);
        if let Some(fields) = message.as_object_mut() {
            fields.shift_remove("error");
        }
    } else {
        let why = "its answer has neither a result nor an error";
        message["error"] = json!({ "code": INTERNAL, "message": why });
    }
}

/// Fills in what an answer to `initialize` must have and is not needed here.
fn complete_initialization(result: &mut Value) {
    if !result["serverInfo"].is_object() {
        return;
    }
    for name in ["name", "version"] {
        if !result["serverInfo"][name].is_string() {
            result["serverInfo"][name] = "".into();
        }
    }
    if let Some(fields) = result.as_object_mut()
        && fields.get("instructions").is_some_and(|text| !text.is_string())
    {
        fields.shift_remove("instructions");
    }
}

/// Leaves out tools that are not what the protocol says.
fn keep_tools(result: &mut Value, hub: &Hub) {
    let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) else {
        return;
    };
    tools.retain_mut(|tool| {
        shorten(tool);
        let Err(error) = serde_json::from_value::<Tool>(tool.clone()) else {
            return true;
        };
        let name = tool["name"].as_str().unwrap_or("without a name");
        let why = content::line(&error.to_string(), 200);
        hub.leave_out(format!("the tool {} is left out: {why}", content::line(name, 80)));
        false
    });
}

fn shorten(tool: &mut Value) {
    if let Some(Value::String(text)) = tool.get_mut("description")
        && text.len() > LONGEST
    {
        *text = text.chars().take(LONGEST).collect();
    }
}

/// A reader of messages, one on each line, that can all be read.
pub(crate) struct Readable<R> {
    pub(crate) reader: R,
    pub(crate) hub: Arc<Hub>,
    /// Bytes of a line that has not ended.
    pub(crate) line: Vec<u8>,
    /// Messages to pass on, from `at`.
    pub(crate) ready: Vec<u8>,
    pub(crate) at: usize,
}

impl<R> Readable<R> {
    pub(crate) fn new(reader: R, hub: Arc<Hub>) -> Self {
        Self {
            reader,
            hub,
            line: Vec::new(),
            ready: Vec::new(),
            at: 0,
        }
    }

    /// Passes on the lines that are complete.
    fn take(&mut self, mut read: &[u8]) {
        while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = read.split_at(end + 1);
            self.line.extend_from_slice(line);
            match readable(&self.line, &self.hub) {
                Some(better) => self.ready.extend(better),
                None => self.ready.append(&mut self.line),
            }
            self.line.clear();
            read = rest;
        }
        self.line.extend_from_slice(read);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Readable<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        loop {
            let left = self.ready.get(self.at..).unwrap_or_default();
            if !left.is_empty() {
                let count = left.len().min(buf.remaining());
                buf.put_slice(left.get(..count).unwrap_or_default());
                self.at += count;
                return Poll::Ready(Ok(()));
            }
            self.ready.clear();
            self.at = 0;
            let mut portion = [0; PORTION];
            let mut read = ReadBuf::new(&mut portion);
            std::task::ready!(Pin::new(&mut self.reader).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                // A last line without an end is none.
                return Poll::Ready(Ok(()));
            }
            self.take(read.filled());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected(message: &str) -> (Value, Vec<String>) {
        let hub = Hub::default();
        let line = readable(message.as_bytes(), &hub).expect("another message");
        (serde_json::from_slice(&line).expect("JSON"), hub.left_out())
    }

    /// MCP-4: an odd tool costs itself only, and a line says so.
    #[test]
    fn odd_tools_are_left_out() {
        let good = r#"{"name":"good","inputSchema":{"type":"object"}}"#;
        for odd in [
            "1",
            r#"{"inputSchema":{"type":"object"}}"#,
            r#"{"name":1,"inputSchema":{"type":"object"}}"#,
            r#"{"name":"odd"}"#,
            r#"{"name":"odd","inputSchema":[]}"#,
            r#"{"name":"odd","inputSchema":null}"#,
            r#"{"name":"odd","description":5,"inputSchema":{"type":"object"}}"#,
        ] {
            let list = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"tools":[{odd},{good}]}}}}"#);
            let (message, left) = corrected(&list);
            assert_eq!(message["result"]["tools"][0]["name"], "good", "{odd}");
            assert_eq!(
                message["result"]["tools"].as_array().map(Vec::len),
                Some(1),
                "{odd}"
            );
            assert!(left[0].contains("is left out"), "{odd}: {left:?}");
        }
        let deep = format!("{}{}", "{\"a\":".repeat(400), "1".to_owned() + &"}".repeat(400));
        let list = format!(
            r#"{{"jsonrpc":"2.0","id":3,"result":{{"tools":[{{"name":"deep","inputSchema":{deep}}},{good}]}}}}"#
        );
        assert_eq!(corrected(&list).0["result"]["tools"][1]["name"], "good");
        let cut = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a","description":"\ud800","inputSchema":{}}]}}"#;
        assert_eq!(corrected(cut).0["result"]["tools"][0]["description"], "\u{fffd}");
    }

    /// MCP-2: an answer that cannot be read is a failed one, with its id and the reason.
    #[test]
    fn unreadable_answers_fail() {
        for (message, id, reason) in [
            (
                r#"{"jsonrpc":"2.0","id":7}"#,
                json!(7),
                "neither a result nor an error",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"x":NaN}}"#,
                json!(7),
                "not a message",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"q","result":{"#,
                json!("q"),
                "not a message",
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":"bad","message":"no"}}"#,
                json!(7),
                "no",
            ),
            (r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#, json!(7), "no"),
        ] {
            let (answer, _) = corrected(message);
            assert_eq!(answer["id"], id, "{message}");
            let said = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(said.contains(reason), "{message}: {answer}");
            assert!(
                serde_json::from_value::<ServerJsonRpcMessage>(answer).is_ok(),
                "{message}"
            );
        }
        let half = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\ud800"}]}}"#;
        assert_eq!(corrected(half).0["result"]["content"][0]["text"], "a\u{fffd}");
        let hub = Hub::default();
        for fine in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#,
            "not JSON at all",
        ] {
            assert_eq!(readable(fine.as_bytes(), &hub), None, "{fine}");
        }
    }

    /// MCP-2: a greeting needs nothing that is not used.
    #[test]
    fn greetings_are_read() {
        let message = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},
            "serverInfo":{"name":"s"},"instructions":5}}"#
            .replace('\n', " ");
        let (greeting, _) = corrected(&message);
        assert_eq!(greeting["result"]["serverInfo"]["version"], "");
        assert!(greeting["result"].get("instructions").is_none());
    }
}
