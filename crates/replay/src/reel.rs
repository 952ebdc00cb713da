//! The recorded exchanges of a session, looked up by request.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use windlass_core::log::Exchange;
use windlass_core::text::difference;

/// Recorded exchanges for a replay.
pub struct ReplayRecording {
    exchanges: Vec<Exchange>,
    /// Maximum number of exchanges to play.
    most: usize,
    state: Mutex<State>,
}

struct State {
    /// Exchanges not played yet, by the digest of the request.
    left: HashMap<String, VecDeque<usize>>,
    is_played: Vec<bool>,
    /// Number of the exchange that was played last.
    last: Option<usize>,
    /// A request that is not in the recording.
    unknown: Option<Bytes>,
    /// Fires when there is nothing more to play.
    cancel: CancellationToken,
    is_over: bool,
}

/// Providers and models of the requests from one on: those that a turn can need.
pub struct RecordedChoices {
    /// The first one, and others in the order of the recording.
    pub choices: Vec<(String, String)>,
    /// Returns the choice for the next request.
    pub next: Arc<dyn Fn() -> Option<(String, String)> + Send + Sync>,
}

impl RecordedChoices {
    pub(super) fn new(reel: &Arc<ReplayRecording>, begin: usize) -> Self {
        let mut choices: Vec<_> = reel.exchanges.iter().skip(begin).map(asked).collect();
        let mut seen = HashSet::new();
        choices.retain(|choice| seen.insert(choice.clone()));
        let reel = Arc::clone(reel);
        Self {
            choices,
            next: Arc::new(move || reel.next_from(begin)),
        }
    }
}

fn asked(exchange: &Exchange) -> (String, String) {
    (exchange.provider.clone(), exchange.model.clone())
}

/// First difference between a request and the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Number of the request, starting at 1.
    pub request: usize,
    /// Offset of the first byte that differs.
    pub byte: usize,
    /// Recorded text around the offset.
    pub was: String,
    /// New text around the offset.
    pub is: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "request {} differs from byte {} on: recorded `{}`, now `{}`",
            self.request, self.byte, self.was, self.is
        )
    }
}

impl ReplayRecording {
    /// Creates a recording of which at most `most` exchanges are played.
    pub fn new(exchanges: Vec<Exchange>, most: Option<usize>) -> Self {
        let mut left: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (number, exchange) in exchanges.iter().enumerate() {
            left.entry(exchange.digest.clone()).or_default().push_back(number);
        }
        Self {
            state: Mutex::new(State {
                left,
                is_played: vec![false; exchanges.len()],
                last: None,
                unknown: None,
                cancel: CancellationToken::new(),
                is_over: false,
            }),
            most: most.unwrap_or(usize::MAX),
            exchanges,
        }
    }

    /// Returns all exchanges.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Returns the exchange for a request. A request that is not in the recording ends the turn.
    pub fn play(&self, request: &Bytes) -> Option<&Exchange> {
        let digest = blake3::hash(request).to_hex().to_string();
        let mut state = self.lock();
        if state.is_played.iter().filter(|played| **played).count() >= self.most {
            state.is_over = true;
            state.cancel.cancel();
            return None;
        }
        let found = state.left.get_mut(&digest).and_then(VecDeque::pop_front);
        match found {
            Some(number) => {
                if let Some(played) = state.is_played.get_mut(number) {
                    *played = true;
                }
                state.last = Some(number);
                self.exchanges.get(number)
            }
            // The session did not try again here, because another model stood in.
            None if state.left.contains_key(&digest) && self.moves_on(&state) => None,
            None => {
                state.unknown.get_or_insert_with(|| request.clone());
                state.cancel.cancel();
                None
            }
        }
    }

    /// Returns true if the exchange after the last one was with another provider or model.
    fn moves_on(&self, state: &State) -> bool {
        let last = state.last.and_then(|number| self.exchanges.get(number));
        let next = state.last.and_then(|number| self.exchanges.get(number + 1));
        last.zip(next)
            .is_some_and(|(last, next)| asked(last) != asked(next))
    }

    /// Returns the first exchange that was not played, with its number.
    pub(super) fn upcoming(&self) -> Option<(usize, &Exchange)> {
        let number = self.lock().is_played.iter().position(|played| !played)?;
        Some((number, self.exchanges.get(number)?))
    }

    /// Returns provider and model of the first exchange from number `begin` on that was not played.
    fn next_from(&self, begin: usize) -> Option<(String, String)> {
        let state = self.lock();
        let mut rest = self.exchanges.iter().zip(&state.is_played).skip(begin);
        rest.find(|(_, played)| !**played)
            .map(|(exchange, _)| asked(exchange))
    }

    /// Returns the number of exchanges played.
    pub fn played(&self) -> usize {
        self.lock().is_played.iter().filter(|played| **played).count()
    }

    /// Compares the first request that was not in the recording with the one that should have been sent.
    pub fn difference(&self) -> Option<Difference> {
        let state = self.lock();
        let is = state.unknown.as_ref()?;
        let number = state.is_played.iter().position(|played| !played)?;
        let was = &self.exchanges.get(number)?.request;
        let (byte, was, is) = difference(was, is);
        Some(Difference {
            request: number + 1,
            byte,
            was,
            is,
        })
    }

    /// Starts a turn, which `cancel` stops. A request that was missing in an earlier one does not count: after the
    /// part of a reply that was received before it was canceled, the replay asks again.
    pub(super) fn stop_with(&self, cancel: CancellationToken) {
        let mut state = self.lock();
        state.cancel = cancel;
        state.unknown = None;
    }

    /// Returns true if the requested number was played and more exchanges remain.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
