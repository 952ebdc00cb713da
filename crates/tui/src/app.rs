//! What the terminal shows and does, without the terminal: keys and events in, pictures and effects out.
//!
//! Nothing here waits. What takes time runs as a job ([`jobs`]) and comes back as [`Done`]; what only the terminal can do is
//! an [`Effect`].

mod answers;
mod commands;
#[cfg(test)]
#[path = "app/fake_tests.rs"]
mod fake;
mod frame;
mod input;
mod jobs;
#[cfg(test)]
#[path = "app/stage_tests.rs"]
mod stage;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use windlass_api::{
    Backend, CommandInfo, Connections, Entry, Envelope, Event, Message, MessageId, SessionId, SessionInfo,
    Wait, Waiting,
};
use windlass_core::clock::Clock;
use windlass_core::compact::COMPACTING;

pub(crate) use self::frame::Frame;
pub(crate) use self::jobs::{Done, Jobs, Report};
use crate::composer::Composer;
use crate::desktop::Desktop;
use crate::keys::{Action, Keys};
use crate::menu::Menu;
use crate::overlay::Overlay;
use crate::request::PendingRequest;
use crate::status::Status;
use crate::theme::{Theme, Tone};
use crate::transcript::{Place, RenderOptions, Transcript};

/// After how long without news the reason is told.
const QUIET_MS: u64 = 10_000;

/// How long a word about a key stays after the last one.
const HINT_MS: u64 = 2_000;

/// Whoever the app talks to.
#[derive(Clone)]
pub(crate) struct Ports {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) connections: Arc<dyn Connections>,
    pub(crate) desktop: Arc<dyn Desktop>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What only the terminal, or the loop around the app, can do.
pub(crate) enum Effect {
    /// Listens to this session from this number on, and to no other.
    Listen { session: SessionId, after: u64 },
    /// Goes to the shell for a while.
    Suspend,
    /// Lets the person's editor have the terminal, for what is written.
    Edit(String),
    /// Puts a text into the clipboard.
    Copy(String),
    /// Draws everything again.
    Redraw,
    /// Calls the person's attention.
    Bell,
    /// Ends.
    Leave,
}

/// The session that is worked in.
pub(crate) struct SessionView {
    pub(crate) info: SessionInfo,
    /// The number of the last entry that was heard.
    pub(crate) seq: u64,
    pub(crate) is_busy: bool,
    subscription: Subscription,
    /// Since when a turn runs.
    since_ms: u64,
    /// When something was heard last.
    heard_ms: u64,
    /// What is going on, in the turn's own words.
    doing: String,
    /// What the turn waits for, once it has been waiting for long.
    waits: Vec<Wait>,
    asked_why_ms: u64,
    queue: Vec<Arc<Message>>,
    /// Said to the running turn, and not yet heard by it.
    steers: Vec<Arc<Message>>,
    status: Status,
}

/// Whether the events of a session come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subscription {
    /// Not yet: what it ended with is read first.
    Opening,
    Listening,
    /// Not any more, because nothing happened for a while.
    Left,
}

/// How it is shown.
pub(crate) struct Viewport {
    pub(crate) size: (u16, u16),
    pub(crate) theme: Theme,
    /// Whether the conversation has the whole screen.
    pub(crate) is_full: bool,
    /// Whether that is how it is shown when nothing is looked up.
    stays_full: bool,
    /// How many rows the end of the conversation is below the screen.
    scroll: usize,
    /// The row at the top while somebody looks back, and how many rows were below the screen when it was drawn.
    top: Option<(Place, usize)>,
    unfolded: bool,
    is_focused: bool,
    /// A word for whoever presses something twice.
    hint: Option<String>,
    older: Older,
}

/// What becomes of the entries before those that are kept.
#[derive(Debug, Default, PartialEq, Eq)]
enum Older {
    /// They are read when somebody looks that far back.
    #[default]
    Unread,
    BeingRead,
    /// They could not be read, and why; they are read again when somebody asks for them again.
    Failed(String),
}

/// When keys were pressed that mean something when pressed twice.
#[derive(Default)]
struct Presses {
    key_ms: u64,
    escape_ms: Option<u64>,
    cancel_ms: Option<u64>,
}

/// The app.
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

/// What was found out once and is used again.
#[derive(Default)]
struct Caches {
    commands: Vec<CommandInfo>,
    files: Option<Vec<String>>,
    is_reading_files: bool,
    /// The words that sessions were last looked for with.
    sought: String,
    /// The text for which no list is wanted.
    closed_menu: Option<String>,
    /// What was said, by its number, as it was listed last.
    said: HashMap<u64, String>,
}

