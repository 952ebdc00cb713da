//! The event loop: handles one event at a time, and draws a frame after changes.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use crossterm::event::{Event as TermEvent, EventStream as Inputs};
use futures_util::StreamExt;
use ratatui::text::Line;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use windlass_api::{Backend, Begin, ClientError, Connections, Envelope, EventStream, SessionId, SessionInfo};
use windlass_core::clock::Clock;

use crate::app::{App, Done, Edited, Effect, Frame, Jobs, Ports, Report, Viewport, ascii_line};
use crate::composer::Composer;
use crate::desktop::Desktop;
use crate::keys::KeyBindings;
use crate::paint::Painter;
use crate::theme::{Theme, Tone};
use crate::tty::{self, Tty};

/// Minimum time between two frames: sixty per second.
const FRAME: Duration = Duration::from_millis(16);
/// Maximum number of session events handled before the keyboard is polled again.
const GULP: usize = 256;
/// Reports of mouse buttons and the wheel, in the unambiguous form.
const MOUSE_ON: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// Configuration and ports of the front end.
pub struct Start {
    /// Runs the sessions.
    pub backend: Arc<dyn Backend>,
    /// Sets up models.
    pub connections: Arc<dyn Connections>,
    /// Access to the user's machine.
    pub desktop: Arc<dyn Desktop>,
    /// Source of time.
    pub clock: Arc<dyn Clock>,
    /// Session to open first. It must have been started.
    pub session: SessionInfo,
    /// Notices for the user, one per line.
    pub notices: Vec<String>,
    /// Lines about things beside the sessions, such as scheduled jobs, as they happen.
    pub news: broadcast::Receiver<String>,
    /// Message history, oldest first.
    pub history: Vec<String>,
    /// Appearance.
    pub look: Looks,
}

/// Appearance and key bindings.
#[derive(Debug, Clone, Default)]
pub struct Looks {
    /// Colour theme.
    pub theme: Theme,
    /// True to start in full screen.
    pub full_screen: bool,
    /// True to edit with vim keys.
    pub vim: bool,
    /// Key bindings.
    pub keys: KeyBindings,
    /// True if the terminal rewraps lines when its width changes.
    pub reflows: bool,
    /// Surroundings of the conversation.
    pub surface: Surface,
}

/// Things that the terminal shows and reports beside the conversation.
#[derive(Debug, Clone, Default)]
pub struct Surface {
    /// The user's home folder, which is shown as `~`.
    pub home: Option<String>,
    /// True to set the terminal's title.
    pub titles: bool,
    /// True if the mouse wheel scrolls in full screen. Text is then selected with shift.
    pub mouse: bool,
    /// Way to reach a user who looks elsewhere.
    pub notifications: Notifications,
    /// True if the environment asks for no colours.
    pub no_color: bool,
}

/// Way to reach a user who looks elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notifications {
    /// Nothing.
    Off,
    /// The bell.
    #[default]
    Bell,
    /// The bell, and a notification of the desktop by OSC 9.
    Osc9,
    /// The bell, and a notification of the desktop by OSC 777.
    Osc777,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exited {
    /// Last session on screen.
    pub session: SessionId,
    /// Reason for the end.
    pub why: Why,
}

/// Reason the front end ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The user quit.
    Left,
    /// A signal requested the end.
    Signal,
    /// The terminal is gone.
    Gone,
}

/// Error that prevents the front end from starting.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// The terminal cannot be used.
    #[error("{0}")]
    Terminal(String),
}

