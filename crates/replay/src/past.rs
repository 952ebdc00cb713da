//! Surroundings of a replayed turn: tool results, and messages of the user and the program.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use windlass_api::{CallId, Event, Message, Part, Role};
use windlass_core::event::{EventSink, SinkError};
use windlass_core::message::FragmentSource;
use windlass_core::message::ToolResult;
use windlass_core::permission::{Approver, NobodyToAsk};
use windlass_core::run::{Inbox, IncompleteWork};
use windlass_core::tool::{
    AnyTool, Category, Prepared, ToolError, ToolOutput, ToolSet, ToolSpec, ToolTraits, raw_arguments,
};

/// A turn of the log, as the surroundings of its replay.
pub(super) struct Past {
    /// Messages after the first one.
    logged: Vec<Arc<Message>>,
    results: Mutex<HashMap<CallId, VecDeque<ToolResult>>>,
    /// Final answer of the turn, if there was one.
    answer: Option<String>,
    again: Mutex<Vec<Arc<Message>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Past {
    pub(super) fn new(messages: &[&Arc<Message>], end: Option<&Event>) -> Self {
        let mut results: HashMap<CallId, VecDeque<ToolResult>> = HashMap::new();
        for part in messages.iter().flat_map(|message| &message.parts) {
            if let Part::ToolResult(result) = part {
                results
                    .entry(result.call_id.clone())
                    .or_default()
                    .push_back(result.clone());
            }
        }
        Self {
            logged: messages
                .iter()
                .skip(1)
                .map(|message| Arc::clone(message))
                .collect(),
            results: Mutex::new(results),
            answer: match end {
                Some(Event::Final { content, .. }) => Some(content.clone()),
                _ => None,
            },
            again: Mutex::default(),
        }
    }

    /// Returns the messages of the replayed turn, without the first one.
    pub(super) fn messages(&self) -> Vec<Arc<Message>> {
        lock(&self.again).clone()
    }

    /// Returns the tools of the turn, whose results come from the log.
    pub(super) fn tools(self: &Arc<Self>, specs: &[ToolSpec]) -> ToolSet {
        let mut tools = ToolSet::new();
        for spec in specs {
            tools.insert(Arc::new(PastTool {
                spec: spec.clone(),
                past: Arc::clone(self),
            }));
        }
        tools
    }

    fn result(&self, call: &CallId) -> Option<ToolResult> {
        lock(&self.results).get_mut(call).and_then(VecDeque::pop_front)
    }

    /// Returns the messages of the log after the current position.
    fn ahead(&self) -> &[Arc<Message>] {
        let here = lock(&self.again).len();
        self.logged.get(here..).unwrap_or_default()
    }
}

#[async_trait]
impl EventSink for Past {
    fn live(&self, _: Event) {}

    async fn record(&self, event: Event) -> Result<(), SinkError> {
        if let Event::Message { message } = event {
            let mut again = lock(&self.again);
            match again.iter_mut().rev().find(|known| known.id == message.id) {
                Some(known) => *known = message,
                None => again.push(message),
            }
        }
        Ok(())
    }
}

/// Delivers messages that the user sent during the turn at the same position as before.
#[async_trait]
impl Inbox for Past {
    async fn take(&self) -> Vec<Message> {
        // After an answer, the program asks for more.
        let has_answer = lock(&self.again)
            .last()
            .is_some_and(|last| last.role == Role::Assistant);
        // A summary has the user's role, and the replay makes it again.
        let ahead = self.ahead().iter();
        let said = ahead.take_while(|next| next.role == Role::User && !next.is_summary());
        if has_answer {
            return Vec::new();
        }
        said.map(|message| (**message).clone()).collect()
    }
}

#[async_trait]
impl IncompleteWork for Past {
    async fn prompt(&self, _: &str) -> Option<String> {
        let next = self.ahead().first().filter(|next| next.role == Role::User)?;
        next.fragment(FragmentSource::Reminder).map(str::to_owned)
    }
}

struct PastTool {
    spec: ToolSpec,
    past: Arc<Past>,
}

impl AnyTool for PastTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn traits(&self) -> ToolTraits {
        ToolTraits::default()
    }

    fn prepare(self: Arc<Self>, arguments: &str) -> Result<Prepared, ToolError> {
        let arguments = raw_arguments(arguments);
        Ok(Prepared::new(Category::Read, arguments, move |cx| {
            Box::pin(async move {
                let Some(result) = self.past.result(&cx.call_id) else {
                    return Err(ToolError::Permanent(
                        "the log has no result for this call".to_owned(),
                    ));
                };
                let ends = self.spec.name == "done" && !result.is_error;
                Ok(ToolOutput {
                    content: result.content,
                    details: result.metadata,
                    images: result.images,
                    failed: result.is_error,
                    ends_turn: self.past.answer.clone().filter(|_| ends),
                    ..ToolOutput::default()
                })
            })
        }))
    }
}

/// Returns an approver that never asks: all decisions are in the log.
pub(super) fn nobody() -> Arc<dyn Approver> {
    Arc::new(NobodyToAsk)
}
