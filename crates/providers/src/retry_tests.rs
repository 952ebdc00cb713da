use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use windlass_core::clock::Timestamp;
use windlass_core::model::Usage;
use windlass_core::provider::{Completion, ProviderErrorKind, StopReason};

use super::*;

/// A clock that notes every wait and either returns at once or never.
#[derive(Default)]
struct FakeClock {
    waits: Mutex<Vec<Duration>>,
    stuck: bool,
}

#[async_trait]
impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, duration: Duration) {
        self.waits.lock().unwrap().push(duration);
        if self.stuck {
            std::future::pending::<()>().await;
        }
    }
}

fn complete() -> ProviderEvent {
    let usage = Usage::default();
    let model = "m".to_owned();
    let completion = Completion {
        parts: Vec::new(),
        origin: None,
        stop: StopReason::EndTurn,
        usage,
        model,
    };
    ProviderEvent::Complete(Box::new(completion))
}

fn overloaded() -> ProviderError {
    ProviderError::new(ProviderErrorKind::Overloaded, "busy")
}

fn run(
    clock: &Arc<FakeClock>,
    attempts: Vec<Vec<ProviderEvent>>,
) -> (BoxStream<'static, ProviderEvent>, CancellationToken) {
    let cancel = CancellationToken::new();
    let mut attempts = VecDeque::from(attempts);
    let parts = Retrying {
        policy: RetryPolicy::default(),
        clock: Arc::<FakeClock>::clone(clock),
        jitter: Jitter::seeded(7),
        cancel: cancel.clone(),
    };
    let again = vec![ProviderEvent::Error(overloaded())];
    let attempt = move || stream::iter(attempts.pop_front().unwrap_or_else(|| again.clone())).boxed();
    (retrying(parts, Box::new(attempt)), cancel)
}

fn outline(event: &ProviderEvent) -> String {
    match event {
        ProviderEvent::ContentDelta(text) => format!("text {text}"),
        ProviderEvent::Complete(_) => "complete".to_owned(),
        ProviderEvent::Error(error) => format!("error {error}"),
        ProviderEvent::Retry(notice) => {
            format!(
                "retry {}/{} discard={}",
                notice.attempt, notice.max_attempts, notice.discard
            )
        }
        other => format!("{other:?}"),
    }
}

async fn outlines(events: BoxStream<'static, ProviderEvent>) -> Vec<String> {
    events.map(|event| outline(&event)).collect().await
}

/// PROV-6: 8 retries, each announced; delays double from 2 s with up to a fifth on top, 60 s at most.
#[tokio::test]
async fn gives_up_after_eight_retries() {
    let clock = Arc::new(FakeClock::default());
    let (events, _) = run(&clock, Vec::new());
    let seen = outlines(events).await;
    assert_eq!(seen.len(), 9);
    assert_eq!(seen.first().unwrap(), "retry 1/8 discard=false");
    assert_eq!(seen.last().unwrap(), "error busy");
    let waits = clock.waits.lock().unwrap();
    for (wait, base) in waits.iter().zip([2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]) {
        let seconds = wait.as_secs_f64();
        assert!(
            seconds >= base && seconds <= (base * 1.2_f64).min(60.0),
            "{seconds} for {base}"
        );
    }
    assert_eq!(waits.len(), 8);
}

/// PROV-6: a stream that breaks after producing output starts over, and announces that the output is void.
#[tokio::test]
async fn a_broken_stream_is_announced_as_void() {
    let clock = Arc::new(FakeClock::default());
    let first = vec![
        ProviderEvent::ContentDelta("hel".to_owned()),
        ProviderEvent::Error(ProviderError::new(ProviderErrorKind::Network, "reset")),
    ];
    // The second attempt produces no output, so its failure voids nothing.
    let second = vec![
        ProviderEvent::Warning("odd".to_owned()),
        ProviderEvent::Error(overloaded()),
    ];
    let third = vec![ProviderEvent::ContentDelta("hello".to_owned()), complete()];
    let (events, _) = run(&clock, vec![first, second, third]);
    assert_eq!(
        outlines(events).await,
        [
            "text hel",
            "retry 1/8 discard=true",
            "Warning(\"odd\")",
            "retry 2/8 discard=false",
            "text hello",
            "complete"
        ]
    );
}

/// PROV-6: Retry-After wins up to 120 s; a longer one is an error that names the delay.
#[tokio::test]
async fn the_providers_wait_wins() {
    let asks = |seconds| ProviderError {
        retry_after: Some(Duration::from_secs(seconds)),
        ..overloaded()
    };
    let clock = Arc::new(FakeClock::default());
    let (events, _) = run(
        &clock,
        vec![vec![ProviderEvent::Error(asks(120))], vec![complete()]],
    );
    assert_eq!(outlines(events).await, ["retry 1/8 discard=false", "complete"]);
    assert_eq!(*clock.waits.lock().unwrap(), [Duration::from_secs(120)]);

    let clock = Arc::new(FakeClock::default());
    let (events, _) = run(&clock, vec![vec![ProviderEvent::Error(asks(121))]]);
    assert_eq!(
        outlines(events).await,
        ["error busy (the provider asks to wait 121 s)"]
    );
    assert!(clock.waits.lock().unwrap().is_empty());
}

/// PROV-6: a failure the provider does not want retried is not retried.
#[tokio::test]
async fn final_failures_are_not_retried() {
    let clock = Arc::new(FakeClock::default());
    let spent = ProviderError::new(ProviderErrorKind::Quota, "spent");
    let (events, _) = run(&clock, vec![vec![ProviderEvent::Error(spent)]]);
    assert_eq!(outlines(events).await, ["error spent"]);
}

/// PROV-6: cancellation ends the wait at once, and the stream still ends with one event.
#[tokio::test]
async fn cancellation_ends_the_wait() {
    let clock = Arc::new(FakeClock {
        stuck: true,
        ..FakeClock::default()
    });
    let (mut events, cancel) = run(&clock, Vec::new());
    assert_eq!(outline(&events.next().await.unwrap()), "retry 1/8 discard=false");
    let (event, ()) = tokio::join!(events.next(), async { cancel.cancel() });
    assert_eq!(outline(&event.unwrap()), "error canceled");
    assert!(events.next().await.is_none());
}

/// PROV-1: a stream that stops without an end is a failure like any other; every stream ends exactly once.
#[tokio::test]
async fn a_stream_without_an_end_is_retried() {
    let clock = Arc::new(FakeClock::default());
    let (events, _) = run(&clock, vec![vec![ProviderEvent::ContentStart], vec![complete()]]);
    assert_eq!(
        outlines(events).await,
        ["ContentStart", "retry 1/8 discard=true", "complete"]
    );
}
