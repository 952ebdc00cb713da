//! A live session: one task that owns its state.

mod goal;
mod queue;
mod shell;
mod summary;
mod surroundings;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, Event, SessionEvent, SessionInfo, Submission, Wait};
use windlass_core::compact::{estimate_tokens, fidelity};
use windlass_core::context::trim;
use windlass_core::event::FailureKind;
use windlass_core::id::MessageId;
use windlass_core::log::{Durability, History, Lease, LogError, Opened, recover};
use windlass_core::message::{FinishReason, Message, Part, Role};
use windlass_core::turn::TurnReport;

use crate::commands::{Asked, Desk};
use crate::environment::{NotReady, SessionEnv, TurnStart};
use crate::goal::Goal;
use crate::handle::{SessionSeat, Stoppable};
use crate::pins::pinned;
use crate::sink::Sink;
use crate::turn::Work;
use crate::{Inner, refused, title};

/// How often a lease is renewed; it lasts three times as long.
const RENEWAL: Duration = Duration::from_secs(10);

/// How much of what the user said a bench is told, in characters.
const PROMPT: usize = 120;

/// What became of an input.
pub(crate) type Accepted = Result<Option<MessageId>, ClientError>;

/// Whether something has begun that is no turn.
pub(crate) type Begun = Result<(), ClientError>;

/// What a session's task can be told.
pub(crate) enum Order {
    /// Answers with the message's id when it has to wait for its turn.
    Submit(Input, oneshot::Sender<Accepted>),
    Summarize(oneshot::Sender<Begun>),
    /// A command of the user's.
    Shell(String, oneshot::Sender<Begun>),
    /// About commands.
    Desk(Asked),
    /// Nobody looks at it any more.
    Leave,
    Close,
}

/// An input on its way.
pub(crate) struct Input {
    pub(crate) submission: Submission,
    /// How often something had been stopped here when it was said.
    pub(crate) stops: u64,
}

pub(crate) struct Live {
    pub(crate) inner: Arc<Inner>,
    pub(crate) info: SessionInfo,
    lease: Lease,
    pub(crate) history: Vec<Arc<Message>>,
    /// Accepted and stored, and not yet asked.
    pub(crate) queue: VecDeque<Arc<Message>>,
    /// How often something had been stopped when the last input was said; `None` before the first one.
    heard: Option<u64>,
    /// What the session is to reach.
    pub(crate) goal: Goal,
    /// The texts that were pinned, the first one first.
    pub(crate) pins: Vec<String>,
    pub(crate) bench: Box<dyn SessionEnv>,
    sink: Arc<Sink>,
    seat: SessionSeat,
    stay: Stay,
}

/// How long a session's task stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// As long as somebody may look at it.
    Open,
    /// Nobody looks at it any more: it ends when nothing is left to do.
    Left,
    /// It ends now.
    Closing,
}

impl Stay {
    fn after(order: Option<&Order>) -> Self {
        match order {
            Some(Order::Leave) => Self::Left,
            Some(Order::Close) | None => Self::Closing,
            Some(_) => Self::Open,
        }
    }
}

/// What runs, and how to reach it.
struct Running<T> {
    task: JoinHandle<T>,
    stop: Stoppable,
}

impl Live {
    /// Makes a session live: what its last owner left open is closed first.
    pub(crate) async fn begin(
        inner: Arc<Inner>,
        opened: Opened,
        sink: Arc<Sink>,
        seat: SessionSeat,
    ) -> Result<Self, ClientError> {
        let Opened {
            lease,
            info,
            entries,
            draft,
        } = opened;
        let added = recover(&entries, draft, inner.clock.now());
        let mut history = History::read(&entries);
        added.iter().for_each(|event| history.apply(event));
        // Only what was said can be pinned, and looking is not free: a new session is most often one that is waited for.
        let pins = match info.last_seq {
            0 => Vec::new(),
            _ => pinned(&*inner.store, &info.id).await,
        };
        let made = async {
            if !added.is_empty() {
                sink.store(added, Durability::Disk).await.map_err(refused)?;
            }
            let queue = queue::found(&inner, &entries, &info).await.map_err(refused)?;
            if let Some(bench) = seat.bench() {
                return Ok((queue, bench));
            }
            let bench = inner.workshop.bench(&info, Arc::new(seat.replies.clone())).await;
            Ok((queue, bench.map_err(ClientError::Setup)?))
        };
        match made.await {
            Ok((queue, bench)) => Ok(Self {
                inner,
                info,
                lease,
                history: history.into_messages(),
                heard: None,
                queue,
                goal: Goal::read(&entries),
                pins,
                bench,
                sink,
                seat,
                stay: Stay::Open,
            }),
            Err(error) => {
                let _ = inner.store.release(&lease).await;
                Err(error)
            }
        }
    }

