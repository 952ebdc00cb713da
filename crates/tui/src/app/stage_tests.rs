//! An app with a backend that says what it was asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use futures_util::stream;
use ratatui::text::Line;
use tokio::sync::{mpsc, oneshot};
use windlass_api::{
    Begin, CallId, Category, Changed, Checkpoint, Client, ClientError, CommandInfo, CommandReply,
    CommandSource, Commands, Connections, DeltaKind, Entry, Envelope, Event, EventStream, FileChange, Find,
    FinishReason, Follow, Label, Message, MessageId, Offer, Overview, Part, Presence, Records, Reply,
    SessionEvent, SessionId, SessionInfo, Standing, StepStatus, Submission, Timestamp, Wait, Waiting,
};
use windlass_core::clock::Clock;
use windlass_core::log::Totals;

use super::*;
use crate::desktop::Image;
use crate::text::width;

#[derive(Default)]
struct Seen {
    calls: Vec<String>,
    waits: Vec<Wait>,
    refuses: bool,
    /// What is recorded of the session at hand; without it the answers are always the same.
    record: Vec<Entry>,
    is_unreadable: bool,
    /// The next list of files comes when this does.
    files_after: Option<oneshot::Receiver<()>>,
    /// What `/mode` set.
    mode: Option<String>,
    now_ms: u64,
}

#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Seen>>);

impl Fake {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, call: String) {
        self.seen().calls.push(call);
    }
}

fn info(id: &str, title: &str, last_seq: u64) -> SessionInfo {
    SessionInfo {
        id: SessionId::from(id),
        parent: None,
        label: Label {
            title: Some(title.to_owned()),
            ..Label::default()
        },
        place: "/work".to_owned(),
        standing: Standing::Answered,
        model: None,
        totals: Totals::default(),
        summary: None,
        last_seq,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    }
}

fn nothing() -> EventStream {
    EventStream::new(stream::empty())
}

#[async_trait]
impl Client for Fake {
    async fn begin(&self, begin: Begin) -> Result<SessionInfo, ClientError> {
        Ok(match begin {
            Begin::Fork { of, .. } => {
                self.note(format!("fork {of}"));
                info("s-3", "write the docs", 0)
            }
            Begin::Resume(session) => {
                self.note(format!("resume {session}"));
                info(session.as_str(), "resumed", 0)
            }
            Begin::Instead { of, begin } => {
                self.note(format!("leave {of}"));
                return self.begin(*begin).await;
            }
            _ => info("new", "new", 0),
        })
    }

    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError> {
        if self.seen().refuses {
            return Err(ClientError::QueueFull(submission.session));
        }
        let mut text = format!("submit {:?}", submission.on_busy);
        for part in &submission.parts {
            match part {
                Part::Text(said) => text.push_str(&format!(" {}", said.text)),
                Part::Binary(binary) => text.push_str(&format!(" + {} {}", binary.path, binary.mime)),
                _ => {}
            }
        }
        self.note(text);
        Ok(nothing())
    }

    async fn cancel(&self, _: &SessionId) -> bool {
        self.note("cancel".to_owned());
        true
    }

    async fn reply(&self, _: &SessionId, call: &CallId, reply: Reply) -> bool {
        self.note(format!("reply {call} {reply:?}"));
        true
    }

    async fn subscribe(&self, _: &SessionId, _: u64) -> Result<EventStream, ClientError> {
        Ok(nothing())
    }

    async fn summarize(&self, _: &SessionId) -> Result<EventStream, ClientError> {
        Ok(nothing())
    }
}

#[async_trait]
impl Commands for Fake {
    async fn catalog(&self, _: &SessionId) -> Vec<CommandInfo> {
        let command = |name: &str, help: &str| CommandInfo {
            name: name.to_owned(),
            aliases: Vec::new(),
            arguments: String::new(),
            help: help.to_owned(),
            source: CommandSource::BuiltIn,
        };
        vec![
            command("help", "List the commands"),
            command("status", "Say how this session stands"),
            command("checkpoint", "See what turns did to files"),
            command("connect", "Set up a model"),
        ]
    }

