//! Reads events from JSON.
//!
//! serde buffers a tagged enum before it reads its fields. The buffer keeps neither the text of raw JSON nor
//! the form of a number, and refuses what a parser cannot represent. Events that carry content of others are
//! therefore read from their text.

use std::sync::Arc;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AgentEvent, Envelope, Event, Waiting};
use crate::id::{CallId, SessionId};
use crate::json::{lenient, lenient_option};
use crate::message::Message;

/// An event with the fields beside it in the same object, such as its number.
#[derive(Debug)]
pub struct Placed<H> {
    /// The other fields.
    pub head: H,
    /// The event.
    pub event: Event,
}

impl<'de, H: DeserializeOwned> Deserialize<'de> for Placed<H> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let head = serde_json::from_str(raw.get()).map_err(Error::custom)?;
        let event = from_text(raw.get()).map_err(Error::custom)?;
        Ok(Self { head, event })
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        from_text(raw.get()).map_err(Error::custom)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            v: u32,
            session: SessionId,
            seq: u64,
        }
        let Placed { head, event } = Placed::<Head>::deserialize(deserializer)?;
        Ok(Self {
            v: head.v,
            session: head.session,
            seq: head.seq,
            event,
        })
    }
}

#[derive(Deserialize)]
struct Kind {
    r#type: String,
}

#[derive(Deserialize)]
struct Said {
    message: Arc<Message>,
}

#[derive(Deserialize)]
struct Queued {
    messages: Vec<Arc<Message>>,
    #[serde(default)]
    steers: Vec<Arc<Message>>,
}

#[derive(Deserialize)]
struct Called {
    call_id: CallId,
    name: String,
    args: Box<RawValue>,
}

#[derive(Deserialize)]
struct Answered {
    call_id: CallId,
    name: String,
    content: String,
    is_error: bool,
    #[serde(default, deserialize_with = "lenient_option")]
    details: Option<Value>,
}

#[derive(Deserialize)]
struct Nested {
    agent: SessionId,
    number: u32,
    name: String,
    depth: u8,
    event: Box<Event>,
}

fn from_text(text: &str) -> Result<Event, serde_json::Error> {
    let Kind { r#type } = serde_json::from_str(text)?;
    match r#type.as_str() {
        "message" => {
            let Said { message } = serde_json::from_str(text)?;
            Ok(Event::Message { message })
        }
        "queue" => {
            let Queued { messages, steers } = serde_json::from_str(text)?;
            Ok(Event::Waiting(Waiting::Queue { messages, steers }))
        }
        "subagent" => {
            let Nested {
                agent,
                number,
                name,
                depth,
                event,
            } = serde_json::from_str(text)?;
            let nested = AgentEvent::Subagent {
                agent,
                number,
                name,
                depth,
                event,
            };
            Ok(nested.into_event())
        }
        "tool_call" => {
            let Called { call_id, name, args } = serde_json::from_str(text)?;
            let args = lenient(args.get());
            Ok(Event::ToolCall { call_id, name, args })
        }
        "tool_result" => {
            let Answered {
                call_id,
                name,
                content,
                is_error,
                details,
            } = serde_json::from_str(text)?;
            Ok(Event::ToolResult {
                call_id,
                name,
                content,
                is_error,
                details,
            })
        }
        _ => Event::deserialize(&mut serde_json::Deserializer::from_str(text)),
    }
}
