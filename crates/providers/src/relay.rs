//! Several providers behind one: a request that one of them cannot answer moves to another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Provider, ProviderError, ProviderEvent, Request, RetryNotice};
use windlass_core::tool::ToolSpec;

/// Order of the providers of a [`Relay`].
pub trait RelayOrder: Send + Sync {
    /// Returns the index of the provider for a new request. `current` is the one that answered last.
    fn start(&self, current: usize) -> usize;

    /// Returns the provider that follows one that failed, and a line for the user; `None` if the failure is final.
    fn after(&self, failed: usize, error: &ProviderError, request: &Request) -> Option<(usize, String)>;

    /// Notes that a provider answered. May return a line for the user.
    fn answered(&self, _index: usize) -> Option<String> {
        None
    }
}

/// Several providers, of which one answers at a time.
pub struct Relay {
    shared: Arc<Shared>,
}

struct Shared {
    /// At least one.
    providers: Vec<Arc<dyn Provider>>,
    order: Box<dyn RelayOrder>,
    /// Index of the provider that answers.
    current: AtomicUsize,
}

impl Shared {
    /// Makes a provider the current one. An index out of range means the last one.
    fn select(&self, index: usize) -> usize {
        let index = index.min(self.providers.len() - 1);
        self.current.store(index, Ordering::Relaxed);
        index
    }
}

impl Relay {
    /// Puts other providers beside the first one.
    pub fn new(
        first: Arc<dyn Provider>,
        others: impl IntoIterator<Item = Arc<dyn Provider>>,
        order: Box<dyn RelayOrder>,
    ) -> Self {
        let shared = Shared {
            providers: std::iter::once(first).chain(others).collect(),
            order,
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

impl Provider for Relay {
    fn name(&self) -> &str {
        self.provider().name()
    }

    fn model(&self) -> &Model {
        self.provider().model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let current = self.shared.current.load(Ordering::Relaxed);
        let index = self.shared.select(self.shared.order.start(current));
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
        match self.events.next().await? {
            ProviderEvent::Error(error) if !self.request.cancel.is_cancelled() => Some(self.failed(error)),
            ProviderEvent::Complete(completion) => {
                let completion = ProviderEvent::Complete(completion);
                let Some(line) = self.shared.order.answered(self.index) else {
                    return Some(completion);
                };
                self.waiting.push_back(completion);
                Some(ProviderEvent::Warning(line))
            }
            event => {
                let is_notice = matches!(event, ProviderEvent::Retry(_) | ProviderEvent::Warning(_));
                self.has_begun |= !is_notice;
                Some(event)
            }
        }
    }

    /// Sends the request to the next provider, if there is one. A reply that broke off is taken back.
    fn failed(&mut self, error: ProviderError) -> ProviderEvent {
        let Some((next, line)) = self.shared.order.after(self.index, &error, &self.request) else {
            return ProviderEvent::Error(error);
        };
        self.index = self.shared.select(next);
        self.events = self.shared.providers[self.index].stream(self.request.clone());
        if std::mem::take(&mut self.has_begun) {
            self.waiting.push_back(ProviderEvent::Retry(RetryNotice {
                attempt: 1,
                max_attempts: 1,
                delay: Duration::ZERO,
                error,
                discard: true,
            }));
        }
        ProviderEvent::Warning(line)
    }
}
