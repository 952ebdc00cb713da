//! One turn while its entries are read.

use windlass_core::event::{Event, SessionEvent, StepStatus};
use windlass_core::id::{CallId, MessageId};
use windlass_core::log::Entry;
use windlass_core::message::{FinishReason, Message, Part, Role};
use windlass_core::model::Usage;

use super::{TraceSubject, TurnTrace, content};
use crate::names;
use crate::span::{AttributeValue, Kind, SpanContext, SpanEvent, TraceSpan, call_span, chat_span, turn_span};

/// A turn that has started.
pub(super) struct OpenTurn<'a> {
    subject: &'a TraceSubject,
    message: &'a MessageId,
    start: u64,
    provider: String,
    model: String,
    /// Time at which the next request is sent at the latest: a message was stored.
    asked: u64,
    requests: Requests<'a>,
    calls: Calls<'a>,
    compacted: bool,
    spans: Vec<TraceSpan>,
}

/// Model requests of a turn.
#[derive(Default)]
struct Requests<'a> {
    /// Usage that belongs to the next reply.
    usage: Option<(Usage, Option<f64>)>,
    /// Retries before the next reply.
    retries: Vec<SpanEvent>,
    /// Messages that the next request is the first to send.
    new: Vec<&'a Message>,
    total: Usage,
    cost: f64,
    /// The last reply, and the position of its span.
    last: Option<(&'a MessageId, usize)>,
    finish: Option<&'static str>,
    /// True if the model has the next word.
    is_waiting: bool,
}

/// Tool calls of the last reply that have started and not ended.
#[derive(Default)]
struct Calls<'a> {
    open: Vec<OpenCall<'a>>,
}

struct OpenCall<'a> {
    id: &'a CallId,
    position: u32,
    name: String,
    arguments: Option<String>,
    result: Option<String>,
}

impl<'a> OpenTurn<'a> {
    pub(super) fn new(
        subject: &'a TraceSubject,
        message: &'a MessageId,
        start: u64,
        (provider, model): (&str, &str),
    ) -> Self {
        Self {
            subject,
            message,
            start,
            provider: names::provider(provider),
            model: model.to_owned(),
            asked: start,
            requests: Requests {
                is_waiting: !model.is_empty(),
                ..Requests::default()
            },
            calls: Calls::default(),
            compacted: false,
            spans: Vec::new(),
        }
    }

    /// Sets the messages that the first request is the first to send.
    pub(super) fn sending(mut self, messages: Vec<&'a Message>) -> Self {
        self.requests.new = messages;
        self
    }

