//! Providers of a recorded session behind one: each request goes to the provider that it went to before.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Provider, ProviderEvent, Request, RetryNotice};
use windlass_core::tool::ToolSpec;

/// Returns provider and model of the next recorded request.
pub type NextRecorded = Arc<dyn Fn() -> Option<(String, String)> + Send + Sync>;

/// The model of a recorded turn, and those that stood in for it (PROV-13).
pub struct RecordedOrder {
    shared: Arc<Shared>,
}

struct Shared {
    /// At least one.
    providers: Vec<Arc<dyn Provider>>,
    next: NextRecorded,
    /// Index of the provider that answers.
    current: AtomicUsize,
}

impl RecordedOrder {
    /// Puts other providers beside the first one.
    pub fn new(first: Arc<dyn Provider>, others: Vec<Arc<dyn Provider>>, next: NextRecorded) -> Self {
        let shared = Shared {
            providers: std::iter::once(first).chain(others).collect(),
            next,
            current: AtomicUsize::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn provider(&self) -> &dyn Provider {
        &*self.shared.providers[self.shared.current.load(Ordering::Relaxed)]
    }
}

impl Shared {
    /// Selects the provider of the next recorded request, and returns its index.
    fn select(&self) -> usize {
        let index = (self.next)().and_then(|(name, model)| {
            let is_it =
                |provider: &Arc<dyn Provider>| provider.name() == name && provider.model().id == model;
            self.providers.iter().position(is_it)
        });
        let index = index.unwrap_or_else(|| self.current.load(Ordering::Relaxed));
        self.current.store(index, Ordering::Relaxed);
        index
    }
}

/// One request on its way through the providers.
struct Passage {
    shared: Arc<Shared>,
    request: Request,
    index: usize,
    events: BoxStream<'static, ProviderEvent>,
    /// True if a part of a reply was shown.
    has_begun: bool,
    waiting: VecDeque<ProviderEvent>,
}

impl Passage {
    async fn next(&mut self) -> Option<ProviderEvent> {
        if let Some(event) = self.waiting.pop_front() {
            return Some(event);
        }
        let event = self.events.next().await?;
        let ProviderEvent::Error(error) = event else {
            let is_notice = matches!(event, ProviderEvent::Retry(_) | ProviderEvent::Warning(_));
            self.has_begun |= !is_notice;
            return Some(event);
        };
        let next = self.shared.select();
        if next == self.index || self.request.cancel.is_cancelled() {
            return Some(ProviderEvent::Error(error));
        }
        self.index = next;
        self.events = self.shared.providers[next].stream(self.request.clone());
        if std::mem::take(&mut self.has_begun) {
            self.waiting.push_back(ProviderEvent::Retry(RetryNotice {
                attempt: 1,
                max_attempts: 1,
                delay: Duration::ZERO,
                error,
                discard: true,
            }));
        }
        Some(ProviderEvent::Warning("another model stood in here".to_owned()))
    }
}

impl Provider for RecordedOrder {
    fn name(&self) -> &str {
        self.provider().name()
    }

    fn model(&self) -> &Model {
        self.provider().model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let index = self.shared.select();
        let passage = Passage {
            events: self.shared.providers[index].stream(request.clone()),
            shared: Arc::clone(&self.shared),
            request,
            index,
            has_begun: false,
            waiting: VecDeque::new(),
        };
        stream::unfold(passage, |mut passage| async move {
            let event = passage.next().await?;
            Some((event, passage))
        })
        .boxed()
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        self.provider().convert_tools(tools)
    }

    fn layout(&self, request: &Request) -> Option<Layout> {
        self.provider().layout(request)
    }
}
