//! Faults: errors of servers, proxies and compatible implementations, on demand.

/// Faults of one reply. [`Fault::default`] has none.
///
/// ```
/// use windlass_sim::{Fault, Reply};
///
/// let reply = Reply::text("later").fault(Fault::status(429).header("retry-after", "1"));
/// # let _ = reply;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    pub(crate) refuse: Option<Refuse>,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) delay_ms: u64,
    pub(crate) chunk: Option<usize>,
    pub(crate) framing: Framing,
    pub(crate) content_type: Option<String>,
    pub(crate) invalid_utf8: bool,
    pub(crate) oversized: usize,
    pub(crate) mid_stream_error: Option<String>,
    pub(crate) no_finish: bool,
    pub(crate) pings: usize,
    pub(crate) deviations: Vec<Deviation>,
}

/// An error response instead of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Refuse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    pub(crate) error_type: Option<String>,
    pub(crate) message: Option<String>,
}

/// Point at which a body stops before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    CutAfterEvents(usize),
    CutAfterBytes(usize),
    StallAfterEvents(usize),
}

/// Notation of events. All of these are legal event streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Lines end with a line feed.
    #[default]
    Lf,
    /// Lines end with carriage return and line feed.
    Crlf,
    /// Lines end with a carriage return alone.
    Cr,
    /// A byte order mark comes first.
    Bom,
    /// Comments, `id` and `retry` fields appear between and inside events.
    Comments,
    /// No space after the colon.
    NoSpace,
    /// Data is spread over several `data` lines.
    Multiline,
}

impl Framing {
    pub(crate) const NAMES: [(&'static str, Self); 7] = [
        ("lf", Self::Lf),
        ("crlf", Self::Crlf),
        ("cr", Self::Cr),
        ("bom", Self::Bom),
        ("comments", Self::Comments),
        ("nospace", Self::NoSpace),
        ("multiline", Self::Multiline),
    ];
}

/// Known deviations of servers that claim to speak the Chat wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deviation {
    /// All parallel calls carry index 0.
    SharedIndex,
    /// Call fragments carry no index.
    MissingIndex,
    /// Every fragment of a call has a new id.
    IdPerFragment,
    /// `finish_reason` is `stop` although there are calls.
    FinishStopWithCalls,
    /// The stream ends without `[DONE]`.
    NoDone,
    /// Usage is never reported.
    UsageMissing,
    /// Deltas without text carry `"content": null`.
    NullContent,
}

impl Deviation {
    pub(crate) const NAMES: [(&'static str, Self); 7] = [
        ("shared_index", Self::SharedIndex),
        ("missing_index", Self::MissingIndex),
        ("id_per_fragment", Self::IdPerFragment),
        ("finish_stop_with_calls", Self::FinishStopWithCalls),
        ("no_done", Self::NoDone),
        ("usage_missing", Self::UsageMissing),
        ("null_content", Self::NullContent),
    ];
}

impl Fault {
    /// Creates an empty fault, to start a chain of the methods below.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Responds with this status and an error in the wire's shape.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self {
            refuse: Some(Refuse {
                status,
                ..Refuse::default()
            }),
            ..Self::default()
        }
    }

    /// Redirects to another address with status 307.
    #[must_use]
    pub fn redirect(url: &str) -> Self {
        Self::status(307).header("location", url)
    }

    /// Adds a header to the error response.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.refusal().headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends this text as the whole body of the error response.
    #[must_use]
    pub fn body(mut self, body: &str) -> Self {
        self.refusal().body = Some(body.to_owned());
        self
    }

    /// Sets the error type in the error response.
    #[must_use]
    pub fn error_type(mut self, error_type: &str) -> Self {
        self.refusal().error_type = Some(error_type.to_owned());
        self
    }

    /// Sets the message in the error response.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.refusal().message = Some(message.to_owned());
        self
    }

    /// Drops the connection after this many events.
    #[must_use]
    pub const fn cut_after_events(mut self, events: usize) -> Self {
        self.interrupt = Some(Interrupt::CutAfterEvents(events));
        self
    }

    /// Drops the connection after this many bytes of the body.
    #[must_use]
    pub const fn cut_after_bytes(mut self, bytes: usize) -> Self {
        self.interrupt = Some(Interrupt::CutAfterBytes(bytes));
        self
    }

    /// Goes silent after this many events, until the client leaves.
    #[must_use]
    pub const fn stall_after_events(mut self, events: usize) -> Self {
        self.interrupt = Some(Interrupt::StallAfterEvents(events));
        self
    }

    /// Waits before the first byte.
    #[must_use]
    pub const fn delay_ms(mut self, milliseconds: u64) -> Self {
        self.delay_ms = milliseconds;
        self
    }

    /// Writes the body in pieces of this many bytes.
    #[must_use]
    pub const fn chunk(mut self, bytes: usize) -> Self {
        self.chunk = Some(bytes);
        self
    }

    /// Writes events in this framing.
    #[must_use]
    pub const fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// Sends this content type.
    #[must_use]
    pub fn content_type(mut self, content_type: &str) -> Self {
        self.content_type = Some(content_type.to_owned());
        self
    }

    /// Puts a byte that is not UTF-8 into the text.
    #[must_use]
    pub const fn invalid_utf8(mut self) -> Self {
        self.invalid_utf8 = true;
        self
    }

    /// Makes one event, or the whole body, larger by this many bytes.
    #[must_use]
    pub const fn oversized(mut self, bytes: usize) -> Self {
        self.oversized = bytes;
        self
    }

    /// Sends an error of this kind in the middle of the stream.
    #[must_use]
    pub fn mid_stream_error(mut self, kind: &str) -> Self {
        self.mid_stream_error = Some(kind.to_owned());
        self
    }

    /// Ends the stream cleanly, without its terminal events.
    #[must_use]
    pub const fn no_finish(mut self) -> Self {
        self.no_finish = true;
        self
    }

    /// Sends this many more pings (Anthropic).
    #[must_use]
    pub const fn pings(mut self, pings: usize) -> Self {
        self.pings = pings;
        self
    }

    /// Deviates from the Chat wire.
    #[must_use]
    pub fn deviation(mut self, deviation: Deviation) -> Self {
        self.deviations.push(deviation);
        self
    }

    pub(crate) fn deviates(&self, deviation: Deviation) -> bool {
        self.deviations.contains(&deviation)
    }

    /// Returns the error response, creating it on first use. A header or a body alone still needs a status.
    pub(crate) fn refusal(&mut self) -> &mut Refuse {
        self.refuse.get_or_insert_with(|| Refuse {
            status: 500,
            ..Refuse::default()
        })
    }
}
