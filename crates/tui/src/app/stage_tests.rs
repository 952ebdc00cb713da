//! Test harness: an app with a fake backend.

use std::sync::Arc;

use crossterm::event::{Event as TermEvent, KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;
use tokio::sync::{mpsc, oneshot};
use windlass_api::{
    CallId, Category, DeltaKind, Entry, Envelope, Event, FinishReason, Message, MessageId, SessionId,
    SessionInfo, StepStatus, Timestamp, Wait, Waiting,
};

use super::fake::{Fake, info};
use super::*;
use crate::text::width;

/// An app and its surroundings.
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

    /// A session whose turn is running and waits for an answer.
    pub(crate) async fn waiting(columns: u16, rows: u16) -> Self {
        Self::of(columns, rows, info("waiting", "a session", 40)).await
    }

    /// Same with other key bindings.
    pub(crate) async fn bound(columns: u16, rows: u16, changes: &[(&str, &str)]) -> Self {
        let mut stage = Self::new(columns, rows).await;
        stage.app.input.keys = KeyBindings::with(changes.iter().copied()).unwrap();
        stage
    }

    /// Delivers a job result.
    pub(crate) fn done(&mut self, done: Done) {
        self.app.done(done);
    }

    /// Ends the event stream of the session.
    pub(crate) fn silence(&mut self) {
        self.app.silence();
    }

    /// Returns the screen after the user had time to read it.
    pub(crate) fn look(&mut self) -> String {
        let screen = self.screen();
        self.pass(2_000);
        screen
    }

    /// Delivers a job result of another session.
    pub(crate) fn late(&mut self, done: Done) {
        self.app.report(Report {
            of: Some(SessionId::from("another")),
            done,
        });
    }

    /// A session whose entries have not been read yet.
    pub(crate) fn opening(columns: u16, rows: u16) -> Self {
        Self::begun(columns, rows, info("current", "a session", 40))
    }

    /// Delivers a job result of this session.
    pub(crate) async fn reported(&mut self, done: Done) {
        self.app.done(done);
        self.settle().await;
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
                Jobs::new(ports, done),
                info,
                Viewport::new((columns, rows), theme, false),
                KeyBindings::default(),
                Composer::new(Vec::new(), false),
            ),
            fake,
            answers,
            printed: String::new(),
            effects: Vec::new(),
            seq: 0,
        };
        stage.app.jobs.overview(&stage.app.session.info.id);
        stage.app.begin(&[]);
        stage
    }

    /// Waits for all jobs to finish.
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
            self.app.input(TermEvent::Key(key));
            self.settle().await;
        }
    }

    /// Presses keys while the results of jobs are still on their way.
    pub(crate) fn type_now(&mut self, keys: &str) {
        for key in parse(keys) {
            self.app.input(TermEvent::Key(key));
        }
    }

    pub(crate) async fn paste(&mut self, text: &str) {
        self.app.input(TermEvent::Paste(text.to_owned()));
        self.settle().await;
    }

    pub(crate) async fn hear(&mut self, event: Event) {
        if let Event::Waiting(Waiting::Queue { messages, .. }) = &event {
            self.fake.seen().queue.clone_from(messages);
        }
        self.seq += u64::from(!event.is_live());
        let envelope = Envelope {
            v: 1,
            session: self.app.session.info.id.clone(),
            seq: self.seq,
            event,
        };
        self.app.hear(&envelope);
        self.settle().await;
    }

    /// Records an event and lets it scroll into the scrollback.
    pub(crate) async fn record(&mut self, event: Event) {
        self.fake.seen().record.push(entry(self.seq + 1, event.clone()));
        self.hear(event).await;
        self.screen();
    }

    /// Holds back the next file list until the sender fires.
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

    /// Presses keys, and waits until a letter counts as an answer.
    pub(crate) async fn answer(&mut self, keys: &str) {
        self.keys(keys).await;
        self.pass(windlass_api::HOLD_MS);
        self.tick().await;
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
        self.app.input(TermEvent::Resize(columns, rows));
    }

    pub(crate) fn focus(&mut self, is_focused: bool) {
        self.app.input(if is_focused {
            TermEvent::FocusGained
        } else {
            TermEvent::FocusLost
        });
    }

    /// Clears the screen.
    pub(crate) fn emptied(&mut self) {
        self.app.print_again();
        self.printed.clear();
    }

    pub(crate) fn edited(&mut self, text: Result<String, String>) {
        let asked = self.effects.drain(..).find_map(|effect| match effect {
            Effect::Edit { text, then } => Some((text, then)),
            _ => None,
        });
        let (before, then) = asked.expect("an editor was asked for");
        self.app.edited(&then, &before, text);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.app.is_dirty()
    }

    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.app.next_tick()
    }

    /// Returns the frame as text.
    pub(crate) fn screen(&mut self) -> String {
        let frame = self.app.frame();
        self.printed.push_str(&text(&frame.above));
        self.printed.push('\n');
        text(&frame.picture.rows)
    }

    /// Returns everything printed into the scrollback.
    pub(crate) fn printed(&mut self) -> String {
        self.screen();
        self.printed.clone()
    }

    pub(crate) fn check_fits(&mut self) {
        let (columns, rows) = self.app.view.size;
        let frame = self.app.frame();
        for line in frame.above.iter().chain(&frame.picture.rows) {
            let text = line.to_string();
            // A wide character takes two columns.
            let most = usize::from(columns).max(2);
            assert!(width(&text) <= most, "{columns}×{rows}: {text:?}");
        }
        if frame.is_full {
            assert!(frame.picture.rows.len() <= usize::from(rows), "{columns}×{rows}");
        }
    }

    /// Returns the backend calls since the last check.
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

    /// Returns true if the bell rang since the last check.
    pub(crate) fn was_called(&mut self) -> bool {
        let effects = std::mem::take(&mut self.effects);
        effects.iter().any(|effect| matches!(effect, Effect::Notify(_)))
    }

    /// Returns the cursor's row up to the cursor.
    pub(crate) fn before_cursor(&mut self) -> Option<String> {
        let picture = self.app.frame().picture;
        let (x, y) = picture.cursor?;
        let row = picture.rows.get(usize::from(y))?.to_string();
        Some(row.chars().take(usize::from(x)).collect())
    }

    /// Returns the sequence numbers of all subscriptions, in order.
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

/// Parses `abc<C-r><S-Tab><Enter>` into keys.
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
        once_only: false,
        agent: None,
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
