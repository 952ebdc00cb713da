use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::stream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use windlass_core::clock::SystemClock;

use super::*;
use crate::{
    Answer, Begin, CallId, Category, CommandInfo, Label, Message, MessageId, Overview, SessionInfo,
    SessionStatus, Timestamp, WaitOn,
};

/// Everything that happened, in order: what the channel was shown and what the backend was asked.
type Story = Arc<Mutex<Vec<String>>>;

fn tell(story: &Story, line: impl Into<String>) {
    story.lock().unwrap().push(line.into());
}

/// An event, and how many seconds after the one before it comes.
type Timed = (u64, Event);

/// Plays turns from a script. One whose events do not end waits to be answered or canceled; one without any is lost.
struct Fake {
    story: Story,
    turns: Mutex<VecDeque<Vec<Timed>>>,
    running: Mutex<Option<UnboundedSender<(u64, Envelope)>>>,
    /// Answers of `why`, one per call; `None` never answers.
    waits: Mutex<VecDeque<Option<WaitOn>>>,
    begun: Instant,
}

impl Fake {
    fn turn(&self, session: &SessionId) -> EventStream {
        let (sender, receiver) = unbounded_channel();
        let events = self.turns.lock().unwrap().pop_front().unwrap_or_default();
        let is_lost = events.is_empty();
        for (seconds, event) in events {
            sender.send((seconds, envelope(session, event))).unwrap();
        }
        *self.running.lock().unwrap() = (!is_lost).then_some(sender);
        EventStream::new(stream::unfold(receiver, |mut receiver| async {
            let (seconds, envelope) = receiver.recv().await?;
            if seconds > 0 {
                SystemClock::default().sleep(Duration::from_secs(seconds)).await;
            }
            Some((envelope, receiver))
        }))
    }

    fn end(&self, session: &SessionId, event: Event) -> bool {
        let sender = self.running.lock().unwrap().clone();
        sender.is_some_and(|sender| sender.send((0, envelope(session, event))).is_ok())
    }
}

#[async_trait]
impl Client for Fake {
    async fn begin(&self, _: Begin) -> Result<SessionInfo, ClientError> {
        unreachable!("a conversation is in a session already")
    }

    async fn submit(&self, submission: Submission) -> Result<EventStream, ClientError> {
        let text: Vec<String> = submission.parts.iter().map(|part| format!("{part:?}")).collect();
        let text = text
            .join(" + ")
            .replace("Text(Text { text: ", "")
            .replace(" })", "");
        tell(&self.story, format!("submit to {}: {text}", submission.session));
        if text.contains("\"refuse\"") {
            return Err(ClientError::QueueFull(submission.session));
        }
        Ok(self.turn(&submission.session))
    }

    async fn cancel(&self, session: &SessionId) -> bool {
        tell(&self.story, format!("cancel {session}"));
        self.end(
            session,
            Event::Status {
                text: "stopping".to_owned(),
            },
        );
        let message = "stopped".to_owned();
        self.end(session, Event::Canceled { message })
    }

    async fn reply(&self, session: &SessionId, call: &CallId, reply: UserReply) -> bool {
        tell(&self.story, format!("reply to {call} in {session}: {reply:?}"));
        self.end(session, final_event("went on"))
    }

    async fn subscribe(&self, _: &SessionId, _: u64) -> Result<EventStream, ClientError> {
        unreachable!("nobody only looks")
    }

    async fn summarize(&self, _: &SessionId) -> Result<EventStream, ClientError> {
        unreachable!("that is a command")
    }
}

#[async_trait]
impl Commands for Fake {
    async fn catalog(&self, _: &SessionId) -> Vec<CommandInfo> {
        Vec::new()
    }

    async fn complete(&self, _: &SessionId, _: &str) -> Vec<String> {
        Vec::new()
    }

    async fn command(&self, session: &SessionId, line: &str) -> Result<CommandReply, ClientError> {
        tell(&self.story, format!("command in {session}: {line}"));
        let (text, follow) = match line.split(' ').next().unwrap_or_default() {
            "/help" => ("the help", Follow::Nothing),
            "/quiet" => ("", Follow::Nothing),
            "/other" => ("now in another", Follow::Session(Box::new(info("other")))),
            "/review" => ("", Follow::Submit(vec![Part::text("review it")])),
            "/shell" => ("runs", Follow::Watch(self.turn(session))),
            "/exit" => ("bye", Follow::Leave),
            _ => return Err(ClientError::CommandUsage("there is no such command".to_owned())),
        };
        let text = text.to_owned();
        Ok(CommandReply { text, follow })
    }
}