/// Runs until the user quits. The terminal is always restored to its previous state.
///
/// # Errors
/// If there is no terminal, or it cannot be used.
pub async fn run(start: Start) -> Result<Exited, TuiError> {
    let failed = |error: tty::TtyError| TuiError::Terminal(error.to_string());
    tty::guard_panics();
    let tty = Tty::open().map_err(failed)?;
    let ports = Ports {
        backend: start.backend,
        connections: start.connections,
        desktop: start.desktop,
        clock: start.clock,
    };
    let (done, answers) = mpsc::unbounded_channel();
    let size = tty.size();
    let mut composer = Composer::new(start.history, start.look.vim);
    composer.set_placeholder("What should I do?  ·  / commands  @ files  ! shell  F1 keys");
    let mut app = App::new(
        Jobs::new(ports.clone(), done),
        start.session,
        Viewport::new(size, start.look.theme, start.look.full_screen),
        start.look.keys,
        composer,
    );
    app.view.surface = start.look.surface;
    let has_mouse = app.view.surface.mouse;
    // The first frame already shows the model and the mode.
    let overview = ports.backend.overview(&app.session.info.id).await;
    app.done(Done::Overview(overview.map(Box::new)));
    app.begin(&start.notices);
    let signals = Signals::new(tty.watch());
    let mut front = EventLoop {
        screen: Screen {
            painter: Painter::new(size, start.look.reflows),
            tty,
            is_full: false,
            is_ascii: start.look.theme.ascii,
            extra: Vec::new(),
            title: None,
            has_mouse,
        },
        app,
        ports,
        inputs: Some(Inputs::new()),
        answers,
        news: start.news,
        events: None,
        subscribing: None,
        signals,
    };
    let why = front.run().await;
    front.leave();
    Ok(Exited {
        session: front.app.session.info.id.clone(),
        why,
    })
}

/// Events of the loop.
enum LoopEvent {
    /// Something happened beside the session.
    News(String),
    Input(TermEvent),
    Event(Envelope),
    Done(Box<Report>),
    /// A subscription succeeded or failed.
    Subscribed(Result<Result<EventStream, ClientError>, JoinError>),
    /// The event stream of the session ended.
    Silence,
    /// The writer is free again.
    Written,
    /// A frame or an animation tick is due.
    Time,
    Signal(Why),
    /// The program was continued after being stopped from outside.
    Continued,
}

struct EventLoop {
    app: App,
    ports: Ports,
    screen: Screen,
    /// Absent while another program has the terminal.
    inputs: Option<Inputs>,
    answers: mpsc::UnboundedReceiver<Report>,
    news: broadcast::Receiver<String>,
    events: Option<EventStream>,
    /// Subscription in progress.
    subscribing: Option<JoinHandle<Result<EventStream, ClientError>>>,
    signals: Signals,
}

impl EventLoop {
    async fn run(&mut self) -> Why {
        let mut next_frame = Duration::ZERO;
        let mut next_tick = None;
        loop {
            if let Some(why) = self.effects().await {
                return why;
            }
            if self.screen.tty.is_gone() {
                return Why::Gone;
            }
            let now = self.ports.clock.elapsed();
            if self.app.is_dirty() && now >= next_frame && self.screen.tty.is_free() {
                let frame = self.app.frame();
                self.screen.entitle(self.app.title());
                self.screen.show(&frame, |rows| self.app.recent(rows));
                next_frame = now + FRAME;
                continue;
            }
            let tick = self.app.next_tick().map(Duration::from_millis);
            next_tick = tick.map(|tick| next_tick.map_or(now + tick, |next: Duration| next.min(now + tick)));
            let waits_for_writer = self.app.is_dirty() && !self.screen.tty.is_free();
            let frame_due = (self.app.is_dirty() && !waits_for_writer).then_some(next_frame);
            let due = frame_due.into_iter().chain(next_tick).min();
            let wait = due.map(|due| due.saturating_sub(now));
            match self.next(wait, waits_for_writer).await {
                LoopEvent::Input(input) => self.input(input),
                LoopEvent::Event(envelope) => self.hear(&envelope),
                LoopEvent::Done(report) => self.app.report(*report),
                LoopEvent::News(line) => self.app.tell(Tone::Dim, &line),
                LoopEvent::Subscribed(heard) => self.subscribed(heard),
                LoopEvent::Silence => {
                    self.events = None;
                    self.app.silence();
                }
                LoopEvent::Written => {}
                LoopEvent::Time => {
                    let now = self.ports.clock.elapsed();
                    if next_tick.is_some_and(|tick| now >= tick) {
                        next_tick = None;
                        self.app.tick();
                    }
                }
                LoopEvent::Signal(why) => return why,
                LoopEvent::Continued => {
                    // Another program may have changed everything in the meantime.
                    if self.screen.tty.take().is_err() {
                        return Why::Gone;
                    }
                    self.came_back();
                }
            }
        }
    }

