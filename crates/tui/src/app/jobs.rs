//! Background jobs: started here, reported as [`Done`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use windlass_api::{
    AgentRow, Begin, CallId, Checkpoint, ClientError, CommandInfo, CommandReply, Entry, FileChange, Find,
    Message, MessageId, Overview, Part, SessionId, SessionInfo, Submission, UserReply, Wait,
};

use super::Ports;
use crate::desktop::Image;
use crate::overlay::Subject;

/// Number of entries read when a session is resumed.
const OPENING: usize = 120;
/// Number of entries read per page when the user scrolls back.
const PAGE: usize = 200;
/// Number of entries read for a preview.
const PREVIEW: usize = 40;
/// Number of entries searched for messages to go back to.
const MESSAGES: usize = 2_000;
/// Maximum number of sessions listed.
const SESSIONS: usize = 100;
/// Timeout for reading an image.
const IMAGE_PATIENCE: Duration = Duration::from_secs(5);

/// Result of a job.
pub(crate) enum Done {
    /// A message was submitted or rejected. The draft is restored if it was rejected.
    Submitted(Result<(), ClientError>, Box<crate::composer::Draft>),
    Command(String, Result<CommandReply, ClientError>),
    /// A command the user did not type: only errors are shown.
    QuietCommand(Result<CommandReply, ClientError>),
    Catalog(Vec<CommandInfo>),
    Completions(String, Vec<String>),
    Overview(Result<Box<Overview>, ClientError>),
    Why(Vec<Wait>),
    Opening(Result<Vec<Entry>, ClientError>),
    /// Entries before the given sequence number.
    Older(u64, Result<Vec<Entry>, ClientError>),
    /// Files below the session's folder, or the entries of another one.
    Files(Option<String>, Vec<String>),
    /// Completions of a command that a picker lists.
    Choices(Subject, Vec<String>),
    Sessions(String, Result<Vec<SessionInfo>, ClientError>),
    SessionPreview(SessionId, Result<Vec<Entry>, ClientError>),
    Checkpoints(Result<Vec<Checkpoint>, ClientError>),
    Changes(u64, Result<Vec<FileChange>, ClientError>),
    Messages(Result<Vec<Entry>, ClientError>),
    Agents(Result<Vec<AgentRow>, ClientError>),
    Began(Result<Box<SessionInfo>, ClientError>),
    TakenBack(Option<Arc<Message>>),
    /// True if the session is open and its queued messages are being sent.
    GoesOn(bool),
    /// The result of setting up a provider for a session.
    Connected(SessionId, Result<String, ClientError>),
    Image(Result<Image, String>),
    /// A dropped or pasted path, and the image read from it.
    Dropped(String, Option<Image>),
}

/// Result of a job and the session it concerns. Results for a session that is not on screen are dropped.
pub(crate) struct Report {
    pub(crate) of: Option<SessionId>,
    pub(crate) done: Done,
}

/// Starts jobs. All of them report to one channel.
#[derive(Clone)]
pub(crate) struct Jobs {
    pub(super) ports: Ports,
    done: mpsc::UnboundedSender<Report>,
}

impl Jobs {
    pub(crate) fn new(ports: Ports, done: mpsc::UnboundedSender<Report>) -> Self {
        Self { ports, done }
    }

    fn start(&self, job: impl Future<Output = Done> + Send + 'static) {
        self.start_of(None, job);
    }

    fn start_of(&self, of: Option<SessionId>, job: impl Future<Output = Done> + Send + 'static) {
        let reports = self.done.clone();
        tokio::spawn(job.map(move |done| {
            // Fails only after the app is gone.
            let _ = reports.send(Report { of, done });
        }));
    }

    pub(crate) fn submit(&self, submission: Submission, draft: crate::composer::Draft) {
        let backend = Arc::clone(&self.ports.backend);
        self.start(async move {
            let taken = backend.submit(submission).await.map(drop);
            Done::Submitted(taken, Box::new(draft))
        });
    }

    pub(crate) fn command(&self, session: &SessionId, line: &str) {
        let (backend, session, line) = (Arc::clone(&self.ports.backend), session.clone(), line.to_owned());
        self.start_of(Some(session.clone()), async move {
            let reply = backend.command(&session, &line).await;
            Done::Command(line, reply)
        });
    }

    pub(crate) fn quiet_command(&self, session: &SessionId, line: &str) {
        let (backend, session, line) = (Arc::clone(&self.ports.backend), session.clone(), line.to_owned());
        self.start_of(Some(session.clone()), async move {
            Done::QuietCommand(backend.command(&session, &line).await)
        });
    }

    pub(crate) fn catalog(&self, session: &SessionId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(Some(session.clone()), async move {
            Done::Catalog(backend.catalog(&session).await)
        });
    }

    pub(crate) fn complete(&self, session: &SessionId, line: &str) {
        let (backend, session, line) = (Arc::clone(&self.ports.backend), session.clone(), line.to_owned());
        self.start_of(Some(session.clone()), async move {
            let lines = backend.complete(&session, &line).await;
            Done::Completions(line, lines)
        });
    }

    pub(crate) fn overview(&self, session: &SessionId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(Some(session.clone()), async move {
            Done::Overview(backend.overview(&session).await.map(Box::new))
        });
    }

    pub(crate) fn agents(&self, session: &SessionId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(Some(session.clone()), async move {
            Done::Agents(backend.agents(&session).await)
        });
    }

