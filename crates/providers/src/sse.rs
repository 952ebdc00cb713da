//! Decodes the event-stream grammar from bytes as they arrive.
//!
//! This is our own code because a reply must not depend on how the network splits it: lines end in CR, LF or
//! CRLF (even when a chunk ends between the two), text is decoded only once a line is complete, and both an
//! event and a reply have a size limit.

/// Size limits; a stream that exceeds one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLimits {
    /// Maximum bytes of one event.
    pub event: usize,
    /// Maximum bytes of the whole reply.
    pub reply: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            event: 8 * 1024 * 1024,
            reply: 64 * 1024 * 1024,
        }
    }
}

/// One event of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; empty when there was none.
    pub name: String,
    /// The `data` lines, joined by line breaks.
    pub data: String,
}

/// Error that makes the rest of a stream unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// One event is larger than allowed.
    #[error("the provider sent an event of more than {0} bytes")]
    EventTooLong(usize),
    /// The reply is larger than allowed.
    #[error("the provider sent a reply of more than {0} bytes")]
    ReplyTooLong(usize),
    /// A line is not text.
    #[error("the provider sent bytes that are not UTF-8")]
    NotText,
}

/// Turns bytes into events. Feed it with [`Decoder::push`], then call [`Decoder::finish`] at the end.
#[derive(Debug)]
pub struct Decoder {
    limits: StreamLimits,
    received: usize,
    /// Start of a line whose end has not arrived.
    line: Vec<u8>,
    /// Set when the last byte was a CR, so that an LF right after it does not end a second line.
    after_return: bool,
    first_line: bool,
    name: String,
    data: String,
    has_data: bool,
}

impl Decoder {
    /// Creates a decoder for the start of a stream.
    pub fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            received: 0,
            line: Vec::new(),
            after_return: false,
            first_line: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
        }
    }

    /// Takes the next bytes and appends the events they complete.
    ///
    /// # Errors
    /// When a limit is exceeded or a line is not UTF-8. The stream cannot be read any further after that.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        // Events within the limit count, no matter which chunk exceeds it.
        let left = self.limits.reply.saturating_sub(self.received);
        self.received = self.received.saturating_add(bytes.len());
        match bytes.split_at_checked(left) {
            Some((within, beyond)) if !beyond.is_empty() => {
                self.take(within, events)?;
                Err(SseError::ReplyTooLong(self.limits.reply))
            }
            _ => self.take(bytes, events),
        }
    }

    fn take(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_return) && rest.first() == Some(&b'\n') {
                rest = rest.split_at(1).1;
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                return self.check_size(self.line.len());
            };
            let (line, after) = rest.split_at(end);
            self.after_return = after.first() == Some(&b'\r');
            rest = after.split_at(1).1;
            if self.line.is_empty() {
                self.take_line(line, events)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.take_line(&whole, events)?;
                // Keep the buffer: its capacity fits the lines of this stream.
                whole.clear();
                self.line = whole;
            }
        }
        Ok(())
    }

    /// Ends the stream. The grammar drops an event without a closing blank line; servers that forget that
    /// line are common, so the event is delivered, and the reader of its data decides whether it is complete.
    ///
    /// # Errors
    /// As for [`Decoder::push`].
    pub fn finish(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, events)?;
        }
        self.dispatch(events);
        Ok(())
    }

    /// Checks that a line, or the part of it that has arrived, still fits into the current event. A line
    /// counts as it was sent, so the result does not depend on how much of it had arrived.
    fn check_size(&self, line: usize) -> Result<(), SseError> {
        if line.saturating_add(self.data.len()) > self.limits.event {
            return Err(SseError::EventTooLong(self.limits.event));
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        self.check_size(line.len())?;
        let mut line = line;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let line = std::str::from_utf8(line).map_err(|_| SseError::NotText)?;
        let (field, value) = match line.split_once(':') {
            // A line that starts with a colon is a comment.
            Some(("", _)) => return Ok(()),
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line, ""),
        };
        match field {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => value.clone_into(&mut self.name),
            // `id` and `retry` are for reconnecting, which a POST request never does.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<SseEvent>) {
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            events.push(SseEvent { name, data });
        }
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