    /// Takes orders until there are none for a while.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let clock = Arc::clone(&self.inner.clock);
        let mut renewal = tokio::time::interval(RENEWAL);
        // Only orders put it off.
        let mut idle = clock.sleep(self.inner.options.idle);
        while self.stay != Stay::Closing
            && !self.sink.is_broken()
            && (self.goes_on() || self.stay == Stay::Open)
        {
            // What was ordered during a turn is not about the next one, and comes first.
            let order = match inbox.try_recv() {
                Ok(order) => Some(order),
                Err(TryRecvError::Empty) if self.goes_on() => {
                    self.ask(&mut inbox).await;
                    continue;
                }
                Err(_) => tokio::select! {
                    biased;
                    order = inbox.recv() => order,
                    _ = renewal.tick() => {
                        self.renew();
                        continue;
                    }
                    () = &mut idle => break,
                },
            };
            self.obey(order, &mut inbox).await;
            idle = clock.sleep(self.inner.options.idle);
        }
        inbox.close();
        self.seat.rest(self.bench);
        self.sink.settle().await;
        let _ = self.inner.store.release(&self.lease).await;
        self.sink.feed().end();
    }

    /// Carries out an order while nothing runs.
    async fn obey(&mut self, order: Option<Order>, inbox: &mut mpsc::Receiver<Order>) {
        self.stay = Stay::after(order.as_ref());
        match order {
            Some(Order::Submit(input, answer)) => self.submit(input, answer, inbox).await,
            Some(Order::Summarize(answer)) => self.summarize(answer, inbox).await,
            Some(Order::Shell(command, answer)) => self.shell(&command, answer, inbox).await,
            Some(Order::Desk(asked)) => Desk::free(self).serve(asked).await,
            Some(Order::Leave | Order::Close) | None => {}
        }
    }

    /// Nobody waits for it: a lease that was lost is noticed by the next write, which then tells why.
    fn renew(&self) {
        let (store, lease) = (Arc::clone(&self.inner.store), self.lease.clone());
        tokio::spawn(async move { store.renew(&lease).await });
    }

    /// Takes an input while nothing runs.
    async fn submit(
        &mut self,
        input: Input,
        answer: oneshot::Sender<Accepted>,
        inbox: &mut mpsc::Receiver<Order>,
    ) {
        if !self.queue.is_empty() || self.was_to_wait(&input) {
            return drop(answer.send(self.submit_behind(input, false).await));
        }
        let message = match self.message(input.submission) {
            Ok(message) => Arc::new(message),
            Err(error) => return drop(answer.send(Err(error))),
        };
        let stop = self.seat.begin();
        if let Err(error) = self.take(&message, None).await {
            return drop(answer.send(Err(refused(error))));
        }
        self.heard = Some(input.stops);
        let _ = answer.send(Ok(None));
        self.turn(&message, stop, inbox).await;
    }

    /// Runs the input that waits first.
    async fn ask(&mut self, inbox: &mut mpsc::Receiver<Order>) {
        let Some(message) = self.queue.pop_front() else {
            return;
        };
        let queued = self.queued();
        let stop = self.seat.begin();
        if let Err(error) = self.take(&message, Some(queued)).await {
            self.sink.tell_only(not_stored(&error));
            self.stay = Stay::Closing;
            return;
        }
        self.turn(&message, stop, inbox).await;
    }

    /// Stores an input, with what else is to be told then. It is part of the conversation from here on.
    async fn take(&mut self, message: &Arc<Message>, queued: Option<Event>) -> Result<(), LogError> {
        let message = &self.surrounded(message);
        let said = Event::Message {
            message: Arc::clone(message),
        };
        let goal = self.goal_of(message);
        let events = [Some(said), queued, goal.clone()];
        let events = events.into_iter().flatten().collect();
        self.sink.store(events, Durability::Process).await?;
        goal.iter().for_each(|event| self.goal.apply(event));
        self.history.push(Arc::clone(message));
        Ok(())
    }

    fn message(&self, submission: Submission) -> Result<Message, ClientError> {
        let is_empty = |part: &Part| matches!(part, Part::Text(text) if text.text.trim().is_empty());
        if submission.parts.iter().all(is_empty) {
            return Err(ClientError::Empty);
        }
        let now = self.inner.clock.now();
        Ok(Message::new(&self.info.id, Role::User, submission.parts, now))
    }

    async fn turn(&mut self, message: &Message, stop: Stoppable, inbox: &mut mpsc::Receiver<Order>) {
        let prompt = title::prompt(message).chars().take(PROMPT).collect();
        let start = self.turn_start(Some(message.id.clone()), prompt);
        let ready = self.work(&start, &stop.token).await;
        let titles = ready.as_ref().ok().and_then(|work| work.setup.titles.clone());
        title::make(&self.inner, &mut self.info, message, titles, &self.sink);
        let mut work = match ready {
            Ok(work) => work,
            Err(end) => return self.end(end).await,
        };
        self.warn(&work.notices(message)).await;
        if let Err(error) = self.trim(&mut work).await {
            return self.end(not_stored(&error)).await;
        }
        let between = work.setup.between.clone();
        let running = Running {
            stop,
            task: tokio::spawn(work.run()),
        };
        let report = self.watch(running, inbox).await;
        self.finish(report).await;
        if let Some(between) = between {
            between.turn_ended(&self.history);
        }
    }

    /// What a bench is told about what begins.
    pub(crate) fn turn_start(&self, message: Option<MessageId>, prompt: String) -> TurnStart {
        TurnStart {
            message,
            prompt,
            history: self.history.clone(),
            goal: self.goal.active().map(str::to_owned),
            pins: self.pins.clone(),
        }
    }

    /// Tells the user what a setup has to say. What cannot be recorded is not worth a turn.
    async fn warn(&self, notices: &[String]) {
        for message in notices.iter().cloned() {
            let event = Event::Warning { message };
            let _ = self.sink.store(vec![event], Durability::Process).await;
        }
    }

    /// What a turn needs, or how it ends because there is none.
    async fn work(&mut self, start: &TurnStart, cancel: &CancellationToken) -> Result<Work, Event> {
        let setup = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(canceled()),
            ready = self.bench.setup(start) => ready.map_err(not_ready)?,
        };
        Ok(Work {
            session: self.info.id.clone(),
            setup,
            history: self.history.clone(),
            sink: Arc::clone(&self.sink),
            clock: Arc::clone(&self.inner.clock),
            tasks: self.inner.strays.clone(),
            cancel: cancel.clone(),
        })
    }

    /// SES-13: drops the oldest exchanges of a conversation that is longer than it may be.
    async fn trim(&mut self, work: &mut Work) -> Result<(), LogError> {
        let most = work.setup.limits.max_conversation_messages;
        let Some(begin) = trim(&self.history, most) else {
            return Ok(());
        };
        let mut kept = self.history.split_off(begin);
        let before = estimate_tokens(&self.history) + estimate_tokens(&kept);
        // What goes may be what told the model where it is.
        let reminder = self.reminder(&kept);
        kept.splice(..0, reminder.clone());
        let told = reminder.map(|message| Event::Message { message });
        let events = [
            Some(Event::Warning {
                message: format!(
                    "the conversation has more than {most} messages: the oldest {begin} are no longer sent; they stay in \
                     the record"
                ),
            }),
            told,
            Some(Event::Session(SessionEvent::Compaction {
                before,
                after: estimate_tokens(&kept),
                history: kept.iter().map(|message| message.id.clone()).collect(),
                fidelity: None,
            })),
        ];
        self.history = kept;
        work.history = self.history.clone();
        let events = events.into_iter().flatten().collect();
        self.sink.store(events, Durability::Process).await
    }

    /// OBS-3: what the running turn waits for.
    pub(crate) fn why(&self) -> Vec<Wait> {
        self.sink.why()
    }

    /// Puts another version of a message in its place; the old one stays in the record.
    pub(crate) async fn replace(&mut self, message: Message) -> Result<(), LogError> {
        let before = estimate_tokens(&self.history);
        let message = Arc::new(message);
        let mut history = self.history.clone();
        if let Some(slot) = history.iter_mut().find(|known| known.id == message.id) {
            *slot = Arc::clone(&message);
        }
        let mut events = self.still_queued();
        events.push(Event::Message { message });
        events.push(Event::Session(SessionEvent::Compaction {
            before,
            after: estimate_tokens(&history),
            history: history.iter().map(|message| message.id.clone()).collect(),
            fidelity: Some(fidelity(&self.history, &history)),
        }));
        self.sink.store(events, Durability::Disk).await?;
        self.history = history;
        Ok(())
    }

    /// Goes back, or forward again, to how the conversation stood after an entry.
    pub(crate) async fn rewind(&mut self, to: u64) -> Result<(), LogError> {
        let event = Event::Session(SessionEvent::Rewind { to });
        self.sink.store(vec![event], Durability::Disk).await?;
        let entries = self.inner.store.entries(&self.info.id, 0, usize::MAX).await?;
        self.history = History::read(&entries).into_messages();
        self.goal = Goal::read(&entries);
        Ok(())
    }

    /// Records how a turn ended; when that cannot be, the session is given up.
    async fn end(&mut self, event: Event) {
        if let Err(error) = self.sink.store(vec![event], Durability::Disk).await {
            self.sink.tell_only(not_stored(&error));
            // Nothing more can be promised here; whoever comes next opens the session again.
            self.stay = Stay::Closing;
        }
    }

    /// Waits for what runs, and takes orders meanwhile.
    async fn watch<T>(
        &mut self,
        mut running: Running<T>,
        inbox: &mut mpsc::Receiver<Order>,
    ) -> Result<T, JoinError> {
        let mut renewal = tokio::time::interval(RENEWAL);
        renewal.tick().await;
        let done = loop {
            tokio::select! {
                biased;
                done = &mut running.task => break done,
                order = inbox.recv(), if self.stay != Stay::Closing => self.obey_busy(order, &running).await,
                _ = renewal.tick() => self.renew(),
            }
        };
        drop(running);
        self.put_back().await;
        done
    }

    /// Carries out an order while something runs.
    async fn obey_busy<T>(&mut self, order: Option<Order>, running: &Running<T>) {
        self.stay = Stay::after(order.as_ref());
        match order {
            Some(Order::Submit(input, answer)) => {
                let _ = answer.send(self.submit_behind(input, true).await);
            }
            Some(Order::Summarize(answer) | Order::Shell(_, answer)) => {
                let _ = answer.send(Err(ClientError::Busy(self.info.id.clone())));
            }
            Some(Order::Desk(asked)) => Desk::busy(self).serve(asked).await,
            Some(Order::Leave) => {}
            Some(Order::Close) | None => running.stop.token.cancel(),
        }
    }

    /// Records how the turn ended; then the session is free.
    async fn finish(&mut self, report: Result<TurnReport, JoinError>) {
        let mut events = Vec::new();
        match report {
            Ok(report) => {
                self.history = report.history;
                events.extend(self.reached(&report.outcome));
                events.push(report.outcome.event());
            }
            // A fault of ours. What was recorded is the truth, and what it lacks is added as after a crash.
            Err(error) => {
                let entries = self.inner.store.entries(&self.info.id, 0, usize::MAX).await;
                let entries = entries.unwrap_or_default();
                events = recover(&entries, None, self.inner.clock.now());
                events.pop();
                let mut history = History::read(&entries);
                events.iter().for_each(|event| history.apply(event));
                self.history = history.into_messages();
                events.push(Event::Failed {
                    reason: FailureKind::Interrupted,
                    message: format!("the turn failed inside: {error}"),
                    hint: None,
                    finish: FinishReason::Error,
                });
            }
        }
        if let Err(error) = self.sink.store(events, Durability::Disk).await {
            self.sink.tell_only(not_stored(&error));
            // Nothing more can be promised here; whoever comes next opens the session again.
            self.stay = Stay::Closing;
        }
    }
}

fn canceled() -> Event {
    Event::Canceled {
        message: "Canceled by the user.".to_owned(),
    }
}

fn not_ready(why: NotReady) -> Event {
    Event::Failed {
        reason: why.kind,
        message: why.message,
        hint: why.hint,
        finish: FinishReason::Error,
    }
}

fn not_stored(error: &LogError) -> Event {
    let hint = match error {
        LogError::Locked(_) => "wait until the other process is done, then go on with the session",
        _ => "free some space or mend the store, then go on with the session",
    };
    Event::Failed {
        reason: FailureKind::Log,
        message: format!("the record could not be written: {error}"),
        hint: Some(hint.to_owned()),
        finish: FinishReason::Error,
    }
}