    pub(crate) fn why(&self, session: &SessionId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(Some(session.clone()), async move {
            Done::Why(backend.why(&session).await)
        });
    }

    pub(crate) fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) {
        let (backend, session, call) = (Arc::clone(&self.ports.backend), session.clone(), call.clone());
        tokio::spawn(async move { backend.reply(&session, &call, reply).await });
    }

    pub(crate) fn cancel(&self, session: &SessionId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        tokio::spawn(async move { backend.cancel(&session).await });
    }

    pub(crate) fn take_back(&self, session: &SessionId, message: MessageId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start(async move { Done::TakenBack(backend.take_back(&session, &message).await) });
    }

    /// Sends the queued messages.
    pub(crate) fn go_on(&self, session: &SessionId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start(async move { Done::GoesOn(backend.go_on(&session).await) });
    }

    fn tail(
        &self,
        of: Option<SessionId>,
        session: &SessionId,
        before: Option<u64>,
        limit: usize,
        done: impl FnOnce(Result<Vec<Entry>, ClientError>) -> Done + Send + 'static,
    ) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(
            of,
            async move { done(backend.tail(&session, before, limit).await) },
        );
    }

    /// Reads the last entries of a resumed session.
    pub(crate) fn opening(&self, session: &SessionId) {
        self.tail(Some(session.clone()), session, None, OPENING, Done::Opening);
    }

    pub(crate) fn older(&self, session: &SessionId, before: u64) {
        self.tail(
            Some(session.clone()),
            session,
            Some(before),
            PAGE,
            move |entries| Done::Older(before, entries),
        );
    }

    pub(crate) fn messages(&self, session: &SessionId) {
        self.tail(Some(session.clone()), session, None, MESSAGES, Done::Messages);
    }

    pub(crate) fn session_preview(&self, session: SessionId) {
        let of = session.clone();
        self.tail(None, &session, None, PREVIEW, move |entries| {
            Done::SessionPreview(of, entries)
        });
    }

    pub(crate) fn sessions(&self, words: &str) {
        let backend = Arc::clone(&self.ports.backend);
        let find = Find {
            words: words.to_owned(),
            place: None,
            user: Some(windlass_api::UserName::default()),
            limit: SESSIONS,
        };
        self.start(async move {
            let found = backend.sessions(&find).await;
            Done::Sessions(find.words, found)
        });
    }

    pub(crate) fn checkpoints(&self, session: &SessionId) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(Some(session.clone()), async move {
            Done::Checkpoints(backend.checkpoints(&session).await)
        });
    }

    pub(crate) fn changes(&self, session: &SessionId, number: u64) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(Some(session.clone()), async move {
            Done::Changes(number, backend.changes(&session, number).await)
        });
    }

    /// Starts a new session and switches to it.
    pub(crate) fn begin(&self, of: &SessionId, begin: Begin) {
        let backend = Arc::clone(&self.ports.backend);
        let begin = Begin::Instead {
            of: of.clone(),
            begin: Box::new(begin),
        };
        self.start(async move { Done::Began(backend.begin(begin).await.map(Box::new)) });
    }

    /// Lists the files below the session's folder, or the entries of another folder as it was typed.
    pub(crate) fn files(&self, of: &SessionInfo, outside: Option<String>) {
        let (desktop, place) = (Arc::clone(&self.ports.desktop), of.place.clone());
        self.start_of(Some(of.id.clone()), async move {
            let files = desktop.files(&place, outside.as_deref()).await;
            Done::Files(outside, files)
        });
    }

    /// Lists the completions of a command for a picker.
    pub(crate) fn choices(&self, session: &SessionId, subject: Subject, line: &'static str) {
        let (backend, session) = (Arc::clone(&self.ports.backend), session.clone());
        self.start_of(Some(session.clone()), async move {
            Done::Choices(subject, backend.complete(&session, line).await)
        });
    }

    pub(crate) fn connect(&self, session: &SessionId, provider: String, key: String) {
        let (connections, session) = (Arc::clone(&self.ports.connections), session.clone());
        self.start(async move {
            let connected = connections.connect(&session, &provider, &key).await;
            Done::Connected(session, connected)
        });
    }

    pub(crate) fn clipboard_image(&self) {
        let desktop = Arc::clone(&self.ports.desktop);
        self.start(async move { Done::Image(desktop.clipboard_image().await) });
    }

    pub(crate) fn dropped(&self, text: String, path: String) {
        let (desktop, clock) = (Arc::clone(&self.ports.desktop), Arc::clone(&self.ports.clock));
        self.start(async move {
            // Some paths never answer, and the message is not sent until this ends.
            let image = tokio::select! {
                biased;
                image = desktop.image(&path) => image,
                () = clock.sleep(IMAGE_PATIENCE) => None,
            };
            Done::Dropped(text, image)
        });
    }
}

/// Converts a draft to the parts of a message.
pub(crate) fn parts(draft: &crate::composer::Draft) -> Vec<Part> {
    use base64::Engine;
    let mut parts = vec![Part::text(draft.text.clone())];
    for image in &draft.images {
        parts.push(Part::Binary(windlass_api::Binary {
            path: image.name.clone(),
            mime: image.media_type.clone(),
            data: base64::engine::general_purpose::STANDARD.encode(&image.data),
        }));
    }
    parts
}
