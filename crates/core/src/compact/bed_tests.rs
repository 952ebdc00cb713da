//! Shared helpers of the compaction tests: one-line messages, and models with scripted answers.

use std::sync::Mutex;

use futures_util::stream::BoxStream;
use serde_json::Value;

use super::*;
use crate::clock::SystemClock;
use crate::message::{Part, Reasoning, ToolResult};
use crate::model::Model;
use crate::provider::{ProviderErrorKind, ProviderEvent, Request};
use crate::script::{Scene, ScriptedProvider, call_part, outline};
use crate::tool::ToolSpec;

pub(super) const NOW: Timestamp = Timestamp(1_000_000);

pub(super) fn message(role: Role, parts: Vec<Part>) -> Arc<Message> {
    Arc::new(Message::new(&"s".into(), role, parts, NOW))
}

pub(super) fn user(text: &str) -> Arc<Message> {
    message(Role::User, vec![Part::text(text)])
}

pub(super) fn assistant(text: &str) -> Arc<Message> {
    message(Role::Assistant, vec![Part::text(text)])
}

pub(super) fn result(id: &str, content: &str) -> ToolResult {
    ToolResult {
        call_id: id.into(),
        name: "read".to_owned(),
        content: content.to_owned(),
        metadata: Some(serde_json::json!({"lines": 1})),
        is_error: false,
        images: Vec::new(),
    }
}

/// A call with reasoning, and its result.
pub(super) fn pair(id: &str, content: &str) -> [Arc<Message>; 2] {
    named_pair(id, "read", &format!("{{\"path\":\"{id}\"}}"), content)
}

pub(super) fn named_pair(id: &str, tool: &str, input: &str, content: &str) -> [Arc<Message>; 2] {
    let thought = Part::Reasoning(Reasoning {
        text: format!("about {id}"),
        signature: Some(format!("signed {id}")),
        redacted: None,
    });
    let result = ToolResult {
        name: tool.to_owned(),
        ..result(id, content)
    };
    [
        message(Role::Assistant, vec![thought, call_part(id, tool, input)]),
        message(Role::Tool, vec![Part::ToolResult(result)]),
    ]
}

/// A question, `pairs` calls with outputs of `length`, and an answer.
pub(super) fn exchange(name: &str, pairs: usize, length: usize) -> Vec<Arc<Message>> {
    let mut all = vec![user(&format!("do {name}"))];
    for number in 0..pairs {
        let id = format!("{name}-{number}");
        let line = format!("output {id} line\n");
        all.extend(pair(&id, &line.repeat(length / line.len() + 1)));
    }
    all.push(assistant(&format!("did {name}")));
    all
}

/// A model that answers every request with a function.
pub(super) struct Rule {
    answer: Box<dyn Fn(&Request) -> Scene + Send + Sync>,
    inner: ScriptedProvider,
    seen: Mutex<Vec<String>>,
}

impl Rule {
    pub(super) fn new(answer: impl Fn(&Request) -> Scene + Send + Sync + 'static) -> Self {
        Self {
            answer: Box::new(answer),
            inner: ScriptedProvider::new([]),
            seen: Mutex::default(),
        }
    }

    pub(super) fn saying(text: &'static str) -> Self {
        Self::new(move |_| Scene::text(text))
    }

    pub(super) fn failing() -> Self {
        Self::new(|_| Scene::fail(ProviderErrorKind::Overloaded, "too busy"))
    }

    #[must_use]
    pub(super) fn with_window(mut self, tokens: u64) -> Self {
        self.inner = self.inner.with_context_window(tokens);
        self
    }

    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("seen").clone()
    }
}

#[async_trait]
impl Provider for Rule {
    fn name(&self) -> &'static str {
        "rule"
    }

    fn model(&self) -> &Model {
        self.inner.model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        self.seen.lock().expect("seen").push(outline(&request));
        ScriptedProvider::new([(self.answer)(&request)]).stream(request)
    }

    fn convert_tools(&self, _: &[ToolSpec]) -> Value {
        Value::Null
    }
}

pub(super) fn job<'a>(history: &'a [Arc<Message>], provider: &'a dyn Provider, target: u64) -> Job<'a> {
    Job {
        history,
        provider,
        cancel: CancellationToken::new(),
        now: NOW,
        clock: Arc::new(SystemClock::default()),
        depth: Depth::Hard,
        target,
        instructions: Vec::new(),
    }
}

pub(super) fn soft<'a>(history: &'a [Arc<Message>], provider: &'a dyn Provider) -> Job<'a> {
    Job {
        depth: Depth::Soft,
        ..job(history, provider, 0)
    }
}

/// One line per message.
pub(super) fn lines(history: &[Arc<Message>]) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.text.clone(),
        Part::Context(fragment) => fragment.encoded(),
        Part::ToolCall(call) => format!("call {}", call.id),
        Part::ToolResult(result) => result.content.chars().take(30).collect(),
        Part::Compaction(compaction) => format!("summary {}", compaction.summary),
        _ => String::new(),
    };
    let line = |message: &Arc<Message>| {
        let parts: Vec<_> = message
            .parts
            .iter()
            .map(part)
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(" | ")
    };
    history.iter().map(line).collect()
}
