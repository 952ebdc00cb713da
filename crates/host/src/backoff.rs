//! PROV-9: after a connection failure, the next turns fail immediately for a while instead of retrying.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use windlass_api::FailureKind;
use windlass_core::clock::Clock;
use windlass_core::model::Model;
use windlass_core::provider::{Layout, Provider, ProviderError, ProviderErrorKind, ProviderEvent, Request};
use windlass_core::tool::ToolSpec;
use windlass_service::NotReady;

/// Remembers the time and the reason of the last connection failure.
pub struct Backoff {
    clock: Arc<dyn Clock>,
    window: Duration,
    failed: Mutex<Option<(Duration, ProviderError)>>,
}

impl Backoff {
    /// Waits `window` after a failure.
    pub fn new(clock: Arc<dyn Clock>, window: Duration) -> Arc<Self> {
        Arc::new(Self {
            clock,
            window,
            failed: Mutex::new(None),
        })
    }

    /// Refuses a turn that starts within the window, with the reason of the failed one.
    pub fn check(&self) -> Result<(), NotReady> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, error)) = &*failed else {
            return Ok(());
        };
        let left = (*at + self.window).saturating_sub(self.clock.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let wait = format!("retry in {:.1} s", left.as_secs_f64());
        let hint = match &error.hint {
            Some(hint) => format!("{hint}; {wait}"),
            None => wait,
        };
        Err(NotReady {
            kind: FailureKind::Provider(error.kind),
            message: error.message.clone(),
            hint: Some(hint),
        })
    }

    fn note(&self, outcome: Option<&ProviderError>) {
        let failed = outcome.map(|error| (self.clock.elapsed(), error.clone()));
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }
}

/// A provider that reports connection failures to a [`Backoff`].
pub struct Watched {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// The backoff that failures are reported to.
    pub backoff: Arc<Backoff>,
}

#[async_trait]
impl Provider for Watched {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn model(&self) -> &Model {
        self.provider.model()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, ProviderEvent> {
        let backoff = Arc::clone(&self.backoff);
        let mut has_begun = false;
        let events = self.provider.stream(request).inspect(move |event| match event {
            ProviderEvent::Complete(_) => backoff.note(None),
            ProviderEvent::Error(error) => {
                let unreachable = error.kind == ProviderErrorKind::Network && error.status.is_none();
                backoff.note(Some(error).filter(|_| unreachable && !has_begun));
            }
            ProviderEvent::Retry(_) | ProviderEvent::Warning(_) => {}
            // Any event from the stream means that the server is reachable.
            _ => has_begun = true,
        });
        events.boxed()
    }

    fn convert_tools(&self, tools: &[ToolSpec]) -> Value {
        self.provider.convert_tools(tools)
    }

    fn layout(&self, request: &Request) -> Option<Layout> {
        self.provider.layout(request)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tokio_util::sync::CancellationToken;
    use windlass_core::clock::Timestamp;
    use windlass_core::provider::{Prefix, ToolChoice};
    use windlass_core::script::{Scene, ScriptedProvider};

    use super::*;

    /// A clock that advances only on request.
    #[derive(Default)]
    pub(crate) struct ManualClock(Mutex<Duration>);

    impl ManualClock {
        pub(crate) fn pass(&self, millis: u64) {
            *self.0.lock().unwrap() += Duration::from_millis(millis);
        }
    }

    #[async_trait]
    impl Clock for ManualClock {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock().unwrap()
        }

        async fn sleep(&self, duration: Duration) {
            self.pass(u64::try_from(duration.as_millis()).unwrap());
        }
    }

    async fn ask(provider: &Watched) {
        let request = Request {
            prefix: Arc::new(Prefix::default()),
            messages: Vec::new(),
            tool_choice: ToolChoice::Auto,
            max_output: None,
            session: "s".into(),
            cancel: CancellationToken::new(),
        };
        let _ = provider.send(request).await;
    }

    /// PROV-9: inside the window a turn is refused with the same reason and the remaining time; after the
    /// window, or after a reply, it is not. Only a provider that could not be reached starts a window.
    #[tokio::test]
    async fn nobody_there_begins_a_window() {
        let clock = Arc::new(ManualClock::default());
        let backoff = Backoff::new(Arc::clone(&clock) as _, Duration::from_secs(2));
        let refused = || Scene::fail(ProviderErrorKind::Network, "cannot connect to http://x");
        let scripted = Arc::new(ScriptedProvider::new([
            refused(),
            refused(),
            Scene::text("there"),
            Scene::fail(ProviderErrorKind::RateLimit, "slow down"),
        ]));
        let provider = Watched {
            provider: Arc::clone(&scripted) as _,
            backoff: Arc::clone(&backoff),
        };
        assert_eq!(backoff.check(), Ok(()));
        ask(&provider).await;
        clock.pass(500);
        let told = backoff.check().unwrap_err();
        assert_eq!(told.kind, FailureKind::Provider(ProviderErrorKind::Network));
        assert_eq!(told.message, "cannot connect to http://x");
        assert_eq!(told.hint.as_deref(), Some("retry in 1.5 s"));
        clock.pass(1_500);
        assert_eq!(backoff.check(), Ok(()));
        ask(&provider).await;
        assert!(backoff.check().is_err(), "a second failure begins another window");
        clock.pass(2_000);
        ask(&provider).await;
        assert_eq!(backoff.check(), Ok(()));
        ask(&provider).await;
        assert_eq!(backoff.check(), Ok(()), "somebody was there and said no");
        assert_eq!(scripted.seen().len(), 4);
    }
}
