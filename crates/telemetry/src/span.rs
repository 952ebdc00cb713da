//! A span, and ids that follow from what it describes.

use windlass_core::id::{MessageId, SessionId};

/// Position of a span in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
}

/// Relation of a span to other systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work of this process.
    Internal,
    /// A request to a server.
    Client,
}

/// A finished piece of work.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSpan {
    /// Its place.
    pub context: SpanContext,
    /// The span above.
    pub parent: Option<[u8; 8]>,
    /// Name: operation and target.
    pub name: String,
    /// Relation to other systems.
    pub kind: Kind,
    /// Start, in milliseconds since the Unix epoch.
    pub start_ms: u64,
    /// End, in milliseconds since the Unix epoch.
    pub end_ms: u64,
    /// Attributes, in the order they were set.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Events during the span.
    pub events: Vec<SpanEvent>,
    /// Description of the failure, if there was one.
    pub error: Option<String>,
}

/// An event during a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    /// Name of the event.
    pub name: &'static str,
    /// Time, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Attributes.
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// AttributeValue of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A list of texts.
    List(Vec<String>),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(on: bool) -> Self {
        Self::Bool(on)
    }
}

impl TraceSpan {
    /// Returns an attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Returns an attribute that is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attribute(name)? {
            AttributeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an attribute that is an integer.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.attribute(name)? {
            AttributeValue::Int(number) => Some(*number),
            _ => None,
        }
    }
}

impl SpanContext {
    /// Reads a `traceparent` as the W3C recommendation defines it. Returns `None` if it is not valid.
    ///
    /// ```
    /// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let context = windlass_telemetry::SpanContext::parse(text).expect("a valid one");
    /// assert_eq!(context.to_string(), text);
    /// assert!(windlass_telemetry::SpanContext::parse("00-0-0-01").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_version = version.len() == 2 && version != "ff" && hex::<1>(version).is_some();
        // A later version may append parts; this one has four.
        let has_more = version == "00" && parts.next().is_some();
        if !is_version || has_more || hex::<1>(flags).is_none() {
            return None;
        }
        let context = Self {
            trace: hex(trace)?,
            span: hex(span)?,
        };
        (context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }
}

impl std::fmt::Display for SpanContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{}-{}-01", to_hex(&self.trace), to_hex(&self.span))
    }
}

/// Formats bytes in lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// Returns the trace of a turn that no other span started.
pub(crate) fn trace_id(session: &SessionId, turn: &MessageId) -> [u8; 16] {
    digest(&["trace", session.as_str(), turn.as_str()])
}

/// Returns the id of a turn's span.
pub(crate) fn turn_span(session: &SessionId, turn: &MessageId) -> [u8; 8] {
    digest(&["turn", session.as_str(), turn.as_str()])
}

/// Returns the id of a model request's span. `reply` is the id of its message, or the number of its entry.
pub(crate) fn chat_span(session: &SessionId, reply: &str) -> [u8; 8] {
    digest(&["chat", session.as_str(), reply])
}

/// Returns the id of a tool call's span: the call at this position, starting at 1, in a reply.
pub(crate) fn call_span(session: &SessionId, reply: &str, position: u32) -> [u8; 8] {
    digest(&["call", session.as_str(), reply, &position.to_string()])
}

/// Hashes the parts, each with its length, so that no two lists give the same bytes.
fn digest<const N: usize>(parts: &[&str]) -> [u8; N] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; N];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}