#[async_trait]
impl Presence for Fake {
    async fn overview(&self, _: &SessionId) -> Result<Overview, ClientError> {
        unreachable!("nobody only looks")
    }

    async fn why(&self, session: &SessionId) -> Vec<Wait> {
        let seconds = self.begun.elapsed().as_secs();
        tell(&self.story, format!("why in {session} after {seconds} s"));
        let next = self.waits.lock().unwrap().pop_front();
        let wait = |on| Wait {
            on,
            what: "this".to_owned(),
            for_ms: seconds * 1_000,
            ends: "some day".to_owned(),
        };
        match next {
            Some(Some(on)) => vec![wait(on), wait(WaitOn::Approval)],
            Some(None) => std::future::pending().await,
            None => Vec::new(),
        }
    }

    async fn take_back(&self, _: &SessionId, _: &MessageId) -> Option<Arc<Message>> {
        unreachable!("nothing is taken back")
    }

    async fn go_on(&self, _: &SessionId) -> bool {
        unreachable!("nothing is queued")
    }
}

/// Says these things, and fails where it is told to.
struct Scripted {
    story: Story,
    says: VecDeque<Result<Input, ChannelError>>,
    /// Answer to questions; `None` never answers.
    answer: Option<Result<Option<UserReply>, ChannelError>>,
    /// The text that cannot be shown, and how that fails.
    fails: Option<(&'static str, ChannelError)>,
}

impl Scripted {
    fn show(&mut self, line: String) -> Result<(), ChannelError> {
        let fails = self.fails.as_ref().filter(|(text, _)| line.contains(text));
        let failed = fails.map_or(Ok(()), |(_, error)| Err(error.clone()));
        tell(
            &self.story,
            if failed.is_ok() {
                line
            } else {
                format!("not shown: {line}")
            },
        );
        failed
    }
}

#[async_trait]
impl Channel for Scripted {
    async fn recv(&mut self) -> Result<Option<Input>, ChannelError> {
        self.says.pop_front().transpose()
    }

    async fn send(&mut self, envelope: &Envelope) -> Result<(), ChannelError> {
        let text = match &envelope.event {
            Event::Final { content, .. } => format!("final: {content}"),
            Event::Canceled { message } => format!("canceled: {message}"),
            Event::Delta { text, .. } | Event::Status { text } => text.clone(),
            Event::Waiting(_) => "waiting".to_owned(),
            Event::Failed { message, .. } => format!("failed: {message}"),
            other => format!("{other:?}"),
        };
        self.show(text)
    }

    async fn status(&mut self, text: &str) -> Result<(), ChannelError> {
        self.show(format!("status: {text}"))
    }

