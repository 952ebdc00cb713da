//! Application state without a terminal: takes keys and events, produces frames and effects.
//!
//! Nothing here blocks. Slow work runs as a job ([`jobs`]) and reports back as [`Done`]; anything only the
//! terminal can do is returned as an [`Effect`].

mod answers;
pub(crate) mod commands;
#[cfg(test)]
#[path = "app/fake_tests.rs"]
mod fake;
mod find;
mod frame;
mod input;
mod jobs;
mod mentions;
#[cfg(test)]
#[path = "app/stage_tests.rs"]
mod stage;
mod surface;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use windlass_api::{
    Backend, CommandInfo, Connections, Entry, Envelope, Event, Message, MessageId, SessionEvent, SessionId,
    SessionInfo, Wait, Waiting,
};
use windlass_core::clock::Clock;

use self::find::Find;
pub(crate) use self::frame::{Frame, ascii_line};
pub(crate) use self::jobs::{Done, Jobs, Report};
use crate::composer::Composer;
use crate::desktop::Desktop;
use crate::keys::{KeyAction, KeyBindings};
use crate::menu::Menu;
use crate::overlay::Overlay;
use crate::progress::Progress;
use crate::request::PendingRequest;
use crate::run::Surface;
use crate::status::Status;
use crate::theme::{Theme, Tone};
use crate::transcript::{Place, RenderOptions, Transcript};

/// Time without events after which the UI asks why the turn is waiting.
const QUIET_MS: u64 = 10_000;

/// Time a hint stays visible after the last key press.
const HINT_MS: u64 = 2_000;

/// Ports the app depends on.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) connections: Arc<dyn Connections>,
    pub(crate) desktop: Arc<dyn Desktop>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Side effects that only the terminal or the event loop can perform.
pub(crate) enum Effect {
    /// Subscribes to this session after the given sequence number and drops any other subscription.
    Listen { session: SessionId, after: u64 },
    /// Suspends the program and returns to the shell.
    Suspend,
    /// Opens a text in the user's editor, which takes over the terminal.
    Edit { text: String, then: Edited },
    /// Copies text to the clipboard.
    Copy(String),
    /// Redraws the whole screen.
    Redraw,
    /// Tells a user who looks elsewhere that something happened.
    Notify(String),
    /// Quits.
    Leave,
}

/// Use of a text from the user's editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edited {
    /// It replaces the draft.
    Draft,
    /// This command takes it.
    Command(String),
}

/// The session on screen, as far as the UI knows it.
pub(crate) struct SessionView {
    pub(crate) info: SessionInfo,
    /// Sequence number of the last entry received.
    pub(crate) seq: u64,
    pub(crate) is_busy: bool,
    subscription: Subscription,
    /// Time the current turn started.
    since_ms: u64,
    /// Time of the last event.
    heard_ms: u64,
    /// Reasons the turn is waiting; filled in after a long wait.
    waits: Vec<Wait>,
    asked_why_ms: u64,
    queue: Vec<Arc<Message>>,
    /// Messages sent to the running turn that the model has not received yet.
    steers: Vec<Arc<Message>>,
    progress: Progress,
    status: Status,
}

/// State of the session's event subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subscription {
    /// Not subscribed yet: the last entries of the session are read first.
    Opening,
    Listening,
    /// The backend closed the idle session.
    Left,
}

/// Display state: size, theme, scrolling and hints.
pub(crate) struct Viewport {
    pub(crate) size: (u16, u16),
    pub(crate) theme: Theme,
    /// True if the conversation uses the full screen.
    pub(crate) is_full: bool,
    /// True if full screen is the normal mode, not only a temporary transcript view.
    stays_full: bool,
    /// Number of rows of the conversation below the visible area.
    scroll: usize,
    /// Top row while the user scrolls back, and the number of rows below the screen when it was drawn.
    top: Option<(Place, usize)>,
    unfolded: bool,
    is_focused: bool,
    /// Short-lived message in the status line, such as "press again to quit".
    hint: Option<String>,
    older: Older,
    pub(crate) surface: Surface,
    /// Search in the conversation.
    find: Option<Find>,
}

/// State of the entries that precede the ones in memory.
#[derive(Debug, Default, PartialEq, Eq)]
enum Older {
    /// Read once the user scrolls back that far.
    #[default]
    Unread,
    BeingRead,
    /// Reading failed with this error; retried when the user scrolls up again.
    Failed(String),
}

