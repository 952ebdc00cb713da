//! One turn of a session, from its setup to its report.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_core::clock::Clock;
use windlass_core::compact::compact;
use windlass_core::dispatch::Dispatch;
use windlass_core::event::{Event, EventSink};
use windlass_core::id::{MessageId, SessionId};
use windlass_core::message::{Message, Part};
use windlass_core::middleware::Shrink;
use windlass_core::model::Model;
use windlass_core::provider::ToolChoice;
use windlass_core::run::{Deps, Inbox, run};
use windlass_core::turn::{TurnInput, TurnReport};

use crate::environment::Setup;
use crate::sink::Sink;

/// Everything one turn needs. Owned, so that it can run in a task of its own.
pub(crate) struct Work {
    pub(crate) session: SessionId,
    pub(crate) setup: Setup,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tasks: TaskTracker,
    pub(crate) cancel: CancellationToken,
}

impl Work {
    /// What the user should know before it runs for a message.
    pub(crate) fn notices(&self, message: &Message) -> Vec<String> {
        let unread = unread_images(self.setup.provider.model(), message);
        self.setup.notices.iter().cloned().chain(unread).collect()
    }

    /// Runs the turn.
    pub(crate) async fn run(self) -> TurnReport {
        let provider = &*self.setup.provider;
        let input = TurnInput {
            session: self.session.clone(),
            history: self.history.clone(),
            limits: self.setup.limits.clone(),
            price: provider.model().price,
            provider: provider.name().to_owned(),
            model: provider.model().id.clone(),
        };
        run(input, &self.deps()).await
    }

    /// Makes the history smaller instead, and records that. The new history.
    pub(crate) async fn shrink(self) -> Result<Vec<Arc<Message>>, String> {
        let smaller = compact(
            &self.deps(),
            &self.history,
            Shrink::HARD,
            self.setup.limits.context_prep_timeout,
        )
        .await?;
        if let Some(usage) = smaller.usage {
            let model = self.setup.provider.model();
            self.sink.asks(self.setup.provider.name(), &model.id);
            let used = Event::Usage {
                usage,
                cost_usd: model.price.map(|price| price.cost(&usage)),
                cause: "summary".to_owned(),
            };
            self.sink.record(used).await.map_err(|error| error.to_string())?;
        }
        Ok(smaller.history)
    }

    fn deps(&self) -> Deps<'_> {
        let setup = &self.setup;
        let calls = &setup.calls;
        Deps {
            provider: &*setup.provider,
            prefix: Arc::clone(&setup.prefix),
            tool_choice: ToolChoice::Auto,
            max_output: setup.max_output,
            dispatch: Dispatch {
                tools: &setup.tools,
                hook: None,
                policy: &calls.policy,
                approver: Arc::clone(&calls.approver),
                execution: Arc::clone(&calls.execution),
                execution_mode: calls.mode,
                timeout: calls.timeout,
                max_result_chars: Some(calls.max_result_chars),
                outputs: calls.outputs.clone(),
                retry_transient: calls.retry_transient,
                tasks: self.tasks.clone(),
            },
            middleware: &setup.middleware,
            incomplete: setup.incomplete.as_deref(),
            compactor: setup.compactor.as_deref(),
            inbox: self.sink.steering(),
            clock: Arc::clone(&self.clock),
            events: Arc::clone(&self.sink) as _,
            cancel: self.cancel.clone(),
        }
    }
}

/// What is said when a message has images that the model is not shown.
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
            "{} reads no images: it is only told the name of {names}.",
            model.id
        )
    })
}

/// What the user says while a turn runs, until it is in the record as part of the conversation.
#[derive(Clone, Default)]
pub(crate) struct Steering(Arc<Mutex<Steers>>);

#[derive(Default)]
struct Steers {
    /// With whether the turn has taken it.
    waiting: Vec<(Arc<Message>, bool)>,
    /// Whether something was said since the last turn ended.
    is_used: bool,
}

impl Steering {
    pub(crate) fn say(&self, message: Arc<Message>) {
        let mut steers = self.lock();
        steers.is_used = true;
        steers.waiting.push((message, false));
    }

    /// A message is in the record.
    pub(crate) fn heard(&self, message: &MessageId) {
        self.lock().waiting.retain(|(waiting, _)| waiting.id != *message);
    }

    /// What is not in the record yet.
    pub(crate) fn waiting(&self) -> Vec<Arc<Message>> {
        let steers = self.lock();
        steers
            .waiting
            .iter()
            .map(|(message, _)| Arc::clone(message))
            .collect()
    }

    /// The turn has ended: what it did not hear any more. `None` when nobody said anything.
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
