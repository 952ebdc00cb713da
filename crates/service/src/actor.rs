//! A live session: one task that owns its state.

mod activity;
pub(crate) mod checking;
mod claims;
mod environment;
mod goal_run;
mod moved;
mod plan_steps;
mod session_hooks;
mod summary;
mod user_command;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use windlass_api::{ClientError, CommandInfo, Event, SessionEvent, SessionInfo};
use windlass_core::compact::estimate_tokens;
use windlass_core::context::trim;
use windlass_core::event::FailureKind;
use windlass_core::hook::{SessionClosing, SessionOpening};
use windlass_core::log::{Durability, History, Lease, LogError, Opened, complete, ended_commands};
use windlass_core::message::{FinishReason, Message};
use windlass_core::run::Ports;
use windlass_core::turn::TurnReport;

use self::activity::{Activity, Finished, Running};
use crate::commands::{CommandContext, Look, Said};
use crate::environment::{NotReady, SessionEnv, TurnStart};
use crate::goal::Pursuit;
use crate::handle::{SessionHandle, Stoppable};
use crate::pins::Pins;
use crate::queue::{Accepted, Input, Queue};
use crate::sink::Sink;
use crate::turn::PlannedTurn;
use crate::{Inner, agents, refused, title};

/// Interval between renewals of the lease; a lease lasts three times as long.
const RENEWAL: Duration = Duration::from_secs(10);

/// Reply to a request that starts something other than a turn.
pub(crate) type Begun = Result<(), ClientError>;

/// A request to a session's task.
pub(crate) enum SessionRequest {
    Submit(Input, oneshot::Sender<Accepted>),
    Summarize(oneshot::Sender<Begun>),
    /// Runs a command that the user typed.
    Shell(String, oneshot::Sender<Begun>),
    /// Runs the commands of all claims again.
    Verify(oneshot::Sender<Begun>),
    /// Lists the slash commands.
    Catalog(oneshot::Sender<Vec<CommandInfo>>),
    /// Completes a command line.
    Complete(String, oneshot::Sender<Vec<String>>),
    /// Carries out a slash command.
    Command(String, oneshot::Sender<Result<Said, ClientError>>),
    Look(Look),
    /// A sub-agent ended that wakes the session.
    Wake,
    /// The environment waits for inputs, such as spoken ones.
    Listen,
    /// The last front end has left the session.
    Leave,
    Close,
}

/// A live session. Its task owns this value.
pub(crate) struct SessionActor {
    inner: Arc<Inner>,
    info: SessionInfo,
    lease: Lease,
    history: Vec<Arc<Message>>,
    queue: Queue,
    pursuit: Pursuit,
    pins: Pins,
    env: Box<dyn SessionEnv>,
    sink: Arc<Sink>,
    handle: SessionHandle,
    /// Notices about commands that ended with the last owner, until a turn shows them.
    ended: Vec<String>,
    stay: Stay,
}

/// Lifetime of a session's task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// It stays while a front end may show it.
    Open,
    /// No front end shows it: it ends when nothing is left to do.
    Left,
    /// It ends now.
    Closing,
}

impl Stay {
    fn after(self, request: Option<&SessionRequest>) -> Self {
        match request {
            Some(SessionRequest::Listen) => self,
            Some(SessionRequest::Leave) => Self::Left,
            Some(SessionRequest::Close) | None => Self::Closing,
            Some(_) => Self::Open,
        }
    }
}

