//! A session that the editor has open: its events become updates, in order, by one task.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use windlass_api::{
    Answer, Backend, CallId, DeltaKind, Envelope, Event, EventStream, SessionId, SessionInfo, UserReply,
    Waiting,
};

use crate::ask::{self, Asked};
use crate::client::ClientAbilities;
use crate::options::Choices;
use crate::rpc;
use windlass_jsonrpc::{Gone, Outbox};

use crate::view::{self, Context, Severity, View};

/// Maximum length of merged pieces of a reply.
const MAX_MERGED: usize = 16 << 10;
/// Time between two updates with pieces of a reply. Pieces that arrive meanwhile are one update: a model may send hundreds
/// a second, and an editor draws the screen less often than that.
const PACE: Duration = Duration::from_millis(10);
/// Delay before an answer is given again that came before the turn waited for it.
const AGAIN: Duration = Duration::from_millis(5);

/// A session that the editor has open.
pub(crate) struct Session {
    /// Id that the editor uses.
    pub(crate) id: String,
    pub(crate) place: PathBuf,
    /// Prompts and commands that are not answered yet.
    pub(crate) work: TaskTracker,
    state: Mutex<State>,
    next: AtomicU64,
}

struct State {
    /// The session itself. A command such as `/clear` continues in another one.
    current: SessionId,
    choices: Choices,
    /// Title that the editor knows.
    title: Option<String>,
    prompts: HashMap<u64, CancellationToken>,
    pump: Option<Pump>,
}

/// The task that sends updates.
struct Pump {
    task: AbortOnDropHandle<()>,
    progress: watch::Receiver<Progress>,
}

/// Numbers of the last events that were sent. It changes with every event that is no piece of a reply.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) last: u64,
    pub(crate) terminal: u64,
}

/// A prompt that is not answered yet.
pub(crate) struct Prompt {
    session: Arc<Session>,
    number: u64,
    pub(crate) cancel: CancellationToken,
}

impl Drop for Prompt {
    fn drop(&mut self) {
        self.session.lock().prompts.remove(&self.number);
    }
}

