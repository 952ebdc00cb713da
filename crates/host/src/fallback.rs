//! PROV-13: other models that answer when the first one cannot.
//!
//! A request goes to the first provider. If that fails after its retries because of a limit, an overload or an
//! outage, the same request goes to the next one, and the user is told. The first one is tried again after a pause.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;
use windlass_core::clock::Clock;
use windlass_core::model::{Model, Usage};
use windlass_core::provider::{
    Layout, Provider, ProviderError, ProviderErrorKind, ProviderEvent, Request, RetryNotice,
};
use windlass_core::tool::ToolSpec;

use crate::connect::Connection;

/// A provider with others behind it.
pub struct Fallback {
    shared: Arc<Shared>,
}

struct Shared {
    providers: Vec<Arc<dyn Provider>>,
    /// Keeps the other connections alive.
    _connections: Vec<Connection>,
    /// Index of the provider that answers.
    current: AtomicUsize,
    /// Time when the first one failed.
    failed: Mutex<Option<Duration>>,
    clock: Arc<dyn Clock>,
    pause: Duration,
}

impl Fallback {
    /// Puts other providers behind the first one. After a failure, it is tried again after `pause`.
    pub fn new(
        first: Arc<dyn Provider>,
        others: Vec<Connection>,
        clock: Arc<dyn Clock>,
        pause: Duration,
    ) -> Self {
        let rest = others.iter().map(|connection| Arc::clone(&connection.provider));
        let shared = Shared {
            providers: std::iter::once(first).chain(rest).collect(),
            _connections: others,
            current: AtomicUsize::new(0),
            failed: Mutex::new(None),
            clock,
            pause,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    fn provider(&self) -> &dyn Provider {
        let providers = &self.shared.providers;
        let index = self
            .shared
            .current
            .load(Ordering::Relaxed)
            .min(providers.len() - 1);
        &*providers[index]
    }
}

impl Shared {
    /// Returns the provider for the next request: the first one, unless it failed a moment ago.
    fn start(&self) -> usize {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_down = failed.is_some_and(|at| self.clock.elapsed() < at + self.pause);
        let index = match is_down {
            true => self.current.load(Ordering::Relaxed),
            false => 0,
        };
        self.current.store(index, Ordering::Relaxed);
        index
    }

    /// Goes from a provider that failed to the next one, and returns the line for the user.
    fn advance(&self, index: usize, error: &ProviderError, request: &Request) -> Option<String> {
        let next = self.providers.get(index + 1)?;
        if index == 0 {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.clock.elapsed());
        }
        self.current.store(index + 1, Ordering::Relaxed);
        let mut line = format!(
            "{} cannot answer ({}): continuing with {}",
            label(&*self.providers[index]),
            error.message,
            label(&**next)
        );
        let bytes = serde_json::to_vec(&request.messages).map_or(0, |text| text.len());
        let tokens = u64::try_from(bytes / 4).unwrap_or(u64::MAX);
        line.push_str(&format!(
            "; nothing is cached there, about {tokens} tokens are sent in full"
        ));
        if let Some(price) = next.model().price {
            let usage = Usage {
                input: tokens,
                ..Usage::default()
            };
            line.push_str(&format!(" (${:.4})", price.cost(&usage)));
        }
        Some(line)
    }

    /// Notes that a provider answered. Returns a line for the user if it is the first one again.
    fn answered(&self, index: usize) -> Option<String> {
        if index > 0 {
            return None;
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take()?;
        Some(format!("{} answers again", label(&*self.providers[0])))
    }
}

/// Returns provider and model as they are written in the settings.
fn label(provider: &dyn Provider) -> String {
    format!("{}/{}", provider.name(), provider.model().id)
}

/// Returns true for failures that another provider does not have.
fn is_outage(kind: ProviderErrorKind) -> bool {
    use ProviderErrorKind::{
        Auth, ContentPolicy, ContextOverflow, InvalidRequest, Network, Overloaded, Provider, Quota, RateLimit,
    };
    match kind {
        RateLimit | Quota | Overloaded | Network | Provider => true,
        Auth | InvalidRequest | ContextOverflow | ContentPolicy => false,
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
            ProviderEvent::Error(error) if is_outage(error.kind) && !self.request.cancel.is_cancelled() => {
                Some(self.failed(error))
            }
            ProviderEvent::Complete(completion) => match self.shared.answered(self.index) {
                Some(line) => {
                    self.waiting.push_back(ProviderEvent::Complete(completion));
                    Some(ProviderEvent::Warning(line))
                }
                None => Some(ProviderEvent::Complete(completion)),
            },
            event => {
                let is_notice = matches!(event, ProviderEvent::Retry(_) | ProviderEvent::Warning(_));
                self.has_begun |= !is_notice;
                Some(event)
            }
        }
    }

    /// Sends the request to the next provider, if there is one.
    fn failed(&mut self, error: ProviderError) -> ProviderEvent {
        let Some(line) = self.shared.advance(self.index, &error, &self.request) else {
            return ProviderEvent::Error(error);
        };
        self.index += 1;
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

impl Provider for Fallback {
    fn name(&self) -> &str {
        self.provider().name()
    }

    fn model(&self) -> &Model {
        self.provider().model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let index = self.shared.start();
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