/// Key bindings, and input that is not complete yet.
struct Input {
    keys: Keys,
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
    /// An app for a session.
    pub(crate) fn new(jobs: Jobs, info: SessionInfo, view: Viewport, keys: Keys, composer: Composer) -> Self {
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

    /// Asks for all that the first screens need, and listens.
    pub(crate) fn begin(&mut self, notices: &[String]) {
        for notice in notices {
            self.transcript.tell(Tone::Dim, notice);
        }
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

    /// Goes on in another session.
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
        self.begin(&[]);
    }

    /// Takes an event of the session.
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
                    self.attention();
                }
            }
            Event::ToolResult { call_id, .. } => self.answered(call_id),
            event if event.is_terminal() => {
                if matches!(event, Event::Canceled { .. }) && !self.session.queue.is_empty() {
                    // What a key says about itself comes first.
                    let stopped = || "stopped; what is queued waits for your next message".to_owned();
                    self.view.hint.get_or_insert_with(stopped);
                }
                self.turn_ended();
            }
            _ => {}
        }
        self.redraw.is_dirty = true;
    }

    /// Takes an entry of a session that is gone on with: what it still waits for counts, what it cost is counted already.
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
            event if event.is_terminal() => self.requests.clear(),
            _ => {}
        }
    }

    fn turn_ended(&mut self) {
        self.requests.clear();
        self.take_up_draft();
        self.forget_files();
        self.attention();
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

    /// Puts what is written aside, because what is written next is an answer.
    fn put_draft_aside(&mut self) {
        if self.composer.put_aside() {
            self.written();
        }
    }

    /// Takes up again what was put aside.
    fn take_up_draft(&mut self) {
        if self.composer.take_up() {
            self.written();
        }
    }

    /// Replaces what is written.
    fn set_text(&mut self, text: &str) {
        self.composer.set(text);
        self.written();
    }

    /// The files of the folder may be others now.
    fn forget_files(&mut self) {
        self.caches.files = None;
        self.caches.is_reading_files = false;
    }

    /// Calls a person who looks elsewhere.
    fn attention(&mut self) {
        if !self.view.is_focused {
            self.effect(Effect::Bell);
        }
    }

    /// The session was left, because nothing happened for a while. The next input opens it again.
    pub(crate) fn silence(&mut self) {
        self.session.is_busy = false;
        self.session.subscription = Subscription::Left;
        self.requests.clear();
        self.take_up_draft();
        self.transcript.close();
        self.redraw.is_dirty = true;
    }

    /// Shows the conversation in the terminal's own scrollback, whatever was on the screen.
    pub(crate) fn leave_full(&mut self) {
        self.overlay = None;
        self.set_full(false);
        self.transcript.close();
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// What is to be done outside.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether the screen has to be drawn.
    pub(crate) fn is_dirty(&self) -> bool {
        self.redraw.is_dirty
    }

    /// Something was done outside that can be seen.
    pub(crate) fn touch(&mut self) {
        self.redraw.is_dirty = true;
    }

    /// The screen is empty: as much of the conversation as fits is printed again.
    pub(crate) fn print_again(&mut self) {
        self.redraw.is_emptied = !self.view.is_full;
        self.redraw.is_dirty = true;
    }

    /// Says something beside the conversation.
    pub(crate) fn tell(&mut self, tone: Tone, text: &str) {
        self.transcript.tell(tone, text);
        self.redraw.is_dirty = true;
    }

    /// After how many milliseconds something changes by itself; `None` when nothing moves.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        let is_moving = self.session.is_busy || self.transcript.is_running();
        if is_moving {
            // Whoever looks elsewhere needs no animation.
            return Some(if self.view.is_focused { 120 } else { 1_000 });
        }
        self.view.hint.as_ref().map(|_| HINT_MS)
    }

    /// Time went on.
    pub(crate) fn tick(&mut self) {
        let now = self.now();
        self.redraw.spins = self.redraw.spins.wrapping_add(1);
        self.redraw.is_dirty = true;
        if now.saturating_sub(self.input.presses.key_ms) >= HINT_MS {
            self.view.hint = None;
        }
        if !self.session.is_busy {
            return;
        }
        // OBS-3: after a while without news, the reason; asked again now and then.
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
            is_unfoldable: self.input.keys.key(Action::Transcript) == "ctrl+o",
        }
    }

    /// The message that waits last.
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
            doing: String::new(),
            waits: Vec::new(),
            asked_why_ms: 0,
            queue: Vec::new(),
            steers: Vec::new(),
            status: Status::default(),
        }
    }

    fn hear(&mut self, envelope: &Envelope, now: u64) {
        self.seq = self.seq.max(envelope.seq);
        self.heard_ms = now;
        self.waits.clear();
        match &envelope.event {
            Event::Message { message } if message.role == windlass_api::Role::User => {
                self.steers.retain(|steer| steer.id != message.id);
                self.begin_turn(now);
            }
            Event::Start { .. } | Event::StepStart { .. } => {
                self.begin_turn(now);
                self.doing.clear();
            }
            Event::Status { text } => {
                // On demand it is no turn, and begins with nothing else.
                if text == COMPACTING {
                    self.begin_turn(now);
                }
                self.doing = crate::text::one_line(text);
            }
            Event::Waiting(Waiting::Queue { messages, steers }) => {
                self.queue.clone_from(messages);
                self.steers.clone_from(steers);
            }
            event if event.is_terminal() => {
                self.is_busy = false;
                self.doing.clear();
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
    /// A view of a terminal.
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