impl Session {
    pub(crate) fn new(info: &SessionInfo, choices: Choices) -> Self {
        Self {
            id: info.id.to_string(),
            place: PathBuf::from(&info.place),
            work: TaskTracker::new(),
            state: Mutex::new(State {
                current: info.id.clone(),
                choices,
                title: title(info),
                prompts: HashMap::new(),
                pump: None,
            }),
            next: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current(&self) -> SessionId {
        self.lock().current.clone()
    }

    pub(crate) fn choices(&self) -> Choices {
        self.lock().choices.clone()
    }

    /// Replaces the choices and returns the ones before.
    pub(crate) fn set_choices(&self, choices: Choices) -> Choices {
        std::mem::replace(&mut self.lock().choices, choices)
    }

    /// Returns the title of the session if the editor does not know it yet.
    pub(crate) fn new_title(&self, info: &SessionInfo) -> Option<String> {
        let title = title(info);
        let before = std::mem::replace(&mut self.lock().title, title.clone());
        title.filter(|title| before.as_ref() != Some(title))
    }

    /// Continues in another session.
    pub(crate) fn switch(&self, to: SessionId) {
        let mut state = self.lock();
        state.current = to;
        state.pump = None;
    }

    /// Registers a prompt, so that it can be canceled even before its turn runs.
    pub(crate) fn begin_prompt(self: &Arc<Self>, cancel: CancellationToken) -> Prompt {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().prompts.insert(number, cancel.clone());
        Prompt {
            session: Arc::clone(self),
            number,
            cancel,
        }
    }

    /// Cancels all prompts.
    pub(crate) fn cancel_prompts(&self) {
        for cancel in self.lock().prompts.values() {
            cancel.cancel();
        }
    }

    /// Stops sending updates.
    pub(crate) fn stop(&self) {
        self.lock().pump = None;
    }

    /// Starts to send the updates of events after a number. Events before it are not sent.
    pub(crate) fn start(self: &Arc<Self>, screen: Screen, events: EventStream, view: View, after: u64) {
        let begin = Progress {
            last: after,
            terminal: after,
        };
        let (sender, progress) = watch::channel(begin);
        let pumping = pump(Arc::clone(self), screen, events, view, sender);
        let task = AbortOnDropHandle::new(tokio::spawn(pumping));
        self.lock().pump = Some(Pump { task, progress });
    }

    /// Returns the progress of the updates; `None` if nothing is sent any more, with the last number.
    pub(crate) fn progress(&self) -> Result<watch::Receiver<Progress>, u64> {
        match &self.lock().pump {
            Some(pump) if !pump.task.is_finished() => Ok(pump.progress.clone()),
            Some(pump) => Err(pump.progress.borrow().last),
            None => Err(0),
        }
    }
}

/// Returns the name of a session, or its title.
pub(crate) fn title(info: &SessionInfo) -> Option<String> {
    info.label.name.clone().or_else(|| info.label.title.clone())
}

/// The client and the backend, as a session needs them.
#[derive(Clone)]
pub(crate) struct Screen {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) outbox: Outbox,
    pub(crate) client: ClientAbilities,
}

impl Screen {
    pub(crate) fn view(&self, session: &Session, context: Context) -> View {
        View::new(self.client, &session.place, context)
    }
}

/// Sends the updates of events until the session ends or the client is gone.
async fn pump(
    session: Arc<Session>,
    screen: Screen,
    events: EventStream,
    mut view: View,
    progress: watch::Sender<Progress>,
) {
    let mut events = Merged::new(events);
    let mut questions = HashMap::new();
    while let Some(envelope) = events.next().await {
        if matches!(envelope.event, Event::Start { .. }) {
            view.set_window(session.lock().choices.window);
        }
        for update in view.event(&envelope.event) {
            if let Err(Gone) = rpc::update(&screen.outbox, &session.id, update).await {
                return;
            }
        }
        follow_questions(&mut questions, &session, &screen, &view, &envelope.event);
        if matches!(envelope.event, Event::Delta { .. }) {
            continue;
        }
        progress.send_modify(|progress| {
            if envelope.event.is_live() {
                return;
            }
            progress.last = progress.last.max(envelope.seq);
            if envelope.event.is_terminal() {
                progress.terminal = progress.terminal.max(envelope.seq);
            }
        });
    }
}

/// Starts the questions of the turn, and withdraws those that are answered elsewhere or over.
fn follow_questions(
    questions: &mut HashMap<CallId, AbortOnDropHandle<()>>,
    session: &Arc<Session>,
    screen: &Screen,
    view: &View,
    event: &Event,
) {
    match event {
        Event::Waiting(waiting) => match waiting {
            Waiting::PermissionRequest { call_id, .. } | Waiting::Question { call_id, .. } => {
                let agent = match waiting {
                    Waiting::PermissionRequest { agent, .. } => agent.as_deref(),
                    _ => None,
                };
                let card = view.open_card(call_id, agent);
                let question = ask::question(screen.client, &session.id, waiting, card);
                let asking = answer(Arc::clone(session), screen.clone(), call_id.clone(), question);
                let task = AbortOnDropHandle::new(tokio::spawn(asking));
                questions.insert(call_id.clone(), task);
            }
            Waiting::PermissionAnswer { call_id, .. } => drop(questions.remove(call_id)),
            Waiting::Queue { .. } => {}
        },
        Event::ToolResult { call_id, .. } => drop(questions.remove(call_id)),
        event if event.is_terminal() => questions.clear(),
        _ => {}
    }
}

/// Asks the user and passes the answer on. Dropped when the turn no longer waits.
async fn answer(session: Arc<Session>, screen: Screen, call: CallId, question: Option<ask::Question>) {
    let current = session.current();
    let asked = match question {
        Some(question) => question.ask(&screen.outbox).await,
        None => Asked::Nobody("this editor has no way to ask for a text".to_owned()),
    };
    let reply = match asked {
        Asked::Reply(reply) => reply,
        Asked::Cancel => {
            session.cancel_prompts();
            screen.backend.cancel(&current).await;
            return;
        }
        Asked::Nobody(why) => {
            let text = format!("Denied, because nobody could be asked: {why}");
            let notice = view::notice(screen.client, Severity::Warning, &text);
            let _ = rpc::update(&screen.outbox, &session.id, notice).await;
            UserReply::Permission(Answer::No)
        }
    };
    // A client that answers at once may be faster than the turn, which waits only after it has asked.
    let mut again = tokio::time::interval(AGAIN);
    while !screen.backend.reply(&current, &call, reply.clone()).await {
        again.tick().await;
    }
}

/// Events, with the pieces of a reply merged that arrive within [`PACE`].
struct Merged {
    events: EventStream,
    held: Option<Envelope>,
    pace: Interval,
}

impl Merged {
    fn new(events: EventStream) -> Self {
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            events,
            held: None,
            pace,
        }
    }

    /// Returns the next event. The first piece after a pause is not held up, nor is any other event.
    async fn next(&mut self) -> Option<Envelope> {
        let mut first = match self.held.take() {
            Some(held) => held,
            None => self.events.next().await?,
        };
        let Event::Delta { kind, text } = &mut first.event else {
            return Some(first);
        };
        while text.len() < MAX_MERGED {
            let next = tokio::select! {
                biased;
                next = self.events.next() => next,
                _ = self.pace.tick() => break,
            };
            match next {
                Some(Envelope {
                    event:
                        Event::Delta {
                            kind: other,
                            text: more,
                        },
                    ..
                }) if other == *kind => {
                    // The editor shows no arguments before the call.
                    if other != DeltaKind::ToolInput {
                        text.push_str(&more);
                    }
                }
                next => {
                    self.held = next;
                    break;
                }
            }
        }
        Some(first)
    }
}