impl SessionActor {
    /// Makes a session live. Work that its last owner left open is closed first.
    pub(crate) async fn begin(
        inner: Arc<Inner>,
        opened: Opened,
        sink: Arc<Sink>,
        handle: SessionHandle,
    ) -> Result<Self, ClientError> {
        let Opened {
            lease,
            info,
            entries,
            draft,
            dropped,
        } = opened;
        let parked = handle.parked();
        // A parked session's commands still run.
        let ended = match parked {
            None => ended_commands(&entries),
            Some(_) => Vec::new(),
        };
        let mut pursuit = Pursuit::read(&entries);
        let left = moved::Left::read(
            &lease,
            (&entries, draft),
            dropped,
            &mut pursuit,
            inner.clock.now(),
        );
        let mut added = left.added;
        agents::explain(&inner, &info.id, &mut added).await;
        let mut history = History::read(&entries);
        added.iter().for_each(|event| history.apply(event));
        let pins = Pins::read(&*inner.store, &info).await;
        let made = async {
            if !added.is_empty() {
                sink.store(added, Durability::Disk).await.map_err(refused)?;
            }
            let stops = handle.stops.clone();
            let queue = Queue::read(&inner, &info.id, &entries, stops).await;
            let queue = queue.map_err(refused)?.continued(left.continues);
            if let Some(env) = parked {
                return Ok((queue, env));
            }
            let host = agents::host(&inner, &info, &handle).await;
            let env = inner.factory.create(&info, host).await;
            Ok((queue, env.map_err(ClientError::Setup)?))
        };
        match made.await {
            Ok((queue, env)) => Ok(Self {
                inner,
                info,
                lease,
                history: history.into_messages(),
                queue,
                pursuit,
                pins,
                env,
                sink,
                handle,
                ended,
                stay: Stay::Open,
            }),
            Err(error) => {
                let _ = inner.store.release(&lease).await;
                Err(error)
            }
        }
    }

    /// Runs the session until it has been idle for a while.
    pub(crate) async fn run(
        mut self,
        mut opening: SessionOpening,
        mut inbox: mpsc::Receiver<SessionRequest>,
    ) {
        loop {
            let hooks = self.env.hooks();
            self.handle.family.set_hooks(&hooks);
            let activity = self.opening(&hooks, opening);
            let closing = self.serve(activity, &mut inbox).await;
            self.leave_goal().await;
            self.closing(hooks, closing).await;
            // A request that arrived while the hooks ran opens the session again.
            let is_shutdown = self.inner.closing.is_cancelled();
            if is_shutdown || self.must_close() || inbox.is_empty() {
                break;
            }
            opening = SessionOpening::Resumed;
        }
        inbox.close();
        self.handle.park(self.env);
        self.sink.settle().await;
        let _ = self.inner.store.release(&self.lease).await;
        self.sink.feed().end();
    }

    /// Carries out requests until the session is to be closed.
    async fn serve(
        &mut self,
        mut activity: Activity,
        inbox: &mut mpsc::Receiver<SessionRequest>,
    ) -> SessionClosing {
        let clock = Arc::clone(&self.inner.clock);
        let mut renewal = tokio::time::interval(RENEWAL);
        // Only requests and finished work reset the timeout.
        let mut idle = clock.sleep(self.inner.options.idle);
        loop {
            if activity.is_idle() && inbox.is_empty() && self.may_continue() {
                activity = self.start_queued().await;
            }
            if activity.is_idle() && !self.must_close() && self.handle.family.takes_wake() {
                activity = self.woken().await;
            }
            if activity.is_idle() && self.is_over(inbox) {
                return self.reason();
            }
            tokio::select! {
                biased;
                finished = activity.finished() => {
                    self.finish(finished).await;
                    idle = clock.sleep(self.inner.options.idle);
                }
                request = inbox.recv(), if self.stay != Stay::Closing && !activity.is_opening() => {
                    self.handle(request, &mut activity).await;
                    idle = clock.sleep(self.inner.options.idle);
                }
                due = self.pursuit.due(&self.handle, &*clock), if activity.is_idle() => {
                    activity = self.pursue(due).await;
                    idle = clock.sleep(self.inner.options.idle);
                }
                _ = renewal.tick() => self.renew(),
                () = &mut idle, if activity.is_idle() && !self.pursuit.is_active() => return SessionClosing::Parked,
            }
        }
    }

    /// Returns true if a queued input may start without a further request.
    fn may_continue(&self) -> bool {
        !self.must_close() && self.queue.goes_on()
    }