/// Times of key presses that have a meaning when repeated.
#[derive(Default)]
struct Presses {
    key_ms: u64,
    escape_ms: Option<u64>,
    cancel_ms: Option<u64>,
    leave_ms: Option<u64>,
}

/// State of the terminal UI.
pub(crate) struct App {
    pub(crate) session: SessionView,
    pub(crate) view: Viewport,
    jobs: Jobs,
    transcript: Transcript,
    composer: Composer,
    menu: Option<Menu>,
    overlay: Option<Box<dyn Overlay>>,
    requests: VecDeque<PendingRequest>,
    caches: Caches,
    input: Input,
    redraw: Redraw,
    effects: Vec<Effect>,
}

/// Data fetched once and reused.
#[derive(Default)]
struct Caches {
    commands: Vec<CommandInfo>,
    files: Option<Vec<String>>,
    is_reading_files: bool,
    /// The typed path that was listed last, outside the folder of the session, and its entries.
    outside: Option<(String, Vec<String>)>,
    /// Query of the most recent session search.
    sought: String,
    /// Draft for which the user dismissed the completion menu.
    closed_menu: Option<String>,
    /// Texts of the user's messages by sequence number, from the most recent list.
    said: HashMap<u64, String>,
    /// Sessions and numbers of the agents in the most recent list.
    agents: Vec<(String, u32)>,
    /// True if the list of agents is on the screen.
    shows_agents: bool,
}

/// Key bindings, and input that is not complete yet.
struct Input {
    keys: KeyBindings,
    presses: Presses,
    /// Number of dropped images that are still being read.
    dropped: usize,
}

/// Changes since the last frame.
struct Redraw {
    is_dirty: bool,
    /// True if the screen was cleared.
    is_emptied: bool,
    /// Number of animation ticks so far.
    spins: usize,
}

impl App {
    /// Creates the app for a session.
    pub(crate) fn new(
        jobs: Jobs,
        info: SessionInfo,
        view: Viewport,
        keys: KeyBindings,
        composer: Composer,
    ) -> Self {
        let now = millis(&jobs.ports);
        Self {
            session: SessionView::new(info, now),
            view,
            jobs,
            transcript: Transcript::default(),
            composer,
            menu: None,
            overlay: None,
            requests: VecDeque::new(),
            caches: Caches::default(),
            input: Input {
                keys,
                presses: Presses::default(),
                dropped: 0,
            },
            redraw: Redraw {
                is_dirty: true,
                is_emptied: false,
                spins: 0,
            },
            effects: Vec::new(),
        }
    }

    /// Requests the data for the first frame and subscribes to the session.
    pub(crate) fn begin(&mut self, notices: &[String]) {
        self.show_header();
        for notice in notices {
            self.transcript.tell(Tone::Dim, notice);
        }
        self.open_session();
    }

    fn open_session(&mut self) {
        let info = self.session.info.clone();
        self.jobs.catalog(&info.id);
        if info.last_seq > 0 {
            self.jobs.opening(&info.id);
        } else {
            self.listen();
        }
    }

    fn listen(&mut self) {
        self.session.subscription = Subscription::Listening;
        let after = self.session.seq;
        let session = self.session.info.id.clone();
        self.effect(Effect::Listen { session, after });
    }

    /// Switches to another session.
    fn go_to(&mut self, info: SessionInfo) {
        let title = info
            .label
            .title
            .clone()
            .unwrap_or_else(|| "a new session".to_owned());
        self.requests.clear();
        self.take_up_draft();
        self.session = SessionView::new(info, self.now());
        self.transcript = Transcript::default();
        self.view.older = Older::default();
        self.view.scroll = 0;
        self.view.top = None;
        self.forget_files();
        self.caches.said.clear();
        self.transcript.tell(Tone::Dim, &format!("── {title} ──"));
        self.jobs.overview(&self.session.info.id);
        self.open_session();
    }

