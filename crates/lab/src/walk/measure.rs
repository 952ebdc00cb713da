//! Size of a request in bytes, and the part of it that was sent before.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use windlass_api::{Message, Part};
use windlass_core::provider::Prefix;
use windlass_core::tokens::Gauge;

/// Compares each request with the previous one.
pub(super) struct Meter {
    /// Bytes of the system prompt and the tools, which never change.
    fixed: u64,
    last: Option<Vec<Piece>>,
}

/// An encoded message of a request.
#[derive(Clone)]
struct Piece {
    message: Arc<Message>,
    bytes: Bytes,
    tokens: u64,
}

/// Size of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    pub(super) tokens: u64,
    pub(super) bytes: u64,
    /// Number of bytes that were also at the start of the previous request.
    pub(super) reused: u64,
}

impl Meter {
    pub(super) fn new(prefix: &Prefix) -> Self {
        let tools = prefix.tools.iter();
        let tools =
            tools.map(|tool| tool.name.len() + tool.description.len() + tool.schema.to_string().len());
        Self {
            fixed: (prefix.system.len() + tools.sum::<usize>()) as u64,
            last: None,
        }
    }

    /// Measures a request. Messages at their previous position are not encoded again.
    pub(super) fn measure(&mut self, messages: &[Arc<Message>], gauge: &Gauge) -> Measured {
        let last = self.last.take();
        let mut old = last.iter().flatten();
        let mut pieces: Vec<Piece> = Vec::with_capacity(messages.len());
        let (mut tokens, mut bytes) = (0, self.fixed);
        let mut reused = last.as_ref().map_or(0, |_| self.fixed);
        let mut is_same = true;
        for message in messages {
            let before = old.next().filter(|_| is_same);
            let known = before.filter(|before| Arc::ptr_eq(&before.message, message));
            let piece = known.map_or_else(|| Piece::new(message, gauge), Piece::clone);
            let length = piece.bytes.len() as u64;
            let same = match (known, before) {
                (Some(_), _) => length,
                (None, Some(before)) => shared(&before.bytes, &piece.bytes),
                (None, None) => 0,
            };
            is_same &= same == length;
            reused += same;
            bytes += length;
            tokens += piece.tokens;
            pieces.push(piece);
        }
        self.last = Some(pieces);
        Measured {
            tokens,
            bytes,
            reused,
        }
    }

    /// Returns true if the last request contains this text.
    pub(super) fn has(&self, text: &str) -> bool {
        self.texts().any(|piece| piece.contains(text))
    }

    /// Returns the references in the last request, newest last.
    pub(super) fn references(&self) -> Vec<String> {
        self.texts().flat_map(references).collect()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let pieces = self.last.iter().flatten();
        pieces.filter_map(|piece| std::str::from_utf8(&piece.bytes).ok())
    }
}

impl Piece {
    fn new(message: &Arc<Message>, gauge: &Gauge) -> Self {
        Self {
            message: Arc::clone(message),
            bytes: encoded(message),
            tokens: gauge.tokens([message]),
        }
    }
}

impl Measured {
    /// Returns the share of tokens that corresponds to the reused bytes.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub(super) fn share(self, tokens: u64) -> u64 {
        let share = self.reused as f64 / self.bytes.max(1) as f64;
        ((tokens as f64 * share) as u64).min(tokens)
    }
}

/// Returns the references that a text names, in the format of notes and summaries.
pub(super) fn references(text: &str) -> Vec<String> {
    const BEGIN: &str = "{\"ref\": \"";
    let rest = text.split(BEGIN).skip(1);
    rest.filter_map(|rest| rest.split_once("\"}"))
        .map(|(reference, _)| reference.to_owned())
        .collect()
}

fn shared(old: &Bytes, new: &Bytes) -> u64 {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new);
    same.count() as u64
}

/// Encodes the parts of a message that a model reads. Ids and times of messages are not sent.
fn encoded(message: &Message) -> Bytes {
    static KEY: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("lab"));
    message.memo.get_or_encode(&KEY, || {
        let mut text = format!("{:?}\n", message.role);
        for part in &message.parts {
            // Writing to a string cannot fail.
            let _ = match part {
                Part::Text(part) => writeln!(text, "text {}", part.text),
                Part::Context(fragment) => writeln!(text, "text {}", fragment.encoded()),
                Part::Reasoning(part) => writeln!(text, "reasoning {}", part.text),
                Part::ToolCall(call) => writeln!(text, "call {} {} {}", call.id, call.name, call.input),
                Part::ToolResult(result) => writeln!(text, "result {} {}", result.call_id, result.content),
                Part::Compaction(part) => writeln!(text, "summary {}", part.summary),
                Part::Compressed(part) => writeln!(text, "compressed {}", part.text),
                Part::Binary(part) => writeln!(text, "file {} {}", part.mime, part.data),
                Part::ImageUrl(part) => writeln!(text, "image {}", part.url),
                Part::Finish(_) | Part::Unknown(_) => Ok(()),
            };
        }
        Bytes::from(text)
    })
}