    async fn complete(&self, _: &SessionId, _: &str) -> Vec<String> {
        Vec::new()
    }

    async fn command(&self, _: &SessionId, line: &str) -> Result<CommandReply, ClientError> {
        self.note(format!("command {line}"));
        if line == "/clear" {
            return Ok(CommandReply {
                text: String::new(),
                follow: Follow::Session(Box::new(info("cleared", "cleared", 0))),
            });
        }
        if let Some(mode) = line.strip_prefix("/mode ") {
            self.seen().mode = Some(mode.to_owned());
        }
        if line.starts_with("/nonsense") {
            return Err(ClientError::CommandUsage(
                "there is no command /nonsense".to_owned(),
            ));
        }
        Ok(CommandReply {
            text: format!("told: {line}"),
            follow: Follow::Nothing,
        })
    }
}

#[async_trait]
impl Records for Fake {
    async fn sessions(&self, find: &Find) -> Result<Vec<SessionInfo>, ClientError> {
        self.note(format!("sessions {}", find.words).trim_end().to_owned());
        Ok(vec![
            info("s-1", "fix the parser", 9),
            info("s-2", "write the docs", 9),
        ])
    }

    async fn tail(
        &self,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Entry>, ClientError> {
        if self.seen().is_unreadable {
            return Err(ClientError::CommandUsage("the disk is gone".to_owned()));
        }
        let record = self.seen().record.clone();
        if !record.is_empty() {
            self.note(format!("tail {before:?}"));
            let is_before = |entry: &Entry| before.is_none_or(|before| entry.seq < before);
            let mut found: Vec<_> = record.into_iter().filter(is_before).collect();
            found.drain(..found.len().saturating_sub(limit));
            return Ok(found);
        }
        Ok(match (session.as_str(), limit) {
            // What can be gone back to.
            ("current", 2_000) => vec![
                entry(1, user("first thing")),
                entry(2, user("left behind")),
                entry(3, Event::Session(SessionEvent::Rewind { to: 1 })),
            ],
            ("current", _) => vec![entry(40, user("said in current"))],
            ("waiting", _) => vec![
                entry(39, user("clean up")),
                entry(40, request("7", "rm -r build")),
            ],
            (session, _) => vec![entry(1, user(&format!("said in {session}")))],
        })
    }

    async fn checkpoints(&self, _: &SessionId) -> Result<Vec<Checkpoint>, ClientError> {
        Ok(vec![Checkpoint {
            number: 1,
            time: Timestamp(0),
            message: None,
            prompt: "make the parser faster".to_owned(),
            tools: vec!["edit_file".to_owned()],
            files: 1,
            undone: false,
        }])
    }

    async fn changes(&self, _: &SessionId, _: u64) -> Result<Vec<FileChange>, ClientError> {
        Ok(vec![FileChange {
            path: "parser.rs".to_owned(),
            what: Changed::Modified,
            diff: Some("@@ -1 +1 @@\n-slow\n+fast\n".to_owned()),
        }])
    }
}

#[async_trait]
impl Presence for Fake {
    async fn overview(&self, session: &SessionId) -> Result<Overview, ClientError> {
        self.note("overview".to_owned());
        Ok(Overview {
            info: info(session.as_str(), "a session", 1),
            provider: "sim".to_owned(),
            model: "sim-1".to_owned(),
            window: 100_000,
            mode: self.seen().mode.clone().unwrap_or_else(|| "default".to_owned()),
            is_busy: false,
            queue: Vec::new(),
            goal: None,
            subgoal: None,
        })
    }

    async fn why(&self, _: &SessionId) -> Vec<Wait> {
        self.seen().waits.clone()
    }

    async fn take_back(&self, session: &SessionId, message: &MessageId) -> Option<Arc<Message>> {
        self.note(format!("take_back {message}"));
        Some(Arc::new(Message::user(session, "taken back", Timestamp(0))))
    }
}

#[async_trait]
impl Connections for Fake {
    fn offers(&self) -> Vec<Offer> {
        vec![Offer {
            name: "anthropic".to_owned(),
            model: "claude".to_owned(),
            needs_key: true,
            is_ready: false,
            hint: "Get one in the console.".to_owned(),
        }]
    }