    /// Applies an event of the session.
    pub(crate) fn hear(&mut self, envelope: &Envelope) {
        if envelope.session != self.session.info.id {
            return;
        }
        let now = self.now();
        let event = &envelope.event;
        self.session.hear(envelope, now);
        self.session.status.hear(event, now);
        self.transcript.hear(envelope.seq, event, now);
        match event {
            Event::Waiting(Waiting::PermissionAnswer { call_id, .. }) => self.answered(call_id),
            Event::Waiting(waiting) => {
                if let Some(request) = PendingRequest::of(waiting) {
                    self.requests.push_back(request);
                    self.attention("waiting for your answer");
                }
            }
            Event::ToolResult { call_id, .. } => self.answered(call_id),
            // The next server asks again.
            Event::Session(SessionEvent::Moved { .. }) => self.requests.clear(),
            Event::Session(SessionEvent::Agent(_)) if self.overlay.is_some() && self.caches.shows_agents => {
                self.jobs.agents(&self.session.info.id);
            }
            event if event.is_terminal() => {
                if matches!(event, Event::Canceled { .. }) && !self.session.queue.is_empty() {
                    // A hint set by the key itself takes precedence.
                    let stopped = || "stopped; queued messages wait for your next message".to_owned();
                    self.view.hint.get_or_insert_with(stopped);
                }
                self.turn_ended();
            }
            _ => {}
        }
        self.redraw.is_dirty = true;
    }

    /// Applies an entry of a resumed session. Open requests still count; costs are already included in the
    /// totals.
    fn recall(&mut self, entry: &Entry) {
        let now = self.now();
        let envelope = Envelope {
            v: windlass_api::EVENT_VERSION,
            session: self.session.info.id.clone(),
            seq: entry.seq,
            event: entry.event.clone(),
        };
        self.session.hear(&envelope, now);
        self.transcript.hear(entry.seq, &entry.event, entry.time.0);
        match &entry.event {
            Event::Waiting(Waiting::PermissionAnswer { call_id, .. }) | Event::ToolResult { call_id, .. } => {
                self.answered(call_id);
            }
            Event::Waiting(waiting) => self.requests.extend(PendingRequest::of(waiting)),
            event if event.is_terminal() || matches!(event, Event::Session(SessionEvent::Moved { .. })) => {
                self.requests.clear();
            }
            _ => {}
        }
    }

    fn turn_ended(&mut self) {
        // Agents in the background still wait for their answers.
        self.requests.retain(PendingRequest::is_of_agent);
        self.take_up_draft();
        self.forget_files();
        self.input.presses.leave_ms = None;
        self.attention("the turn has ended");
        self.jobs.overview(&self.session.info.id);
    }

    fn answered(&mut self, call: &windlass_api::CallId) {
        let is_front = self
            .requests
            .front()
            .is_some_and(|request| request.call() == call);
        self.requests.retain(|request| request.call() != call);
        if is_front {
            self.take_up_draft();
        }
    }

    /// Sets the draft aside, because the text typed next is an answer.
    fn put_draft_aside(&mut self) {
        if self.composer.put_aside() {
            self.written();
        }
    }

    /// Restores the draft that was set aside.
    fn take_up_draft(&mut self) {
        if self.composer.take_up() {
            self.written();
        }
    }

    /// Replaces the draft.
    fn set_text(&mut self, text: &str) {
        self.composer.set(text);
        self.written();
    }

    /// Drops the cached file list, which may be out of date.
    fn forget_files(&mut self) {
        self.caches.files = None;
        self.caches.is_reading_files = false;
    }

    /// Handles the end of the event stream of an idle session. The next input resumes it.
    pub(crate) fn silence(&mut self) {
        self.session.is_busy = false;
        self.session.subscription = Subscription::Left;
        self.requests.clear();
        self.take_up_draft();
        self.transcript.close();
        self.redraw.is_dirty = true;
    }

    /// Returns to the terminal's own scrollback from any screen.
    pub(crate) fn leave_full(&mut self) {
        self.overlay = None;
        self.set_full(false);
        self.transcript.close();
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Takes the pending effects.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// True if the screen must be redrawn.
    pub(crate) fn is_dirty(&self) -> bool {
        self.redraw.is_dirty
    }

    /// Requests a redraw after a visible change outside the app.
    pub(crate) fn touch(&mut self) {
        self.redraw.is_dirty = true;
    }

    /// Prints as much of the conversation as fits, after the screen was cleared.
    pub(crate) fn print_again(&mut self) {
        self.redraw.is_emptied = !self.view.is_full;
        self.redraw.is_dirty = true;
    }

    /// Prints a message that is not part of the conversation.
    pub(crate) fn tell(&mut self, tone: Tone, text: &str) {
        self.transcript.tell(tone, text);
        self.redraw.is_dirty = true;
    }

    /// Milliseconds until the next animation frame or timeout; `None` if nothing changes on its own.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.next_change().into_iter().chain(self.answer_due()).min()
    }

