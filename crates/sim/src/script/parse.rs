//! Parses scripts from YAML; errors name the line and what is expected there.

use windlass_yaml::{Data, Node, TableEntry};

use super::reader::{Parsed, Reader};
use super::reply::{CallArguments, Reply, ReplyCall, Times};
use super::{OnEnd, Script, ScriptError, When};
use crate::answer::{Pieces, Stop, Thinking, UsageOverride};
use crate::fault::{Deviation, Fault, Framing, Interrupt};
use crate::wire::Protocol;

const ON_END: [(&str, OnEnd); 3] = [
    ("error", OnEnd::Error),
    ("repeat", OnEnd::Repeat),
    ("rules", OnEnd::Rules),
];
const WIRES: [(&str, Protocol); 4] = [
    ("anthropic", Protocol::Anthropic),
    ("chat", Protocol::Chat),
    ("responses", Protocol::Responses),
    ("gemini", Protocol::Gemini),
];
const SCRIPT_KEYS: &[&str] = &["model", "on_end", "replies"];
const REPLY_KEYS: &[&str] = &[
    "when",
    "thinking",
    "text",
    "calls",
    "stop",
    "usage",
    "delta_chars",
    "deltas",
    "times",
    "fault",
];
const WHEN_KEYS: &[&str] = &[
    "user_contains",
    "last_result_contains",
    "last_result_not_contains",
    "last_tool",
    "system_contains",
    "has_tool",
    "wire",
    "no_tools",
];
const CALL_KEYS: &[&str] = &["tool", "id", "args", "raw"];
const THINKING_KEYS: &[&str] = &["text", "redacted"];
const USAGE_KEYS: &[&str] = &["input", "output", "cache_read", "cache_write"];
const FAULT_KEYS: &[&str] = &[
    "status",
    "headers",
    "body",
    "error_type",
    "message",
    "redirect",
    "cut_after_events",
    "cut_after_bytes",
    "stall_after_events",
    "delay_ms",
    "chunk",
    "framing",
    "content_type",
    "invalid_utf8",
    "oversized",
    "mid_stream_error",
    "no_finish",
    "ping",
    "shared_index",
    "missing_index",
    "id_per_fragment",
    "finish_stop_with_calls",
    "no_done",
    "usage_missing",
    "null_content",
];

pub(super) fn script(text: &str, name: &str) -> Parsed<Script> {
    let root = Node::read(text).map_err(|error| ScriptError::Syntax {
        name: name.to_owned(),
        line: error.line,
        message: error.message,
    })?;
    let reader = Reader { name };
    let mut script = Script::new();
    for entry in reader.table(&root, "the script", "the script", SCRIPT_KEYS)? {
        match entry.key.as_str() {
            "model" => script.model = Some(reader.text(entry)?),
            "on_end" => script.on_end = reader.choice(entry, &ON_END)?,
            "replies" => script.replies = reader.each(entry, |node| reader.reply(node))?,
            other => return Err(reader.unknown(other, entry.line, "the script", SCRIPT_KEYS)),
        }
    }
    Ok(script)
}