    async fn connect(&self, provider: &str, key: &str) -> Result<String, ClientError> {
        self.note(format!("connect {provider} {key}"));
        Ok(format!("{provider} answers."))
    }
}

#[async_trait]
impl Desktop for Fake {
    async fn files(&self, place: &str) -> Vec<String> {
        let release = self.seen().files_after.take();
        if let Some(release) = release {
            let _ = release.await;
            return vec![format!("{place}/late.rs")];
        }
        vec!["README.md".to_owned(), "src/main.rs".to_owned()]
    }

    async fn image(&self, path: &str) -> Option<Image> {
        if path.starts_with("/hung/") {
            std::future::pending::<()>().await;
        }
        let name = path.rsplit('/').next()?.to_owned();
        Some(picture(&name))
    }

    async fn clipboard_image(&self) -> Result<Image, String> {
        Ok(picture("clipboard"))
    }

    async fn edit(&self, text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn remember(&self, _: &str) {}

    fn choose(&self, _: &str, _: &str) {}
}

#[async_trait]
impl Clock for Fake {
    fn now(&self) -> Timestamp {
        Timestamp(self.seen().now_ms)
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.seen().now_ms)
    }

    async fn sleep(&self, _: Duration) {}
}

fn picture(name: &str) -> Image {
    Image {
        name: name.to_owned(),
        media_type: "image/png".to_owned(),
        data: Arc::from([1, 2, 3].as_slice()),
    }
}

/// An app and everything around it.
pub(crate) struct Stage {
    app: App,
    fake: Fake,
    answers: mpsc::UnboundedReceiver<Report>,
    printed: String,
    effects: Vec<Effect>,
    seq: u64,
}

impl Stage {
    pub(crate) async fn new(columns: u16, rows: u16) -> Self {
        Self::of(columns, rows, info("current", "a session", 0)).await
    }

    pub(crate) async fn resumed(columns: u16, rows: u16) -> Self {
        Self::of(columns, rows, info("current", "a session", 40)).await
    }

    /// A session whose turn still runs and asks something.
    pub(crate) async fn waiting(columns: u16, rows: u16) -> Self {
        Self::of(columns, rows, info("waiting", "a session", 40)).await
    }

    /// One whose keys are others.
    pub(crate) async fn bound(columns: u16, rows: u16, changes: &[(&str, &str)]) -> Self {
        let mut stage = Self::new(columns, rows).await;
        stage.app.rest.keys = Keys::with(changes.iter().copied()).unwrap();
        stage
    }

    /// What a job says.
    pub(crate) fn done(&mut self, done: Done) {
        self.app.done(done);
    }

    /// Nothing is heard of the session any more.
    pub(crate) fn silence(&mut self) {
        self.app.silence();
    }

    /// Whoever looks has seen what is on the screen.
    pub(crate) fn look(&mut self) -> String {
        let screen = self.screen();
        self.pass(2_000);
        screen
    }

    /// What a job says about another session.
    pub(crate) fn late(&mut self, done: Done) {
        self.app.report(Report {
            of: Some(SessionId::from("another")),
            done,
        });
    }

    /// A session of which nothing was read yet.
    pub(crate) fn opening(columns: u16, rows: u16) -> Self {
        Self::begun(columns, rows, info("current", "a session", 40))
    }

    async fn of(columns: u16, rows: u16, info: SessionInfo) -> Self {
        let mut stage = Self::begun(columns, rows, info);
        stage.settle().await;
        stage.calls();
        stage
    }