    /// Returns true if an idle session has nothing left to do. Requests that arrived meanwhile come first.
    fn is_over(&self, inbox: &mpsc::Receiver<SessionRequest>) -> bool {
        let has_work = self.queue.goes_on() || self.pursuit.is_active();
        let is_left = self.stay == Stay::Left && inbox.is_empty() && !has_work;
        self.must_close() || is_left
    }

    fn must_close(&self) -> bool {
        self.stay == Stay::Closing || self.sink.is_broken()
    }

    /// Carries out a request, beside the work that runs.
    async fn handle(&mut self, request: Option<SessionRequest>, activity: &mut Activity) {
        self.stay = self.stay.after(request.as_ref());
        let is_idle = activity.is_idle();
        match request {
            Some(SessionRequest::Submit(input, answer)) if is_idle && !self.queue.delays(&input) => {
                *activity = self.submit(input, answer).await;
            }
            Some(SessionRequest::Summarize(answer)) if is_idle => *activity = self.summarize(answer).await,
            Some(SessionRequest::Shell(command, answer)) if is_idle => {
                *activity = self.user_command(&command, answer).await;
            }
            Some(SessionRequest::Verify(answer)) if is_idle => *activity = self.verify(answer).await,
            Some(SessionRequest::Submit(input, answer)) => {
                let accepted = self.queue.accept(input, !is_idle, &self.sink).await;
                let _ = answer.send(accepted);
            }
            Some(
                SessionRequest::Summarize(answer)
                | SessionRequest::Shell(_, answer)
                | SessionRequest::Verify(answer),
            ) => {
                let _ = answer.send(Err(ClientError::Busy(self.info.id.clone())));
            }
            Some(SessionRequest::Catalog(answer)) => drop(answer.send(self.commands(is_idle).catalog())),
            Some(SessionRequest::Complete(line, answer)) => {
                drop(answer.send(self.commands(is_idle).complete(&line).await));
            }
            Some(SessionRequest::Command(line, answer)) => {
                drop(answer.send(self.commands(is_idle).run(&line).await));
            }
            Some(SessionRequest::Look(look)) => self.commands(is_idle).look(look).await,
            Some(SessionRequest::Wake | SessionRequest::Listen | SessionRequest::Leave) => {}
            Some(SessionRequest::Close) | None => activity.stop(),
        }
    }