impl Reader<'_> {
    fn reply(&self, node: &Node) -> Parsed<Reply> {
        let place = "a reply";
        let mut reply = Reply::default();
        for entry in self.table(node, "a reply", place, REPLY_KEYS)? {
            match entry.key.as_str() {
                "when" => reply.when = self.when(entry)?,
                "thinking" => reply.thinking = self.thinking(entry)?,
                "text" => reply.text = Some(self.text(entry)?),
                "calls" => reply.calls = self.each(entry, |node| self.call(node))?,
                "stop" => reply.stop = Some(self.choice(entry, &Stop::NAMES)?),
                "usage" => reply.usage = self.usage(entry)?,
                "delta_chars" => reply.pieces = Pieces::Characters(self.count(entry)?),
                "deltas" => reply.pieces = Pieces::Count(self.count(entry)?),
                "times" => reply.times = self.times(entry)?,
                "fault" => reply.fault = self.fault(entry)?,
                other => return Err(self.unknown(other, entry.line, place, REPLY_KEYS)),
            }
        }
        Ok(reply)
    }

    fn when(&self, entry: &TableEntry) -> Parsed<When> {
        let mut when = When::new();
        for entry in self.table(&entry.value, "when", "`when`", WHEN_KEYS)? {
            match entry.key.as_str() {
                "user_contains" => when.user_contains = Some(self.text(entry)?),
                "last_result_contains" => when.last_result_contains = Some(self.text(entry)?),
                "last_result_not_contains" => {
                    when.last_result_not_contains = Some(self.text(entry)?);
                }
                "last_tool" => when.last_tool = Some(self.text(entry)?),
                "system_contains" => when.system_contains = Some(self.text(entry)?),
                "has_tool" => when.has_tool = Some(self.text(entry)?),
                "wire" => when.wire = Some(self.choice(entry, &WIRES)?),
                "no_tools" => when.no_tools = Some(self.flag(entry)?),
                other => return Err(self.unknown(other, entry.line, "`when`", WHEN_KEYS)),
            }
        }
        Ok(when)
    }

    fn thinking(&self, entry: &TableEntry) -> Parsed<Vec<Thinking>> {
        if let Data::Text(text) = &entry.value.data {
            return Ok(vec![Thinking {
                text: text.clone(),
                redacted: false,
            }]);
        }
        let mut thought = Thinking {
            text: String::new(),
            redacted: false,
        };
        for entry in self.table(&entry.value, "thinking", "`thinking`", THINKING_KEYS)? {
            match entry.key.as_str() {
                "redacted" => thought.redacted = self.flag(entry)?,
                _ => thought.text = self.text(entry)?,
            }
        }
        Ok(vec![thought])
    }

    fn call(&self, node: &Node) -> Parsed<ReplyCall> {
        let mut call = ReplyCall {
            id: None,
            tool: String::new(),
            arguments: CallArguments::Value(serde_json::json!({})),
        };
        for entry in self.table(node, "calls", "a call", CALL_KEYS)? {
            match entry.key.as_str() {
                "tool" => call.tool = self.text(entry)?,
                "id" => call.id = Some(self.text(entry)?),
                "raw" => call.arguments = CallArguments::Raw(self.text(entry)?),
                _ => {
                    let Data::Table(_) = &entry.value.data else {
                        return Err(self.bad(entry, "a table of arguments"));
                    };
                    call.arguments = CallArguments::Value(entry.value.to_json());
                }
            }
        }
        if call.tool.is_empty() {
            return Err(ScriptError::BadValue {
                name: self.name.to_owned(),
                line: node.line,
                key: "tool".to_owned(),
                expected: "the name of a tool".to_owned(),
                found: "nothing".to_owned(),
            });
        }
        Ok(call)
    }

    fn usage(&self, entry: &TableEntry) -> Parsed<UsageOverride> {
        let mut usage = UsageOverride::default();
        for entry in self.table(&entry.value, "usage", "`usage`", USAGE_KEYS)? {
            let value = Some(self.number(entry)?);
            match entry.key.as_str() {
                "input" => usage.input = value,
                "output" => usage.output = value,
                "cache_read" => usage.cache_read = value,
                _ => usage.cache_write = value,
            }
        }
        Ok(usage)
    }

    fn times(&self, entry: &TableEntry) -> Parsed<Times> {
        match &entry.value.data {
            Data::Text(text) if text == "forever" => Ok(Times::Forever),
            Data::Number(number) => match number.as_u64() {
                Some(count) if count > 0 => Ok(Times::Count(count)),
                _ => Err(self.bad(entry, "a number above 0 or `forever`")),
            },
            _ => Err(self.bad(entry, "a number above 0 or `forever`")),
        }
    }

    fn fault(&self, entry: &TableEntry) -> Parsed<Fault> {
        let mut fault = Fault::new();
        for entry in self.table(&entry.value, "fault", "`fault`", FAULT_KEYS)? {
            let key = entry.key.as_str();
            if let Some((_, deviation)) = Deviation::NAMES.iter().find(|(name, _)| *name == key) {
                if self.flag(entry)? {
                    fault.deviations.push(*deviation);
                }
                continue;
            }
            match key {
                "status" => fault.refusal().status = self.status(entry)?,
                "headers" => fault.refusal().headers = self.headers(entry)?,
                "body" => fault.refusal().body = Some(self.text(entry)?),
                "error_type" => fault.refusal().error_type = Some(self.text(entry)?),
                "message" => fault.refusal().message = Some(self.text(entry)?),
                "redirect" => {
                    let url = self.text(entry)?;
                    let refusal = fault.refusal();
                    refusal.status = 307;
                    refusal.headers.push(("location".to_owned(), url));
                }
                _ => self.stream_fault(&mut fault, entry)?,
            }
        }
        Ok(fault)
    }

    fn stream_fault(&self, fault: &mut Fault, entry: &TableEntry) -> Parsed<()> {
        match entry.key.as_str() {
            "cut_after_events" => fault.interrupt = Some(Interrupt::CutAfterEvents(self.number(entry)?)),
            "cut_after_bytes" => fault.interrupt = Some(Interrupt::CutAfterBytes(self.number(entry)?)),
            "stall_after_events" => fault.interrupt = Some(Interrupt::StallAfterEvents(self.number(entry)?)),
            "delay_ms" => fault.delay_ms = self.number(entry)?,
            "chunk" => fault.chunk = Some(self.count(entry)?),
            "framing" => fault.framing = self.choice(entry, &Framing::NAMES)?,
            "content_type" => fault.content_type = Some(self.text(entry)?),
            "invalid_utf8" => fault.invalid_utf8 = self.flag(entry)?,
            "oversized" => fault.oversized = self.number(entry)?,
            "mid_stream_error" => fault.mid_stream_error = Some(self.text(entry)?),
            "no_finish" => fault.no_finish = self.flag(entry)?,
            "ping" => fault.pings = self.number(entry)?,
            other => return Err(self.unknown(other, entry.line, "`fault`", FAULT_KEYS)),
        }
        Ok(())
    }

    fn headers(&self, entry: &TableEntry) -> Parsed<Vec<(String, String)>> {
        let Data::Table(entries) = &entry.value.data else {
            return Err(self.bad(entry, "a table of header names and values"));
        };
        entries
            .iter()
            .map(|header| {
                let value = match &header.value.data {
                    Data::Number(number) => number.to_string(),
                    _ => self.text(header)?,
                };
                Ok((header.key.to_lowercase(), value))
            })
            .collect()
    }

    fn status(&self, entry: &TableEntry) -> Parsed<u16> {
        match self.number(entry)? {
            status @ 200..600 => Ok(status),
            _ => Err(self.bad(entry, "an HTTP status from 200 to 599")),
        }
    }
}
