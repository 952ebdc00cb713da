//! The recorded exchanges of a session, looked up by request.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// A request that is not in the recording.
    unknown: Option<Bytes>,
    /// Fires when there is nothing more to play.
    cancel: CancellationToken,
    is_over: bool,
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
                self.exchanges.get(number)
            }
            None => {
                state.unknown.get_or_insert_with(|| request.clone());
                state.cancel.cancel();
                None
            }
        }
    }

    /// Returns the first exchange that was not played.
    pub(super) fn next(&self) -> Option<&Exchange> {
        let number = self.lock().is_played.iter().position(|played| !played)?;
        self.exchanges.get(number)
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