    fn commands(&mut self, is_idle: bool) -> CommandContext<'_> {
        CommandContext {
            inner: &self.inner,
            info: &mut self.info,
            history: &mut self.history,
            pursuit: &mut self.pursuit,
            queue: &mut self.queue,
            pins: &mut self.pins,
            env: &mut *self.env,
            sink: &self.sink,
            is_busy: !is_idle,
        }
    }

    /// Renews the lease. The result is not awaited: the next write notices a lost lease and reports it.
    fn renew(&self) {
        let (store, lease) = (Arc::clone(&self.inner.store), self.lease.clone());
        tokio::spawn(async move { store.renew(&lease).await });
    }

    /// Takes an input that does not have to wait.
    async fn submit(&mut self, input: Input, answer: oneshot::Sender<Accepted>) -> Activity {
        let stop = self.handle.begin();
        let taken = self.take(&input.message, Vec::new()).await;
        if !matches!(taken, Ok(true)) {
            let _ = answer.send(taken.map(|_| None).map_err(refused));
            return Activity::Idle;
        }
        self.queue.skipped_by(&input);
        let _ = answer.send(Ok(None));
        self.turn(&input.message, stop).await
    }

    /// Starts the turn of the first input in the queue.
    async fn start_queued(&mut self) -> Activity {
        if self.queue.takes_dropped() {
            return self.continue_turn().await;
        }
        let Some((message, queued)) = self.queue.first(&self.sink) else {
            return Activity::Idle;
        };
        let stop = self.handle.begin();
        match self.take(&message, vec![queued]).await {
            Ok(true) => return self.turn(&message, stop).await,
            Ok(false) => {}
            Err(error) => {
                self.sink.tell_only(not_stored(&error));
                self.stay = Stay::Closing;
            }
        }
        Activity::Idle
    }

    /// Stores an input together with further events. It is part of the conversation from here on. Returns false if it was
    /// before: in a cluster, a message may come through two servers.
    async fn take(&mut self, message: &Arc<Message>, further: Vec<Event>) -> Result<bool, LogError> {
        let place = async || self.inner.store.place(&self.info.id, &message.id).await;
        if self.sink.feed().holds_back() && place().await?.is_some() {
            self.sink.store(further.clone(), Durability::Process).await?;
            self.apply(&further);
            return Ok(false);
        }
        let message = &self.surrounded(message);
        let said = Event::Message {
            message: Arc::clone(message),
        };
        let goals = self.env.goals();
        let goal = self.pursuit.goal.followed(&goals);
        let goal = goal.and_then(|goal| goal.told_by(message, goals.later_messages));
        let events: Vec<Event> = [said].into_iter().chain(further).chain(goal).collect();
        self.sink.store(events.clone(), Durability::Process).await?;
        self.apply(&events);
        Ok(true)
    }

    /// Applies events that are stored.
    fn apply(&mut self, events: &[Event]) {
        for event in events {
            self.pursuit.apply(event);
            self.queue.apply(event);
            if let Event::Message { message } = event {
                self.history.push(Arc::clone(message));
            }
        }
    }

    /// Starts the turn of a message that is part of the conversation.
    async fn turn(&mut self, message: &Message, stop: Stoppable) -> Activity {
        let start = self.turn_start(Some(message), &title::prompt(message));
        let planned = self.plan(&start, &stop.token).await;
        let title = title::hook(
            &self.inner,
            &mut self.info,
            message,
            self.env.titles(),
            &self.sink,
        );
        let mut turn = match planned {
            Ok(turn) => turn,
            Err(end) => {
                // The session is named after its first message, even if that message could not be answered.
                title.into_iter().for_each(|title| title.start());
                self.end_turn(vec![end]).await;
                return Activity::Idle;
            }
        };
        title.into_iter().for_each(|title| turn.config.hooks.push(title));
        self.goal_hooks(&mut turn, message);
        agents::add_hooks(&self.inner, &self.handle.family, &mut turn.config.hooks);
        let ended = std::mem::take(&mut self.ended);
        self.warn(&ended).await;
        self.warn(&turn.notices(message)).await;
        if let Err(error) = self.trim(&mut turn).await {
            self.end_turn(vec![not_stored(&error)]).await;
            return Activity::Idle;
        }
        Activity::Turn(Running {
            stop,
            task: tokio::spawn(turn.run()),
        })
    }

    /// Returns the start of a turn, as the environment sees it.
    fn turn_start(&self, message: Option<&Message>, prompt: &str) -> TurnStart {
        TurnStart::new(message, prompt, &self.history, &self.pursuit.goal, &self.pins)
    }

    /// Reports notices of the plan to the user. A notice that cannot be recorded does not fail the turn.
    async fn warn(&self, notices: &[String]) {
        for message in notices.iter().cloned() {
            let event = Event::Warning { message };
            let _ = self.sink.store(vec![event], Durability::Process).await;
        }
    }

    /// Plans a turn. `Err` is the event that ends a turn that cannot start.
    async fn plan(&mut self, start: &TurnStart, cancel: &CancellationToken) -> Result<PlannedTurn, Event> {
        let plan = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(canceled()),
            ready = self.env.plan(start) => ready.map_err(not_ready)?,
        };
        Ok(PlannedTurn {
            session: self.info.id.clone(),
            history: self.history.clone(),
            config: plan.config,
            ports: Ports {
                provider: plan.provider,
                compactor: plan.compactor,
                approver: plan.approver,
                outputs: plan.outputs,
                inbox: self.inbox(),
                clock: Arc::clone(&self.inner.clock),
                events: Arc::clone(&self.sink) as _,
                cancel: cancel.clone(),
                tasks: self.inner.strays.clone(),
            },
            sink: Arc::clone(&self.sink),
            notices: plan.notices,
        })
    }

    /// SES-13: drops the oldest exchanges of a conversation that exceeds its maximum length.
    async fn trim(&mut self, turn: &mut PlannedTurn) -> Result<(), LogError> {
        let most = turn.config.limits.max_conversation_messages;
        let Some(begin) = trim(&self.history, most) else {
            return Ok(());
        };
        let mut kept = self.history.split_off(begin);
        let before = estimate_tokens(&self.history) + estimate_tokens(&kept);
        // The dropped messages may include the description of the environment.
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
        turn.history = self.history.clone();
        let events = events.into_iter().flatten().collect();
        self.sink.store(events, Durability::Process).await
    }

    /// Records the end of an activity; if that fails, the session is closed. Returns true if it is recorded.
    async fn end(&mut self, events: Vec<Event>) -> bool {
        let stored = self.sink.store(events, self.handle.family.durability()).await;
        if let Err(error) = &stored {
            self.sink.tell_only(not_stored(error));
            // The state of the record is unknown; the next client opens the session again.
            self.stay = Stay::Closing;
        }
        stored.is_ok()
    }

    /// Records the end of an activity; the session is idle afterwards.
    async fn finish(&mut self, finished: Finished) {
        self.queue.put_back(&self.sink).await;
        match finished {
            Finished::Opening(warnings) => self.report(warnings).await,
            Finished::Turn(report) => self.turn_ended(report).await,
            Finished::UserCommand(command, result) => self.user_command_ended(*command, result).await,
            Finished::Summary(cancel, result) => self.summarized(&cancel, result).await,
            Finished::Checking(purpose, stop, seen) => self.checked(purpose, stop.is_cancelled(), seen).await,
        }
    }

    async fn turn_ended(&mut self, report: Result<TurnReport, JoinError>) {
        let mut events = Vec::new();
        let outcome = report.as_ref().ok().map(|report| report.outcome.clone());
        match report {
            Ok(report) if report.outcome.is_unrecorded() => {
                events = self.completed(&report.history).await;
                events.push(report.outcome.event());
            }
            Ok(report) => {
                self.history = report.history;
                // The user may have changed the goal while the turn ran.
                let facts = report
                    .facts
                    .into_iter()
                    .filter(|fact| !self.pursuit.goal.is_outdated(fact));
                events.extend(facts);
                events.iter().for_each(|fact| self.pursuit.apply(fact));
                events.push(report.outcome.event());
            }
            // A bug on our side. The record is authoritative, and is completed as after a crash.
            Err(error) => {
                events = self.completed(&[]).await;
                events.push(Event::Failed {
                    reason: FailureKind::Interrupted,
                    message: format!("the turn failed with an internal error: {error}"),
                    hint: None,
                    finish: FinishReason::Error,
                });
            }
        }
        self.end_turn(events).await;
        self.goal_turn_ended(outcome.as_ref()).await;
    }

    /// Completes the record of a turn, which lacks the last messages in `seen`, and reads the history from it.
    async fn completed(&mut self, seen: &[Arc<Message>]) -> Vec<Event> {
        let entries = self.inner.store.entries(&self.info.id, 0, usize::MAX).await;
        let Ok(entries) = entries else { return Vec::new() };
        let events = complete(&entries, seen, self.inner.clock.now());
        let mut history = History::read(&entries);
        events.iter().for_each(|event| history.apply(event));
        self.history = history.into_messages();
        events
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
        LogError::Locked(_) => "wait until the other process is done, then continue the session",
        _ => "free some space or repair the store, then continue the session",
    };
    Event::Failed {
        reason: FailureKind::Log,
        message: format!("the record could not be written: {error}"),
        hint: Some(hint.to_owned()),
        finish: FinishReason::Error,
    }
}