    async fn next(&mut self, wait: Option<Duration>, waits_for_writer: bool) -> LoopEvent {
        let subscribed = async {
            match &mut self.subscribing {
                Some(subscribing) => subscribing.await,
                None => std::future::pending().await,
            }
        };
        let events = async {
            match &mut self.events {
                Some(events) => events.next().await,
                None => std::future::pending().await,
            }
        };
        let inputs = async {
            match &mut self.inputs {
                Some(inputs) => inputs.next().await,
                None => std::future::pending().await,
            }
        };
        let news = async {
            match self.news.recv().await {
                Ok(line) => line,
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    format!("{count} lines about scheduled jobs are left out")
                }
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        };
        let time = async {
            match wait {
                Some(wait) => self.ports.clock.sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            happened = self.signals.next() => happened,
            input = inputs => match input {
                Some(Ok(input)) => LoopEvent::Input(input),
                // The terminal is gone, or cannot be read any more.
                Some(Err(_)) | None => LoopEvent::Signal(Why::Gone),
            },
            done = self.answers.recv() => match done {
                Some(report) => LoopEvent::Done(Box::new(report)),
                None => std::future::pending().await,
            },
            news = news => LoopEvent::News(news),
            subscribed = subscribed => LoopEvent::Subscribed(subscribed),
            () = self.screen.tty.written(), if waits_for_writer => LoopEvent::Written,
            event = events => event.map_or(LoopEvent::Silence, LoopEvent::Event),
            () = time => LoopEvent::Time,
        }
    }

    fn input(&mut self, input: TermEvent) {
        match input {
            // The reported size may be outdated.
            TermEvent::Resize(..) => self.resize(),
            input => self.app.input(input),
        }
    }

    /// Applies the current terminal size.
    fn resize(&mut self) {
        let (columns, rows) = self.screen.tty.size();
        self.screen.painter.resize((columns, rows));
        self.app.input(TermEvent::Resize(columns, rows));
    }

    /// Recovers after another program used the terminal. Its content is unknown, and size changes are not
    /// reported to background processes.
    fn came_back(&mut self) {
        self.screen.painter.forget();
        self.screen.title = None;
        self.resize();
    }

    /// Handles an event and all further events that are ready.
    fn hear(&mut self, envelope: &Envelope) {
        use futures_util::FutureExt;
        self.app.hear(envelope);
        for _ in 0..GULP {
            let Some(events) = &mut self.events else { return };
            match events.next().now_or_never() {
                Some(Some(envelope)) => self.app.hear(&envelope),
                Some(None) => {
                    self.events = None;
                    return self.app.silence();
                }
                None => return,
            }
        }
    }

    /// Performs effects. Returns a reason if the loop must end.
    async fn effects(&mut self) -> Option<Why> {
        for effect in self.app.take_effects() {
            match effect {
                Effect::Leave => return Some(Why::Left),
                Effect::Listen { session, after } => self.listen(session, after),
                Effect::Redraw => {
                    self.screen.painter.forget();
                    self.screen.extra.extend(b"\x1b[H\x1b[2J");
                    self.app.print_again();
                }
                Effect::Notify(text) => {
                    let way = self.app.view.surface.notifications;
                    self.screen.extra.extend(notification(way, &text));
                }
                Effect::Copy(text) => {
                    let text = base64::engine::general_purpose::STANDARD.encode(text);
                    self.screen
                        .extra
                        .extend(format!("\x1b]52;c;{text}\x07").into_bytes());
                    self.app.touch();
                }
                Effect::Suspend => {
                    if let Err(error) = self.suspend().await {
                        self.app.tell(Tone::Bad, &error.to_string());
                    }
                }
                Effect::Edit { text, then } => {
                    if let Some(why) = self.edit(&text, &then).await {
                        return Some(why);
                    }
                }
            }
        }
        None
    }

    /// Subscribes to a session, replacing any other subscription. A closed session is resumed.
    fn listen(&mut self, session: SessionId, after: u64) {
        self.events = None;
        if let Some(other) = self.subscribing.take() {
            other.abort();
        }
        let backend = Arc::clone(&self.ports.backend);
        self.subscribing = Some(tokio::spawn(async move {
            backend.begin(Begin::Resume(session.clone())).await?;
            backend.subscribe(&session, after).await
        }));
    }

    fn subscribed(&mut self, heard: Result<Result<EventStream, ClientError>, JoinError>) {
        self.subscribing = None;
        let why = match heard {
            Ok(Ok(events)) => {
                self.events = Some(events);
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.app.tell(Tone::Bad, &why);
        self.app.silence();
    }

    async fn suspend(&mut self) -> Result<(), tty::TtyError> {
        self.screen.withdraw();
        let suspended = self.screen.tty.suspend().await;
        // The continue signal is expected here.
        self.signals.forget();
        self.came_back();
        suspended
    }

    /// Hands the terminal to the user's editor. Input and Ctrl+C belong to the editor meanwhile; only a
    /// terminating signal or a hangup interrupts it.
    async fn edit(&mut self, text: &str, then: &Edited) -> Option<Why> {
        self.screen.withdraw();
        // A new stream would wait for this one, which may be waiting for a key.
        self.inputs = None;
        self.screen.tty.release();
        let edited = {
            let mut editing = self.ports.desktop.edit(text);
            tokio::select! {
                edited = &mut editing => edited,
                why = self.signals.ended() => return Some(why),
            }
        };
        let taken = self.screen.tty.take();
        self.signals.forget();
        self.inputs = Some(Inputs::new());
        self.came_back();
        self.app.edited(then, text, edited);
        if let Err(error) = taken {
            self.app.tell(Tone::Bad, &error.to_string());
        }
        None
    }

    /// Leaves only the conversation on the screen.
    fn leave(&mut self) {
        if self.screen.tty.is_gone() {
            return;
        }
        self.app.leave_full();
        let frame = self.app.frame();
        self.screen.tty.drain();
        self.screen.show(&frame, |rows| self.app.recent(rows));
        self.screen.withdraw();
    }
}

/// The terminal and its known content.
struct Screen {
    tty: Tty,
    painter: Painter,
    is_full: bool,
    /// True if the terminal supports only ASCII.
    is_ascii: bool,
    /// Bytes to send with the next frame.
    extra: Vec<u8>,
    /// Title of the terminal.
    title: Option<String>,
    has_mouse: bool,
}

impl Screen {
    /// Shows a frame. The writer must be free. `past` returns the last lines in the scrollback.
    fn show(&mut self, frame: &Frame, past: impl FnOnce(usize) -> Vec<Line<'static>>) {
        let plain;
        let frame = if self.is_ascii {
            plain = frame.in_ascii();
            &plain
        } else {
            frame
        };
        let mut bytes = Vec::new();
        if frame.is_full != self.is_full {
            self.is_full = frame.is_full;
            if frame.is_full {
                self.tty.set_full(true);
                bytes.extend(self.painter.enter_full());
                if self.has_mouse {
                    bytes.extend(MOUSE_ON);
                }
            } else {
                if self.has_mouse {
                    bytes.extend(MOUSE_OFF);
                }
                bytes.extend(self.painter.leave_full());
            }
        }
        bytes.append(&mut self.extra);
        bytes.extend(if frame.is_full {
            self.painter.full(&frame.picture)
        } else {
            let is_ascii = self.is_ascii;
            let past = |rows: usize| match is_ascii {
                true => past(rows).iter().map(ascii_line).collect(),
                false => past(rows),
            };
            self.painter.inline(&frame.above, &frame.picture, past)
        });
        self.tty.write(bytes);
        if !frame.is_full {
            self.tty.set_full(false);
        }
    }

    /// Sets the title of the terminal with the next frame.
    fn entitle(&mut self, title: Option<String>) {
        if self.title != title {
            let text = title.as_deref().unwrap_or_default();
            self.extra.extend(format!("\x1b]2;{text}\x07").into_bytes());
            self.title = title;
        }
    }

    /// Removes the live area from the terminal.
    fn withdraw(&mut self) {
        self.tty.drain();
        let mut bytes = Vec::new();
        if self.is_full {
            self.is_full = false;
            if self.has_mouse {
                bytes.extend(MOUSE_OFF);
            }
            bytes.extend(self.painter.leave_full());
        }
        bytes.extend(self.painter.erase());
        self.tty.write(bytes);
        self.tty.drain();
        self.tty.set_full(false);
    }
}

/// Returns the bytes that notify the user.
fn notification(way: Notifications, text: &str) -> Vec<u8> {
    let text: String = crate::text::one_line(text).replace(';', ",");
    match way {
        Notifications::Off => Vec::new(),
        Notifications::Bell => vec![7],
        Notifications::Osc9 => format!("\x1b]9;{text}\x07\x07").into_bytes(),
        Notifications::Osc777 => format!("\x1b]777;notify;Windlass;{text}\x07\x07").into_bytes(),
    }
}

/// Relevant signals, and the loss of the terminal, which does not always come with a signal.
struct Signals {
    /// Terminating signals.
    signals: [Option<Signal>; 2],
    /// Interrupt and continue.
    passing: [Option<Signal>; 2],
    is_gone: Option<oneshot::Receiver<()>>,
}

impl Signals {
    fn new(is_gone: oneshot::Receiver<()>) -> Self {
        let mut signals = Self {
            signals: [SignalKind::terminate(), SignalKind::hangup()].map(|kind| signal(kind).ok()),
            passing: [None, None],
            is_gone: Some(is_gone),
        };
        signals.forget();
        signals
    }

    /// Drops signals that arrived while another program owned the terminal: an interrupt meant for it, and
    /// our own continue.
    fn forget(&mut self) {
        let go_on = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        self.passing = [SignalKind::interrupt(), go_on].map(|kind| signal(kind).ok());
    }

    /// Returns when the program must end.
    async fn ended(&mut self) -> Why {
        let [terminate, hangup] = &mut self.signals;
        tokio::select! {
            () = heard(terminate) => Why::Signal,
            () = heard(hangup) => Why::Gone,
            () = gone(&mut self.is_gone) => Why::Gone,
        }
    }

    async fn next(&mut self) -> LoopEvent {
        let [terminate, hangup] = &mut self.signals;
        let [interrupt, go_on] = &mut self.passing;
        tokio::select! {
            () = heard(terminate) => LoopEvent::Signal(Why::Signal),
            () = heard(hangup) => LoopEvent::Signal(Why::Gone),
            () = heard(interrupt) => LoopEvent::Signal(Why::Signal),
            () = heard(go_on) => LoopEvent::Continued,
            () = gone(&mut self.is_gone) => LoopEvent::Signal(Why::Gone),
        }
    }
}

/// Returns when the terminal is gone; never returns if nothing watches it.
async fn gone(is_gone: &mut Option<oneshot::Receiver<()>>) {
    let told = match is_gone {
        Some(receiver) => receiver.await,
        None => std::future::pending().await,
    };
    *is_gone = None;
    if told.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