    fn begun(columns: u16, rows: u16, info: SessionInfo) -> Self {
        let fake = Fake::default();
        fake.seen().now_ms = 100_000;
        let ports = Ports {
            backend: Arc::new(fake.clone()),
            connections: Arc::new(fake.clone()),
            desktop: Arc::new(fake.clone()),
            clock: Arc::new(fake.clone()),
        };
        let (done, answers) = mpsc::unbounded_channel();
        let theme = Theme {
            palette: crate::theme::Palette::None,
            ascii: false,
        };
        let mut stage = Self {
            app: App::new(
                ports.clone(),
                Jobs::new(ports, done),
                info,
                View::new((columns, rows), theme, false),
                Keys::default(),
                Composer::new(Vec::new(), false),
            ),
            fake,
            answers,
            printed: String::new(),
            effects: Vec::new(),
            seq: 0,
        };
        stage.app.jobs.overview(&stage.app.talk.info.id);
        stage.app.begin(&[]);
        stage
    }

    /// Lets all jobs come to their end.
    pub(crate) async fn settle(&mut self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
            while let Ok(report) = self.answers.try_recv() {
                self.app.report(report);
            }
            self.effects.extend(self.app.take_effects());
        }
    }

    pub(crate) async fn keys(&mut self, keys: &str) {
        for key in parse(keys) {
            self.fake.seen().now_ms += 1;
            self.app.input(Input::Key(key));
            self.settle().await;
        }
    }

    pub(crate) async fn paste(&mut self, text: &str) {
        self.app.input(Input::Paste(text.to_owned()));
        self.settle().await;
    }

    pub(crate) async fn hear(&mut self, event: Event) {
        self.seq += u64::from(!event.is_live());
        let envelope = Envelope {
            v: 1,
            session: self.app.talk.info.id.clone(),
            seq: self.seq,
            event,
        };
        self.app.hear(&envelope);
        self.settle().await;
    }

    /// Has something be said that is recorded, and lets it go into the scrollback.
    pub(crate) async fn record(&mut self, event: Event) {
        self.fake.seen().record.push(entry(self.seq + 1, event.clone()));
        self.hear(event).await;
        self.screen();
    }

    /// Lets the next list of files come only when this is used.
    pub(crate) fn hold_files(&mut self) -> oneshot::Sender<()> {
        let (release, released) = oneshot::channel();
        self.fake.seen().files_after = Some(released);
        release
    }

    pub(crate) fn set_unreadable(&mut self, is_unreadable: bool) {
        self.fake.seen().is_unreadable = is_unreadable;
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.fake.seen().now_ms += ms;
    }

    pub(crate) async fn tick(&mut self) {
        self.app.tick();
        self.settle().await;
    }

    pub(crate) fn waits(&mut self, waits: Vec<Wait>) {
        self.fake.seen().waits = waits;
    }

    pub(crate) fn refuse(&mut self) {
        self.fake.seen().refuses = true;
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.app.input(Input::Resize(columns, rows));
    }

    pub(crate) fn edited(&mut self, text: Result<String, String>) {
        let asked = self
            .effects
            .drain(..)
            .any(|effect| matches!(effect, Effect::Edit(_)));
        assert!(asked, "no editor was asked for");
        self.app.edited(text);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.app.is_dirty()
    }

    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.app.next_tick()
    }

    /// The picture as text.
    pub(crate) fn screen(&mut self) -> String {
        let frame = self.app.frame();
        self.printed.push_str(&text(&frame.above));
        self.printed.push('\n');
        text(&frame.picture.rows)
    }

    /// Everything that went into the scrollback.
    pub(crate) fn printed(&mut self) -> String {
        self.screen();
        self.printed.clone()
    }

    pub(crate) fn check_fits(&mut self) {
        let (columns, rows) = self.app.view.size;
        let frame = self.app.frame();
        for line in frame.above.iter().chain(&frame.picture.rows) {
            let text = line.to_string();
            // A letter of two columns is as wide as it is.
            let most = usize::from(columns).max(2);
            assert!(width(&text) <= most, "{columns}×{rows}: {text:?}");
        }
        if frame.is_full {
            assert!(frame.picture.rows.len() <= usize::from(rows), "{columns}×{rows}");
        }
    }

    /// What the backend was asked since the last look.
    pub(crate) fn calls(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fake.seen().calls)
    }

    pub(crate) fn has_left(&self) -> bool {
        self.effects.iter().any(|effect| matches!(effect, Effect::Leave))
    }

    pub(crate) fn copied(&self) -> Option<String> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Copy(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// After which numbers it was listened to, one after the other.
    pub(crate) fn listens(&self) -> Vec<u64> {
        let after = |effect: &Effect| match effect {
            Effect::Listen { after, .. } => Some(*after),
            _ => None,
        };
        self.effects.iter().filter_map(after).collect()
    }
}