    /// Takes the next entry of the turn.
    pub(super) fn hear(&mut self, entry: &'a Entry) {
        match &entry.event {
            Event::Start { provider, model } => {
                self.provider = names::provider(provider);
                self.model.clone_from(model);
            }
            Event::Message { message } => self.message(message, entry.time.0),
            Event::Usage {
                usage,
                cost_usd,
                cause,
            } => {
                self.requests.total.add(usage);
                self.requests.cost += cost_usd.unwrap_or_default();
                match cause.as_str() {
                    "turn" | "last_word" => self.requests.usage = Some((*usage, *cost_usd)),
                    cause => self.other_request(cause, entry, (*usage, *cost_usd)),
                }
            }
            Event::Retry { attempt, kind, .. } => {
                let kind = super::failure(windlass_core::event::FailureKind::Provider(*kind));
                self.requests.retries.push(SpanEvent {
                    name: names::RETRY_EVENT,
                    time_ms: entry.time.0,
                    attributes: vec![
                        (names::RETRY_ATTEMPT, u64::from(*attempt).into()),
                        (names::ERROR_TYPE, kind.into()),
                    ],
                });
            }
            Event::StepStart { call_id, number, .. } => self.calls.open.push(OpenCall {
                id: call_id,
                position: *number,
                name: String::new(),
                arguments: None,
                result: None,
            }),
            Event::ToolCall { call_id, name, args } => {
                if let Some(call) = self.calls.find(call_id) {
                    call.name.clone_from(name);
                    call.arguments = Some(args.to_string());
                }
            }
            Event::ToolResult { call_id, content, .. } => {
                if let Some(call) = self.calls.find(call_id) {
                    call.result = Some(content.clone());
                }
            }
            Event::StepComplete {
                call_id,
                status,
                duration_ms,
            } => self.call_ended(call_id, *status, *duration_ms, entry.time.0),
            Event::Session(SessionEvent::Compaction { .. }) => {
                self.compacted = true;
                self.asked = entry.time.0;
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &'a Message, time: u64) {
        match message.role {
            Role::Assistant => {
                if let Some((last, place)) = self.requests.last
                    && *last == message.id
                {
                    // The same message again, with the reason it ended.
                    self.finished(message, place);
                    return;
                }
                if message.created_at.0 >= self.start {
                    self.reply(message);
                }
            }
            Role::User | Role::Tool | Role::System => {
                self.asked = time;
                self.requests.is_waiting = true;
                self.requests.new.push(message);
            }
        }
    }

    fn reply(&mut self, message: &'a Message) {
        let mut span = self.chat(message.id.as_str(), message.updated_at.0);
        let first = message.created_at.0.saturating_sub(span.start_ms);
        if let Some(model) = &message.model {
            span.attributes
                .push((names::RESPONSE_MODEL, model.as_str().into()));
        }
        if message.created_at < message.updated_at {
            span.attributes.push((names::FIRST_CHUNK, seconds(first).into()));
        }
        let usage = self.requests.usage.take();
        usage_attributes(&mut span, usage);
        if self.subject.content {
            let new = content::messages(self.requests.new.iter().copied(), self.subject.redact);
            span.attributes.push((names::INPUT_MESSAGES, new.into()));
            let said = content::messages(Some(message), self.subject.redact);
            span.attributes.push((names::OUTPUT_MESSAGES, said.into()));
        }
        self.requests.new.clear();
        self.spans.push(span);
        let place = self.spans.len() - 1;
        self.requests.last = Some((&message.id, place));
        self.requests.is_waiting = false;
        self.finished(message, place);
        self.asked = self.asked.max(message.updated_at.0);
        self.calls.open.clear();
    }

    /// Notes the reason a reply ended.
    fn finished(&mut self, message: &Message, place: usize) {
        let reason = message.parts.iter().find_map(|part| match part {
            Part::Finish(finish) => Some(finish.reason),
            _ => None,
        });
        let implied = if message.calls().next().is_some() {
            FinishReason::ToolUse
        } else {
            FinishReason::EndTurn
        };
        let name = finish_name(reason.unwrap_or(implied));
        self.requests.finish = Some(name);
        if let Some(span) = self.spans.get_mut(place) {
            span.attributes
                .retain(|(known, _)| *known != names::FINISH_REASONS);
            let reasons = AttributeValue::List(vec![name.to_owned()]);
            span.attributes.push((names::FINISH_REASONS, reasons));
        }
    }

    /// A request beside the conversation, such as the one for a summary.
    fn other_request(&mut self, cause: &str, entry: &Entry, usage: (Usage, Option<f64>)) {
        let retries = std::mem::take(&mut self.requests.retries);
        let mut span = self.chat(&entry.seq.to_string(), entry.time.0);
        self.requests.retries = retries;
        span.attributes.push((names::CAUSE, cause.into()));
        usage_attributes(&mut span, Some(usage));
        self.spans.push(span);
    }

    /// Returns the span of a request that was sent last and ended then.
    fn chat(&mut self, id: &str, end: u64) -> TraceSpan {
        let attributes = vec![
            (names::OPERATION, names::CHAT.into()),
            (names::PROVIDER, self.provider.as_str().into()),
            (names::CONVERSATION, self.subject.session.as_str().into()),
            (names::REQUEST_MODEL, self.model.as_str().into()),
            (names::REQUEST_STREAM, true.into()),
        ];
        TraceSpan {
            events: std::mem::take(&mut self.requests.retries),
            kind: Kind::Client,
            attributes,
            ..self.below(
                chat_span(&self.subject.session, id),
                format!("{} {}", names::CHAT, self.model),
                (self.asked.min(end), end),
            )
        }
    }

    fn call_ended(&mut self, id: &CallId, status: StepStatus, duration: u64, time: u64) {
        let Some(place) = self.calls.open.iter().position(|call| call.id == id) else {
            return;
        };
        let call = self.calls.open.remove(place);
        let reply = self.requests.last.map_or("", |(reply, _)| reply.as_str());
        let span_id = call_span(&self.subject.session, reply, call.position);
        let start = time.saturating_sub(duration).max(self.asked.min(time));
        let mut span = self.below(
            span_id,
            format!("{} {}", names::EXECUTE_TOOL, call.name),
            (start, time),
        );
        span.attributes = vec![
            (names::OPERATION, names::EXECUTE_TOOL.into()),
            (names::TOOL_NAME, call.name.as_str().into()),
            (names::TOOL_TYPE, "function".into()),
            (names::TOOL_CALL_ID, id.as_str().into()),
            (names::CONVERSATION, self.subject.session.as_str().into()),
            (names::AGENT_NAME, self.subject.agent.as_str().into()),
        ];
        if status == StepStatus::Error {
            span.attributes.push((names::ERROR_TYPE, "tool_error".into()));
            span.error = Some("the call failed".to_owned());
        }
        let redact = self.subject.redact;
        if self.subject.content {
            let texts = [
                (names::TOOL_ARGUMENTS, call.arguments),
                (names::TOOL_RESULT, call.result),
            ];
            for (name, text) in texts {
                span.attributes
                    .extend(text.map(|text| (name, redact(&text).into())));
            }
        }
        self.spans.push(span);
    }

    /// Ends the turn, with the kind and the description of its failure.
    pub(super) fn ended(mut self, entry: &Entry, error: Option<(String, &str)>) -> TurnTrace {
        let end = entry.time.0;
        if let Some((kind, text)) = &error {
            self.request_failed(entry, kind, text);
        }
        let mut turn = self.below(
            turn_span(&self.subject.session, self.message),
            format!("{} {}", names::INVOKE_AGENT, self.subject.agent),
            (self.start.min(end), end),
        );
        turn.parent = None;
        turn.attributes = self.turn_attributes();
        if let Some((kind, text)) = error {
            turn.attributes.push((names::ERROR_TYPE, kind.into()));
            turn.error = Some((self.subject.redact)(text));
        }
        self.spans.insert(0, turn);
        TurnTrace {
            message: self.message.clone(),
            last_seq: entry.seq,
            spans: self.spans,
        }
    }

    /// Adds the request that the turn ended in, if the model never answered it.
    fn request_failed(&mut self, entry: &Entry, kind: &str, text: &str) {
        let is_request = self.requests.is_waiting && self.calls.open.is_empty();
        if !is_request {
            return;
        }
        let mut span = self.chat(&entry.seq.to_string(), entry.time.0);
        usage_attributes(&mut span, self.requests.usage.take());
        span.attributes.push((names::ERROR_TYPE, kind.into()));
        span.error = Some((self.subject.redact)(text));
        self.spans.push(span);
    }

    fn turn_attributes(&self) -> Vec<(&'static str, AttributeValue)> {
        let Requests {
            total, cost, finish, ..
        } = &self.requests;
        let mut attributes: Vec<(&'static str, AttributeValue)> = vec![
            (names::OPERATION, names::INVOKE_AGENT.into()),
            (names::PROVIDER, self.provider.as_str().into()),
            (names::AGENT_NAME, self.subject.agent.as_str().into()),
            (names::AGENT_ID, self.subject.session.as_str().into()),
            (names::AGENT_VERSION, env!("CARGO_PKG_VERSION").into()),
            (names::CONVERSATION, self.subject.session.as_str().into()),
            (names::REQUEST_MODEL, self.model.as_str().into()),
            (names::INPUT_TOKENS, total.total_input().into()),
            (names::OUTPUT_TOKENS, total.output.into()),
            (names::CACHE_READ_TOKENS, total.cache_read.into()),
            (names::CACHE_WRITE_TOKENS, total.cache_write.into()),
        ];
        if total.reasoning > 0 {
            attributes.push((names::REASONING_TOKENS, total.reasoning.into()));
        }
        if *cost > 0.0 {
            attributes.push((names::COST, (*cost).into()));
        }
        if self.compacted {
            attributes.push((names::COMPACTED, true.into()));
        }
        if let Some(finish) = finish {
            let reasons = AttributeValue::List(vec![(*finish).to_owned()]);
            attributes.push((names::FINISH_REASONS, reasons));
        }
        attributes
    }

    /// Returns a span below the turn.
    fn below(&self, span: [u8; 8], name: String, (start_ms, end_ms): (u64, u64)) -> TraceSpan {
        TraceSpan {
            context: SpanContext { trace: [0; 16], span },
            parent: Some(turn_span(&self.subject.session, self.message)),
            name: name.trim_end().to_owned(),
            kind: Kind::Internal,
            start_ms,
            end_ms,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }
}

impl<'a> Calls<'a> {
    fn find(&mut self, id: &CallId) -> Option<&mut OpenCall<'a>> {
        self.open.iter_mut().find(|call| call.id == id)
    }
}

fn usage_attributes(span: &mut TraceSpan, usage: Option<(Usage, Option<f64>)>) {
    let Some((usage, cost)) = usage else { return };
    span.attributes.extend([
        (names::INPUT_TOKENS, AttributeValue::from(usage.total_input())),
        (names::OUTPUT_TOKENS, usage.output.into()),
        (names::CACHE_READ_TOKENS, usage.cache_read.into()),
        (names::CACHE_WRITE_TOKENS, usage.cache_write.into()),
    ]);
    // Providers that do not say leave both at 0.
    for (name, count) in [
        (names::REASONING_TOKENS, usage.reasoning),
        (names::CHUNKS, usage.chunks),
    ] {
        if count > 0 {
            span.attributes.push((name, count.into()));
        }
    }
    span.attributes
        .extend(cost.map(|cost| (names::COST, AttributeValue::from(cost))));
}

/// Returns the reason in the words of the conventions.
pub(super) fn finish_name(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::EndTurn => "stop",
        FinishReason::ToolUse => "tool_calls",
        FinishReason::MaxTokens => "length",
        FinishReason::Refusal => "content_filter",
        FinishReason::Canceled => "canceled",
        FinishReason::PermissionDenied => "permission_denied",
        FinishReason::MaxIterations => "max_iterations",
        FinishReason::Interrupted => "interrupted",
        FinishReason::Error => "error",
    }
}

#[allow(clippy::cast_precision_loss)]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}
