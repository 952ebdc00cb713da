//! Access to the session's model for running calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::id::SessionId;
use crate::message::Message;
use crate::model::{Model, Usage};
use crate::provider::{Completion, Prefix, Provider, ProviderError, Request, ToolChoice};

/// Start of the purpose of a request that a server of tools made.
pub const SAMPLING: &str = "sampling-";

/// The model of a turn, for calls that need an answer of it. The turn books what they spend, and its limits count it.
#[derive(Clone, Default)]
pub struct CallModel(Option<Arc<Inner>>);

struct Inner {
    provider: Arc<dyn Provider>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    /// Requests of each purpose so far.
    requests: HashMap<String, usize>,
    charges: Vec<Charge>,
}

/// Tokens and cost of a request that a call made.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// Purpose of the request.
    pub cause: String,
    /// Tokens of the request.
    pub usage: Usage,
    /// Cost in US dollars; `None` if the model's prices are unknown.
    pub cost_usd: Option<f64>,
}

/// A request of a call.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// System prompt; may be empty.
    pub system: String,
    /// The conversation, which begins with a message of the user.
    pub messages: Vec<Arc<Message>>,
    /// Maximum number of tokens of the reply.
    pub max_output: u64,
    /// Session that the call belongs to.
    pub session: SessionId,
    /// Cancels the request.
    pub cancel: CancellationToken,
}

impl CallModel {
    /// Returns a model that is never available.
    pub fn none() -> Self {
        Self(None)
    }

    /// The model of a turn.
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self(Some(Arc::new(Inner {
            provider,
            books: Mutex::default(),
        })))
    }

    /// Returns the model that requests are sent to; `None` if the call has none.
    pub fn model(&self) -> Option<&Model> {
        self.0.as_ref().map(|inner| inner.provider.model())
    }

    /// Counts a request, and returns false if this purpose has used up the number that it may send in a turn.
    pub fn admits(&self, cause: &str, limit: usize) -> bool {
        let Some(inner) = &self.0 else { return false };
        let mut books = inner.lock();
        let count = books.requests.entry(cause.to_owned()).or_default();
        let is_free = *count < limit;
        *count += usize::from(is_free);
        is_free
    }

    /// Sends a request without tools, and returns the whole reply; `None` if the call has no model.
    pub async fn send(&self, request: CallRequest, cause: &str) -> Option<Result<Completion, ProviderError>> {
        let inner = self.0.as_ref()?;
        let request = Request {
            prefix: Arc::new(Prefix {
                system: request.system,
                ..Prefix::default()
            }),
            messages: request.messages,
            tool_choice: ToolChoice::None,
            max_output: Some(request.max_output),
            session: request.session,
            cancel: request.cancel,
        };
        let answered = inner.provider.send(request).await;
        if let Ok(completion) = &answered {
            let price = inner.provider.model().price;
            inner.lock().charges.push(Charge {
                cause: cause.to_owned(),
                usage: completion.usage,
                cost_usd: price.map(|price| price.cost(&completion.usage)),
            });
        }
        Some(answered)
    }

    /// Takes what calls spent since the last time.
    pub(crate) fn take_charges(&self) -> Vec<Charge> {
        let Some(inner) = &self.0 else {
            return Vec::new();
        };
        std::mem::take(&mut inner.lock().charges)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
