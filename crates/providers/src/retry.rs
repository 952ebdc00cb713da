//! Retries: the only place that sends a request again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio_util::sync::CancellationToken;
use windlass_core::clock::Clock;
use windlass_core::provider::{ProviderError, ProviderEvent, RetryNotice};

use crate::failure;

/// Number and timing of retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of retries after the first attempt.
    pub max_retries: u32,
    /// Delay before the first retry. It doubles with each further one.
    pub base_delay: Duration,
    /// Longest delay that we choose ourselves.
    pub max_delay: Duration,
    /// Longest delay a provider may ask for. A longer one is reported as a failure at once.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 8,
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(60),
            max_retry_after: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// Returns the delay before retry `attempt`, counted from 1: doubling, plus up to a fifth by `jitter`.
    pub fn delay(&self, attempt: u32, jitter: &mut Jitter) -> Duration {
        let doubled = 2_u32.checked_pow(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let delay = self.base_delay.saturating_mul(doubled).min(self.max_delay);
        delay.mul_f64(1.0 + 0.2 * jitter.fraction()).min(self.max_delay)
    }
}

/// A source of small random differences, so that many clients do not retry at the same moment.
#[derive(Debug, Clone)]
pub struct Jitter(u64);

impl Jitter {
    /// Creates a source with a fixed sequence: the same seed gives the same numbers.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a source with a different sequence each time.
    pub fn random() -> Self {
        Self(RandomState::new().build_hasher().finish())
    }

    /// Returns the next number, from 0 up to but not including 1.
    #[allow(clippy::cast_precision_loss)]
    pub fn fraction(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Starts an attempt: a stream that ends with one `Complete` or one `Error`.
pub type Attempt = Box<dyn FnMut() -> BoxStream<'static, ProviderEvent> + Send>;

/// Everything a [`retrying`] stream needs besides the attempts.
pub struct Retrying {
    /// Number and timing of retries.
    pub policy: RetryPolicy,
    /// Clock that the delays wait on.
    pub clock: Arc<dyn Clock>,
    /// Spreads the delays.
    pub jitter: Jitter,
    /// Cancels the current attempt or delay at once.
    pub cancel: CancellationToken,
}

/// Runs attempts until one succeeds, fails for good, or the retries are used up.
///
/// Each retry is announced before its delay. If the failed attempt had already produced output, that output
/// is void, and the announcement says so. The stream ends with exactly one `Complete` or `Error`.
pub fn retrying(retrying: Retrying, mut attempt: Attempt) -> BoxStream<'static, ProviderEvent> {
    let current = attempt();
    let state = State {
        retrying,
        attempt,
        phase: Phase::Streaming(current),
        retries: 0,
        shown: false,
        chunks: 0,
    };
    // Boxed, because the state is moved with every event.
    stream::unfold(Box::new(state), |mut state| async move {
        state.next().await.map(|event| (event, state))
    })
    .boxed()
}

struct State {
    retrying: Retrying,
    attempt: Attempt,
    phase: Phase,
    retries: u32,
    /// True if the current attempt has produced output.
    shown: bool,
    /// Pieces of output of the current attempt.
    chunks: u64,
}

enum Phase {
    Streaming(BoxStream<'static, ProviderEvent>),
    Waiting(Duration),
    Done,
}

impl State {
    async fn next(&mut self) -> Option<ProviderEvent> {
        loop {
            match &mut self.phase {
                Phase::Done => return None,
                Phase::Waiting(delay) => {
                    let delay = *delay;
                    let cancel = self.retrying.cancel.clone();
                    tokio::select! {
                        biased;
                        () = cancel.cancelled() => return Some(self.fail(failure::canceled())),
                        () = self.retrying.clock.sleep(delay) => {}
                    }
                    (self.shown, self.chunks) = (false, 0);
                    self.phase = Phase::Streaming((self.attempt)());
                }
                Phase::Streaming(events) => {
                    let event = events.next().await;
                    return Some(self.pass(event));
                }
            }
        }
    }

    fn pass(&mut self, event: Option<ProviderEvent>) -> ProviderEvent {
        match event {
            None => self.failed(failure::ended_early()),
            Some(ProviderEvent::Error(error)) => self.failed(error),
            Some(ProviderEvent::Complete(mut completion)) => {
                self.phase = Phase::Done;
                completion.usage.chunks = self.chunks;
                ProviderEvent::Complete(completion)
            }
            Some(event) => {
                self.shown |= !matches!(event, ProviderEvent::Warning(_) | ProviderEvent::Retry(_));
                self.chunks += u64::from(matches!(
                    event,
                    ProviderEvent::ContentDelta(_)
                        | ProviderEvent::ThinkingDelta(_)
                        | ProviderEvent::ToolUseDelta { .. }
                ));
                event
            }
        }
    }

    fn failed(&mut self, error: ProviderError) -> ProviderEvent {
        let policy = self.retrying.policy;
        if self.retrying.cancel.is_cancelled() {
            return self.fail(failure::canceled());
        }
        if !error.retryable || self.retries >= policy.max_retries {
            return self.fail(error);
        }
        let delay = match error.retry_after {
            Some(wait) if wait > policy.max_retry_after => {
                let message = format!(
                    "{} (the provider asks to wait {} s)",
                    error.message,
                    wait.as_secs()
                );
                return self.fail(ProviderError { message, ..error });
            }
            Some(wait) => wait,
            None => policy.delay(self.retries + 1, &mut self.retrying.jitter),
        };
        self.retries += 1;
        self.phase = Phase::Waiting(delay);
        ProviderEvent::Retry(RetryNotice {
            attempt: self.retries,
            max_attempts: policy.max_retries,
            delay,
            error,
            discard: self.shown,
        })
    }

    fn fail(&mut self, error: ProviderError) -> ProviderEvent {
        self.phase = Phase::Done;
        ProviderEvent::Error(error)
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