    async fn confirm(&mut self, _: &Waiting) -> Result<Option<UserReply>, ChannelError> {
        match self.answer.clone() {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn envelope(session: &SessionId, event: Event) -> Envelope {
    Envelope {
        v: EVENT_VERSION,
        session: session.clone(),
        seq: 1,
        event,
    }
}

fn final_event(text: &str) -> Event {
    Event::Final {
        content: text.to_owned(),
        finish: FinishReason::EndTurn,
    }
}

fn delta(text: &str) -> Event {
    Event::Status {
        text: text.to_owned(),
    }
}

fn request() -> Event {
    Event::Waiting(Waiting::PermissionRequest {
        call_id: "c1".into(),
        tool: "bash".to_owned(),
        category: Category::Admin,
        subjects: Vec::new(),
        reasons: Vec::new(),
        preview: None,
        once_only: false,
        agent: None,
    })
}

fn info(id: &str) -> SessionInfo {
    SessionInfo {
        id: id.into(),
        parent: None,
        label: Label::default(),
        place: String::new(),
        standing: SessionStatus::New,
        model: None,
        totals: windlass_core::log::Totals::default(),
        summary: None,
        last_seq: 0,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
        user: crate::UserName::default(),
        waits: None,
    }
}

/// Events that come in one gulp.
fn at_once(events: &[Event]) -> Vec<Timed> {
    events.iter().map(|event| (0, event.clone())).collect()
}

/// A conversation to be had.
struct Scene {
    says: Vec<Result<Input, ChannelError>>,
    turns: Vec<Vec<Timed>>,
    waits: Vec<Option<WaitOn>>,
    answer: Option<Result<Option<UserReply>, ChannelError>>,
    fails: Option<(&'static str, ChannelError)>,
    /// The interruption comes as soon as anybody listens for one, once.
    interrupts: bool,
}

impl Scene {
    fn of(says: &[&str], turns: &[&[Event]]) -> Self {
        Self {
            says: says.iter().map(|text| Ok(Input::text(*text))).collect(),
            turns: turns.iter().map(|turn| at_once(turn)).collect(),
            waits: Vec::new(),
            answer: None,
            fails: None,
            interrupts: false,
        }
    }

    /// Has it, and gives how it ended and the story.
    async fn play(self) -> (Result<Ended, ChannelError>, Vec<String>) {
        let story = Story::default();
        let fake = Fake {
            story: Arc::clone(&story),
            turns: Mutex::new(self.turns.into()),
            running: Mutex::default(),
            waits: Mutex::new(self.waits.into()),
            begun: Instant::now(),
        };
        let mut channel = Scripted {
            story: Arc::clone(&story),
            says: self.says.into(),
            answer: self.answer,
            fails: self.fails,
        };
        let mut interrupts = self.interrupts;
        let mut interrupt = move || match std::mem::take(&mut interrupts) {
            true => std::future::ready(()).boxed(),
            false => std::future::pending().boxed(),
        };
        let clock = SystemClock::default();
        let ended = converse(&fake, "s1".into(), &mut channel, &mut interrupt, &clock).await;
        let story = story.lock().unwrap().clone();
        (ended, story)
    }
}

fn turn_error() -> ChannelError {
    ChannelError::Turn("cannot be shown".to_owned())
}

/// UI-6: what is said is submitted, with what came along; the events of its turn are sent one by one, and the end of the
/// input ends the conversation.
#[tokio::test]
async fn inputs_become_turns() {
    let mut scene = Scene::of(
        &["hello"],
        &[&[delta("thinks"), final_event("hi")], &[final_event("nice")]],
    );
    scene.says.push(Ok(Input {
        text: "look".to_owned(),
        attachments: vec![Part::text("a picture")],
    }));
    let (ended, story) = scene.play().await;
    let ended = ended.unwrap();
    assert_eq!((ended.session.as_str(), ended.refused), ("s1", None));
    let expected = [
        "submit to s1: \"hello\"",
        "thinks",
        "final: hi",
        "submit to s1: \"look\" + \"a picture\"",
        "final: nice",
    ];
    assert_eq!(story, expected);
}

/// UI-6, CMD-2: commands go to the backend and never to a model, their text is shown, and what follows is done: another
/// session, a text to submit, events to watch, the end.
#[tokio::test]
async fn commands_are_followed() {
    let scene = Scene::of(
        &[
            "/help",
            "/quiet",
            "!ls -l",
            "!",
            "/other",
            "/review",
            "/etc/hosts is odd",
            "/exit",
            "never said",
        ],
        &[
            &[final_event("files")],
            &[final_event("")],
            &[final_event("reviewed")],
            &[final_event("it is")],
        ],
    );
    let (ended, story) = scene.play().await;
    assert_eq!(ended.unwrap().session.as_str(), "other");
    let expected = [
        "command in s1: /help",
        "final: the help",
        "command in s1: /quiet",
        "command in s1: /shell ls -l",
        "status: runs",
        "final: files",
        "command in s1: /shell",
        "status: runs",
        "final: ",
        "command in s1: /other",
        "final: now in another",
        "command in other: /review",
        "submit to other: \"review it\"",
        "final: reviewed",
        "submit to other: \"/etc/hosts is odd\"",
        "final: it is",
        "command in other: /exit",
        "final: bye",
    ];
    assert_eq!(story, expected);
}

/// UI-6: what is not taken is told, and how the last thing fared is known at the end.
#[tokio::test]
async fn refusals_are_reported() {
    let (ended, story) = Scene::of(&["/nonsense", "refuse"], &[]).play().await;
    assert_eq!(ended.unwrap().refused, Some(ClientError::QueueFull("s1".into())));
    let expected = [
        "command in s1: /nonsense",
        "status: there is no such command",
        "submit to s1: \"refuse\"",
        "status: session s1 has too many inputs waiting",
    ];
    assert_eq!(story, expected);
    let (ended, _) = Scene::of(&["refuse", "/help"], &[]).play().await;
    assert_eq!(ended.unwrap().refused, None);
}

/// UI-6: a request for permission and a question are put to the person, and the reply goes back; no reply stops the turn.
#[tokio::test]
async fn questions_are_answered() {
    let question = Event::Waiting(Waiting::Question {
        call_id: "c2".into(),
        text: "which".to_owned(),
        options: Vec::new(),
    });
    let queue = Event::Waiting(Waiting::Queue {
        messages: Vec::new(),
        steers: Vec::new(),
    });
    let cases = [
        (
            vec![queue, request()],
            Some(UserReply::Permission(Answer::Once)),
            "reply to c1 in s1: Permission(Once)",
            "final: went on",
        ),
        (
            vec![question],
            Some(UserReply::Text("blue".to_owned())),
            "reply to c2 in s1: Text(\"blue\")",
            "final: went on",
        ),
        (vec![request()], None, "cancel s1", "canceled: stopped"),
    ];
    for (turn, answer, asked, end) in cases {
        let mut scene = Scene::of(&["go"], &[&turn]);
        scene.answer = Some(Ok(answer));
        let (ended, story) = scene.play().await;
        assert!(ended.is_ok());
        assert!(story.contains(&asked.to_owned()), "{story:?}");
        assert_eq!(story.last().unwrap(), end);
    }
}

/// UI-6: an interruption stops the turn, also while a question waits; its end is sent and the conversation goes on.
#[tokio::test]
async fn an_interruption_stops_the_turn() {
    for turn in [vec![delta("works")], vec![request()]] {
        let mut scene = Scene::of(&["go", "and on"], &[&turn, &[final_event("on")]]);
        scene.interrupts = true;
        let (ended, story) = scene.play().await;
        assert!(ended.is_ok());
        let expected = [
            "cancel s1",
            "stopping",
            "canceled: stopped",
            "submit to s1: \"and on\"",
            "final: on",
        ];
        assert_eq!(&story[2..], expected, "{story:?}");
    }
}

/// UI-6: a channel that cannot go on with a turn has it canceled and read to its end, is told why, and goes on.
#[tokio::test]
async fn a_turn_that_cannot_be_shown_is_canceled() {
    let mut scene = Scene::of(&["go", "and on"], &[&[delta("odd")], &[final_event("on")]]);
    scene.fails = Some(("odd", turn_error()));
    let (ended, story) = scene.play().await;
    assert!(ended.is_ok());
    let expected = [
        "submit to s1: \"go\"",
        "not shown: odd",
        "cancel s1",
        "status: cannot be shown",
        "submit to s1: \"and on\"",
        "final: on",
    ];
    assert_eq!(story, expected);

    let mut scene = Scene::of(&["go", "and on"], &[&[request()], &[final_event("on")]]);
    scene.answer = Some(Err(turn_error()));
    let (ended, story) = scene.play().await;
    assert!(ended.is_ok());
    assert_eq!(&story[2..4], ["cancel s1", "status: cannot be shown"]);

    // The line about it, the text of a command and one thing that was said are no turn, and end nothing either.
    let mut scene = Scene::of(&["!x", "/exit"], &[&[delta("never sent")]]);
    scene.fails = Some(("s", turn_error()));
    scene.says.insert(0, Err(ChannelError::Turn("status".to_owned())));
    let (ended, story) = scene.play().await;
    assert!(ended.is_ok());
    let expected = [
        "not shown: status: status",
        "command in s1: /shell x",
        "not shown: status: runs",
        "cancel s1",
        "not shown: status: cannot be shown",
        "command in s1: /exit",
        "final: bye",
    ];
    assert_eq!(story, expected);
}

/// UI-6: when nobody is there any more the turn is canceled and read to its end, and the conversation is over.
#[tokio::test]
async fn nobody_there_ends_it() {
    let gone = || ChannelError::Fatal("gone".to_owned());
    let mut scene = Scene::of(&["go", "and on"], &[&[delta("odd")]]);
    scene.fails = Some(("odd", gone()));
    let (ended, story) = scene.play().await;
    assert_eq!(ended, Err(gone()));
    assert_eq!(story, ["submit to s1: \"go\"", "not shown: odd", "cancel s1"]);

    let mut scene = Scene::of(&["go"], &[&[request()]]);
    scene.answer = Some(Err(gone()));
    let (ended, story) = scene.play().await;
    assert_eq!(
        (ended, story.last().unwrap().as_str()),
        (Err(gone()), "cancel s1")
    );

    let mut scene = Scene::of(&[], &[]);
    scene.says.push(Err(gone()));
    assert_eq!(scene.play().await, (Err(gone()), Vec::new()));
}

/// UI-6: a provider that fails is an event like others, and a turn that is lost does not hold the conversation up.
#[tokio::test]
async fn failures_are_events() {
    let failed = Event::Failed {
        reason: crate::FailureKind::Refusal,
        message: "it will not".to_owned(),
        hint: None,
        finish: FinishReason::Error,
    };
    let scene = Scene::of(&["go", "lost", "and on"], &[&[failed], &[], &[final_event("on")]]);
    let (ended, story) = scene.play().await;
    assert!(ended.is_ok());
    assert_eq!(
        story,
        [
            "submit to s1: \"go\"",
            "failed: it will not",
            "submit to s1: \"lost\"",
            "submit to s1: \"and on\"",
            "final: on"
        ]
    );
}

/// OBS-3: of a turn that shows nothing for 10 s it is said what it waits for, and again when that changes, not more often.
/// An event that a channel does not show is no sign of life; a piece of the reply is one, and nothing new.
#[tokio::test(start_paused = true)]
async fn a_quiet_turn_says_what_it_waits_for() {
    let mut scene = Scene::of(&["go"], &[]);
    let step = Event::StepStart {
        call_id: "c1".into(),
        title: "bash".to_owned(),
        number: 1,
    };
    let output = Event::ToolOutput {
        call_id: "c1".into(),
        text: "unseen".to_owned(),
    };
    let text = Event::Delta {
        kind: DeltaKind::Text,
        text: "half an".to_owned(),
    };
    scene.turns = vec![vec![
        (25, step),
        (5, output),
        (20, text),
        (25, final_event("half an answer")),
    ]];
    let (provider, tool, lock) = (WaitOn::Provider, WaitOn::Tool, WaitOn::Lock);
    scene.waits = [provider, provider, tool, lock, lock, tool].map(Some).to_vec();
    let (ended, story) = scene.play().await;
    assert!(ended.is_ok());
    let expected = [
        "submit to s1: \"go\"",
        "why in s1 after 10 s",
        "status: waiting for provider: this — for 10 s; ends some day",
        "why in s1 after 20 s",
        "StepStart { call_id: CallId(\"c1\"), title: \"bash\", number: 1 }",
        "ToolOutput { call_id: CallId(\"c1\"), text: \"unseen\" }",
        "why in s1 after 35 s",
        "status: waiting for tool: this — for 35 s; ends some day",
        "why in s1 after 45 s",
        "status: waiting for lock: this — for 45 s; ends some day",
        "half an",
        "why in s1 after 60 s",
        "why in s1 after 70 s",
        "status: waiting for tool: this — for 70 s; ends some day",
        "final: half an answer",
    ];
    assert_eq!(story, expected);
}

/// OBS-3: a backend that waits for nothing has nothing said, and one that does not answer holds nothing up.
#[tokio::test(start_paused = true)]
async fn whoever_cannot_say_holds_nothing_up() {
    for (waits, asked) in [(vec![], 3), (vec![None], 1)] {
        let mut scene = Scene::of(&["go"], &[]);
        scene.turns = vec![vec![(35, final_event("at last"))]];
        scene.waits = waits;
        let (ended, story) = scene.play().await;
        assert!(ended.is_ok());
        assert_eq!(story.len(), 2 + asked, "{story:?}");
        assert_eq!(story.last().unwrap(), "final: at last");
    }
}