    fn next_change(&self) -> Option<u64> {
        let is_moving = self.session.is_busy || self.transcript.is_running();
        if is_moving {
            // An unfocused terminal needs no animation.
            return Some(if self.view.is_focused { 120 } else { 1_000 });
        }
        self.view.hint.as_ref().map(|_| HINT_MS)
    }

    /// Advances the animation and expires hints.
    pub(crate) fn tick(&mut self) {
        let now = self.now();
        self.redraw.spins = self.redraw.spins.wrapping_add(1);
        self.redraw.is_dirty = true;
        self.take_due_answer();
        if now.saturating_sub(self.input.presses.key_ms) >= HINT_MS {
            self.view.hint = None;
        }
        if !self.session.is_busy {
            return;
        }
        // OBS-3: after a while without events, asks for the reason, and repeats the question at intervals.
        let is_quiet = now.saturating_sub(self.session.heard_ms) >= QUIET_MS;
        if is_quiet && now.saturating_sub(self.session.asked_why_ms) >= 1_000 {
            self.session.asked_why_ms = now;
            self.jobs.why(&self.session.info.id);
        }
    }

    fn now(&self) -> u64 {
        millis(&self.jobs.ports)
    }

    fn render_options(&self) -> RenderOptions {
        RenderOptions {
            columns: usize::from(self.view.size.0).max(1),
            theme: self.view.theme,
            unfolded: self.view.unfolded,
            is_unfoldable: self.input.keys.key(KeyAction::Transcript) == "ctrl+o",
        }
    }

    /// Id of the last queued message.
    fn last_queued(&self) -> Option<MessageId> {
        self.session.queue.last().map(|message| message.id.clone())
    }
}

fn millis(ports: &Ports) -> u64 {
    u64::try_from(ports.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl SessionView {
    fn new(info: SessionInfo, now: u64) -> Self {
        Self {
            seq: info.last_seq,
            info,
            is_busy: false,
            subscription: Subscription::Opening,
            since_ms: now,
            heard_ms: now,
            waits: Vec::new(),
            asked_why_ms: 0,
            queue: Vec::new(),
            steers: Vec::new(),
            progress: Progress::default(),
            status: Status::default(),
        }
    }

    fn hear(&mut self, envelope: &Envelope, now: u64) {
        self.seq = self.seq.max(envelope.seq);
        self.heard_ms = now;
        self.progress.hear(&envelope.event, now);
        self.waits.clear();
        match &envelope.event {
            Event::Message { message } if message.role == windlass_api::Role::User => {
                self.steers.retain(|steer| steer.id != message.id);
                self.begin_turn(now);
            }
            Event::Start { .. } | Event::StepStart { .. } => {
                self.begin_turn(now);
                self.progress.doing.clear();
            }
            // A compaction on demand is not a turn and announces itself only with this event.
            Event::Session(windlass_api::SessionEvent::Compacting { .. }) => {
                self.begin_turn(now);
                "Compacting context…".clone_into(&mut self.progress.doing);
            }
            Event::Status { text } => {
                self.progress.doing = crate::text::one_line(text);
            }
            Event::Waiting(Waiting::Queue { messages, steers }) => {
                self.queue.clone_from(messages);
                self.steers.clone_from(steers);
            }
            event if event.is_terminal() => {
                self.is_busy = false;
                self.progress.doing.clear();
                self.steers.clear();
            }
            _ => {}
        }
    }

    fn begin_turn(&mut self, now: u64) {
        if !self.is_busy {
            self.is_busy = true;
            self.since_ms = now;
        }
    }
}

impl Viewport {
    /// Creates a viewport for a terminal of the given size.
    pub(crate) fn new(size: (u16, u16), theme: Theme, is_full: bool) -> Self {
        Self {
            size,
            theme,
            is_full,
            stays_full: is_full,
            scroll: 0,
            top: None,
            unfolded: false,
            is_focused: true,
            hint: None,
            older: Older::default(),
            surface: Surface::default(),
            find: None,
        }
    }
}

#[cfg(test)]
#[path = "app/commands_tests.rs"]
mod commands_tests;
#[cfg(test)]
#[path = "app/heard_tests.rs"]
mod heard_tests;
#[cfg(test)]
#[path = "app/looking_tests.rs"]
mod looking_tests;
#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "app/writing_tests.rs"]
mod writing_tests;
