//! One turn of a session, from its plan to its report.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use windlass_core::compact::{CompactionPorts, compact};
use windlass_core::event::{Event, EventSink};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::message::{Message, Part};
use windlass_core::middleware::Shrink;
use windlass_core::model::Model;
use windlass_core::run::{Config, Inbox, Ports, run_with_hooks};
use windlass_core::turn::{TurnInput, TurnReport};

use crate::sink::Sink;

/// One turn, ready to run. Owned, so that it can run in a task of its own.
pub(crate) struct PlannedTurn {
    pub(crate) session: SessionId,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) config: Config,
    pub(crate) ports: Ports,
    pub(crate) sink: Arc<Sink>,
    pub(crate) notices: Vec<String>,
}

impl PlannedTurn {
    /// Returns warnings to show before the turn of a message.
    pub(crate) fn notices(&self, message: &Message) -> Vec<String> {
        let unread = unread_images(self.ports.provider.model(), message);
        self.notices.iter().cloned().chain(unread).collect()
    }

    /// Runs the turn.
    pub(crate) async fn run(self) -> TurnReport {
        let provider = &self.ports.provider;
        let input = TurnInput {
            session: self.session,
            history: self.history,
            limits: self.config.limits.clone(),
            price: provider.model().price,
            provider: provider.name().to_owned(),
            model: provider.model().id.clone(),
        };
        run_with_hooks(input, &self.config, &self.ports).await
    }

    /// Compacts the history instead, and records the compaction. Returns the new history.
    pub(crate) async fn shrink(self) -> Result<Vec<Arc<Message>>, String> {
        let compaction = CompactionPorts::new(&self.config, &self.ports);
        let limit = self.config.limits.context_prep_timeout;
        let smaller = compact(&compaction, &self.history, Shrink::FULL, limit).await?;
        if let Some(usage) = smaller.usage {
            let provider = &self.ports.provider;
            self.sink.asks(provider.name(), &provider.model().id);
            let used = Event::Usage {
                usage,
                cost_usd: provider.model().price.map(|price| price.cost(&usage)),
                cause: "summary".to_owned(),
            };
            self.sink.record(used).await.map_err(|error| error.to_string())?;
        }
        Ok(smaller.history)
    }
}

/// Returns a warning if a message has images that the model cannot read.
fn unread_images(model: &Model, message: &Message) -> Option<String> {
    let name = |part: &Part| match part {
        Part::Binary(file) if file.mime.starts_with("image/") => Some(file.path.clone()),
        Part::ImageUrl(image) if image.url.starts_with("data:") => Some("an image".to_owned()),
        Part::ImageUrl(image) => Some(image.url.clone()),
        _ => None,
    };
    let names: Vec<String> = message.parts.iter().filter_map(name).collect();
    let is_unread = !model.images && !names.is_empty();
    is_unread.then(|| {
        let names = names.join(", ");
        format!(
            "{} does not read images: it only gets the name of {names}.",
            model.id
        )
    })
}

/// Messages that the user sends while a turn runs, until they are recorded as part of the conversation.
#[derive(Clone, Default)]
pub(crate) struct Steering(Arc<Mutex<Steers>>);

#[derive(Default)]
struct Steers {
    /// Messages, each with true if the turn has taken it.
    waiting: Vec<(Arc<Message>, bool)>,
    /// True if a message was sent since the last turn ended.
    is_used: bool,
}

impl Steering {
    pub(crate) fn say(&self, message: Arc<Message>) {
        let mut steers = self.lock();
        steers.is_used = true;
        steers.waiting.push((message, false));
    }

    /// Removes a message that is now recorded.
    pub(crate) fn heard(&self, message: &MessageId) {
        self.lock().waiting.retain(|(waiting, _)| waiting.id != *message);
    }

    /// Returns the messages that are not recorded yet.
    pub(crate) fn waiting(&self) -> Vec<Arc<Message>> {
        let steers = self.lock();
        steers
            .waiting
            .iter()
            .map(|(message, _)| Arc::clone(message))
            .collect()
    }

    /// Ends the turn. Returns the messages it did not take; `None` if none were sent.
    pub(crate) fn end(&self) -> Option<Vec<Arc<Message>>> {
        let steers = std::mem::take(&mut *self.lock());
        let unheard = steers.waiting.into_iter().map(|(message, _)| message);
        steers.is_used.then(|| unheard.collect())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Steers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Inbox for Steering {
    async fn take(&self) -> Vec<Message> {
        let mut steers = self.lock();
        let new = steers.waiting.iter_mut().filter(|(_, is_taken)| !is_taken);
        new.map(|(message, is_taken)| {
            *is_taken = true;
            (**message).clone()
        })
        .collect()
    }
}
