//! A fake backend that records its calls.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::oneshot;
use windlass_api::{
    Begin, CallId, Changed, Checkpoint, Client, ClientError, CommandInfo, CommandReply, CommandSource,
    Commands, Connections, Entry, Event, EventStream, FileChange, Find, Follow, Label, Message, MessageId,
    Offer, Overview, Part, Presence, Records, SessionEvent, SessionId, SessionInfo, SessionStatus,
    Submission, Timestamp, UserReply, Wait,
};
use windlass_core::clock::Clock;
use windlass_core::log::{AgentBudget, AgentFamily, AgentJob, AgentRow, AgentState, AgentStatus, Totals};

use super::stage::{entry, request, user};
use super::*;
use crate::desktop::Image;

#[derive(Default)]
pub(super) struct Seen {
    pub(super) calls: Vec<String>,
    pub(super) waits: Vec<Wait>,
    pub(super) refuses: bool,
    /// Log of the current session; if empty, canned entries are returned.
    pub(super) record: Vec<Entry>,
    pub(super) is_unreadable: bool,
    /// Delays the next file list until this fires.
    pub(super) files_after: Option<oneshot::Receiver<()>>,
    /// Mode set with `/mode`.
    pub(super) mode: Option<String>,
    pub(super) queue: Vec<Arc<Message>>,
    pub(super) now_ms: u64,
}

#[derive(Clone, Default)]
pub(super) struct Fake(Arc<Mutex<Seen>>);

impl Fake {
    pub(super) fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, call: String) {
        self.seen().calls.push(call);
    }
}

pub(super) fn info(id: &str, title: &str, last_seq: u64) -> SessionInfo {
    SessionInfo {
        id: SessionId::from(id),
        parent: None,
        label: Label {
            title: Some(title.to_owned()),
            ..Label::default()
        },
        place: "/work".to_owned(),
        standing: SessionStatus::Answered,
        model: None,
        totals: Totals::default(),
        summary: None,
        last_seq,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        user: windlass_api::UserName::default(),
        waits: None,
    }
}

fn agent(number: u32, state: AgentState, task: &str) -> AgentRow {
    AgentRow {
        session: SessionId::from(format!("agent-{number}")),
        family: AgentFamily {
            root: "s-0".into(),
            parent: "s-0".into(),
            call: None,
            number,
            depth: 1,
        },
        job: AgentJob {
            name: "scout".to_owned(),
            task: task.to_owned(),
            ..AgentJob::default()
        },
        status: AgentStatus {
            state,
            ..AgentStatus::default()
        },
        budget: AgentBudget::default(),
        spent: AgentBudget {
            tokens: Some(1_200),
            cost_usd: Some(0.25),
            turns: Some(3),
            seconds: None,
        },
        created_at: Timestamp(0),
        ended_at: (!state.is_active()).then_some(Timestamp(60_000)),
        server: None,
        seen_at: Timestamp(0),
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

    async fn reply(&self, _: &SessionId, call: &CallId, reply: UserReply) -> bool {
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
    async fn agents(&self, _: &SessionId) -> Result<Vec<AgentRow>, ClientError> {
        self.note("agents".to_owned());
        Ok(vec![
            agent(1, AgentState::Running, "find the bug"),
            agent(2, AgentState::Done, "write the tests"),
        ])
    }

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
        if let Some(before) = before {
            self.note(format!("older than {before}"));
            let older = match before {
                40 => vec![entry(20, user("said before that"))],
                20 => vec![entry(1, user("said first of all"))],
                _ => Vec::new(),
            };
            return Ok(older);
        }
        Ok(match (session.as_str(), limit) {
            // Messages to go back to.
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
        let queue = self.seen().queue.clone();
        Ok(Overview {
            info: info(session.as_str(), "a session", 1),
            provider: "sim".to_owned(),
            model: "sim-1".to_owned(),
            window: 100_000,
            mode: self.seen().mode.clone().unwrap_or_else(|| "auto".to_owned()),
            effort: "off".to_owned(),
            surroundings: windlass_api::FolderFacts::default(),
            is_busy: false,
            queue,
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

    async fn go_on(&self, _: &SessionId) -> bool {
        self.note("go_on".to_owned());
        true
    }
}

#[async_trait]
impl Connections for Fake {
    fn offers(&self, _: &SessionId) -> Vec<Offer> {
        let offer = |name: &str, needs_key: bool, is_ready: bool| Offer {
            name: name.to_owned(),
            model: "a model".to_owned(),
            needs_key,
            is_ready,
            hint: "Get one in the console.".to_owned(),
        };
        vec![
            offer("anthropic", true, false),
            offer("openai", true, true),
            offer("ollama", false, false),
        ]
    }

    async fn connect(&self, _: &SessionId, provider: &str, key: &str) -> Result<String, ClientError> {
        self.note(format!("connect {provider} {key}"));
        Ok(format!("{provider} answers."))
    }
}

#[async_trait]
impl Desktop for Fake {
    async fn files(&self, place: &str, outside: Option<&str>) -> Vec<String> {
        if let Some(folder) = outside {
            return vec![format!("{folder}deep/"), format!("{folder}notes.txt")];
        }
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

pub(super) fn picture(name: &str) -> Image {
    Image {
        name: name.to_owned(),
        media_type: "image/png".to_owned(),
        data: Arc::from([1, 2, 3].as_slice()),
    }
}