fn text(lines: &[Line<'_>]) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|line| line.to_string().trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// `abc<C-r><S-Tab><Enter>` as keys.
fn parse(keys: &str) -> Vec<KeyEvent> {
    let mut found = Vec::new();
    let mut rest = keys;
    while let Some(letter) = rest.chars().next() {
        if letter == '<'
            && let Some((name, after)) = rest.trim_start_matches('<').split_once('>')
        {
            found.push(named(name));
            rest = after;
            continue;
        }
        found.push(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
        rest = rest.strip_prefix(letter).unwrap_or_default();
    }
    found
}

fn named(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.split_once('-') {
        Some(("C", name)) => (KeyModifiers::CONTROL, name),
        Some(("A", name)) => (KeyModifiers::ALT, name),
        Some(("S", name)) => (KeyModifiers::SHIFT, name),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Tab" if modifiers == KeyModifiers::SHIFT => KeyCode::BackTab,
        "Tab" => KeyCode::Tab,
        "Esc" => KeyCode::Esc,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "PageUp" => KeyCode::PageUp,
        "PageDown" => KeyCode::PageDown,
        "End" => KeyCode::End,
        "F1" => KeyCode::F(1),
        letter => KeyCode::Char(letter.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}

pub(crate) fn user(text: &str) -> Event {
    Event::Message {
        message: Arc::new(Message::user(&SessionId::from("current"), text, Timestamp(0))),
    }
}

pub(crate) fn delta(text: &str) -> Event {
    Event::Delta {
        kind: DeltaKind::Text,
        text: text.to_owned(),
    }
}

pub(crate) fn final_answer(text: &str) -> Event {
    Event::Final {
        content: text.to_owned(),
        finish: FinishReason::EndTurn,
    }
}

pub(crate) fn request(call: &str, command: &str) -> Event {
    Event::Waiting(Waiting::PermissionRequest {
        call_id: CallId::from(call),
        tool: "bash".to_owned(),
        category: Category::Admin,
        subjects: vec![command.to_owned()],
        reasons: vec!["it destroys".to_owned()],
        preview: Some(command.to_owned()),
    })
}

pub(crate) fn entry(seq: u64, event: Event) -> Entry {
    Entry {
        seq,
        time: Timestamp(0),
        event,
    }
}

pub(crate) fn question(call: &str) -> Event {
    Event::Waiting(Waiting::Question {
        call_id: CallId::from(call),
        text: "Which colour?".to_owned(),
        options: vec!["red".to_owned()],
    })
}

pub(crate) fn queue(texts: &[&str]) -> (Event, MessageId) {
    let session = SessionId::from("current");
    let messages: Vec<_> = texts
        .iter()
        .map(|text| Arc::new(Message::user(&session, *text, Timestamp(0))))
        .collect();
    let last = messages.last().unwrap().id.clone();
    let steers = Vec::new();
    (Event::Waiting(Waiting::Queue { messages, steers }), last)
}

pub(crate) fn call(
    id: &str,
    title: &str,
    content: &str,
    status: StepStatus,
    details: Option<serde_json::Value>,
) -> Vec<Event> {
    let call_id = CallId::from(id);
    vec![
        Event::StepStart {
            call_id: call_id.clone(),
            title: title.to_owned(),
            number: 1,
        },
        Event::ToolResult {
            call_id: call_id.clone(),
            name: "bash".to_owned(),
            content: content.to_owned(),
            is_error: status == StepStatus::Error,
            details,
        },
        Event::StepComplete {
            call_id,
            status,
            duration_ms: 10,
        },
    ]
}
