//! Runs turns in this process: the [`Client`] that front ends use when nothing else does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_api::{CallId, Client, ClientError, EVENT_VERSION, Envelope, EventStream, Reply, Submission};
use windlass_core::clock::{Clock, SystemClock};
use windlass_core::compact::Compactor;
use windlass_core::dispatch::{Dispatch, Execution};
use windlass_core::event::{Event, EventSink, SinkError};
use windlass_core::id::SessionId;
use windlass_core::message::{Message, Part, Role};
use windlass_core::middleware::Middleware;
use windlass_core::permission::{Approver, Policy};
use windlass_core::provider::{Provider, ToolChoice};
use windlass_core::run::{Deps, EmptyInbox, IncompleteWork, run};
use windlass_core::turn::{Limits, TurnInput};

use crate::reload::{Offer, Workbench};
use crate::replies::Replies;

/// What a turn is made of.
pub(crate) struct Assembly {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) workbench: Mutex<Workbench>,
    pub(crate) limits: Limits,
    pub(crate) max_output: Option<u64>,
    pub(crate) calls: CallSettings,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    pub(crate) compactor: Option<Arc<dyn Compactor>>,
    pub(crate) incomplete: Option<Arc<dyn IncompleteWork>>,
}

/// How tool calls are run.
pub(crate) struct CallSettings {
    pub(crate) approver: Arc<dyn Approver>,
    /// The way back for whoever answers.
    pub(crate) replies: Replies,
    pub(crate) mode: Execution,
    pub(crate) timeout: std::time::Duration,
    pub(crate) max_result_chars: usize,
    pub(crate) policy: Policy,
}

/// Runs turns in this process and keeps their conversations in memory.
pub(crate) struct LocalClient {
    assembly: Arc<Assembly>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    sessions: Arc<Mutex<HashMap<SessionId, Session>>>,
}

#[derive(Default)]
struct Session {
    history: Vec<Arc<Message>>,
    sequence: u64,
    running: Option<CancellationToken>,
}

impl LocalClient {
    pub(crate) fn new(assembly: Assembly) -> Self {
        Self {
            assembly: Arc::new(assembly),
            clock: Arc::new(SystemClock::default()),
            tasks: TaskTracker::new(),
            sessions: Arc::default(),
        }
    }
}

#[async_trait]
impl Client for LocalClient {
    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError> {
        let Submission { session: id, parts } = submission;
        if !parts
            .iter()
            .any(|part| !matches!(part, Part::Text(text) if text.text.trim().is_empty()))
        {
            return Err(ClientError::Empty);
        }
        let cancel = CancellationToken::new();
        let message = Arc::new(Message::new(&id, Role::User, parts, self.clock.now()));
        let (history, sequence) = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let session = sessions.entry(id.clone()).or_default();
            if session.running.is_some() {
                return Err(ClientError::Busy(id));
            }
            session.running = Some(cancel.clone());
            session.history.push(Arc::clone(&message));
            (session.history.clone(), session.sequence)
        };
        let (sender, mut receiver) = unbounded_channel();
        let sink = Arc::new(Sink {
            session: id.clone(),
            sender,
            sequence: Mutex::new(sequence),
        });
        sink.state(Event::Message { message });
        let turn = LocalTurn {
            assembly: Arc::clone(&self.assembly),
            clock: Arc::clone(&self.clock),
            tasks: self.tasks.clone(),
            sessions: Arc::clone(&self.sessions),
        };
        tokio::spawn(turn.run(id, history, sink, cancel));
        let mut over = false;
        Ok(EventStream::new(futures_util::stream::poll_fn(move |cx| {
            if over {
                return std::task::Poll::Ready(None);
            }
            let next = receiver.poll_recv(cx);
            over =
                matches!(&next, std::task::Poll::Ready(Some(Envelope { event, .. })) if event.is_terminal());
            next
        })))
    }

    async fn cancel(&self, session: &SessionId) -> bool {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let running = sessions.get(session).and_then(|session| session.running.as_ref());
        running.map(CancellationToken::cancel).is_some()
    }

    async fn reply(&self, _session: &SessionId, call: &CallId, reply: Reply) -> bool {
        self.assembly.calls.replies.give(call, reply)
    }
}

struct LocalTurn {
    assembly: Arc<Assembly>,
    clock: Arc<dyn Clock>,
    tasks: TaskTracker,
    sessions: Arc<Mutex<HashMap<SessionId, Session>>>,
}

impl LocalTurn {
    async fn run(
        self,
        id: SessionId,
        history: Vec<Arc<Message>>,
        sink: Arc<Sink>,
        cancel: CancellationToken,
    ) {
        let offer = self.offer(&sink);
        let provider = &*self.assembly.provider;
        let input = TurnInput {
            session: id.clone(),
            history,
            limits: self.assembly.limits.clone(),
            price: provider.model().price,
            provider: provider.name().to_owned(),
            model: provider.model().id.clone(),
        };
        let report = run(input, &self.deps(&offer, Arc::clone(&sink), cancel)).await;
        {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let session = sessions.entry(id).or_default();
            session.history = report.history;
            session.running = None;
            session.sequence = *sink.sequence.lock().unwrap_or_else(PoisonError::into_inner) + 1;
        }
        // Whoever has read the terminal event must find the session free.
        sink.state(report.outcome.event());
    }

    /// TOOL-5: the tools of this turn, which do not change before its end.
    fn offer(&self, sink: &Sink) -> Offer {
        let workbench = &self.assembly.workbench;
        let mut workbench = workbench.lock().unwrap_or_else(PoisonError::into_inner);
        let (offer, notices) = workbench.refresh();
        for message in notices {
            sink.state(Event::Warning { message });
        }
        offer
    }

    fn deps<'a>(&'a self, offer: &'a Offer, events: Arc<Sink>, cancel: CancellationToken) -> Deps<'a> {
        let assembly = &*self.assembly;
        Deps {
            provider: &*assembly.provider,
            prefix: Arc::clone(&offer.prefix),
            tool_choice: ToolChoice::Auto,
            max_output: assembly.max_output,
            dispatch: Dispatch {
                tools: &offer.tools,
                hook: None,
                policy: &assembly.calls.policy,
                approver: Arc::clone(&assembly.calls.approver),
                execution: Arc::clone(&offer.execution),
                execution_mode: assembly.calls.mode,
                timeout: assembly.calls.timeout,
                max_result_chars: Some(assembly.calls.max_result_chars),
                tasks: self.tasks.clone(),
            },
            middleware: &assembly.middleware,
            incomplete: assembly.incomplete.as_deref(),
            compactor: assembly.compactor.as_deref(),
            inbox: &EmptyInbox,
            clock: Arc::clone(&self.clock),
            events,
            cancel,
        }
    }
}

/// Numbers events and hands them on; the terminal one is left to [`LocalTurn::run`].
struct Sink {
    session: SessionId,
    sender: UnboundedSender<Envelope>,
    sequence: Mutex<u64>,
}

impl Sink {
    fn state(&self, event: Event) {
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        *sequence += 1;
        self.send(*sequence, event);
    }

    fn send(&self, seq: u64, event: Event) {
        // A front end that has gone is not the turn's concern.
        let _ = self.sender.send(Envelope {
            v: EVENT_VERSION,
            session: self.session.clone(),
            seq,
            event,
        });
    }
}

#[async_trait]
impl EventSink for Sink {
    fn live(&self, event: Event) {
        let sequence = *self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        self.send(sequence, event);
    }

    async fn record(&self, event: Event) -> Result<(), SinkError> {
        if !event.is_terminal() {
            self.state(event);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
