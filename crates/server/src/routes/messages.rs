//! Input of a user: messages, answers, commands, and the queue.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_api::{
    Answer, CallId, ClientError, CommandInfo, Event, Follow, MessageId, OnBusy, Part, SessionId, Submission,
    UserReply, Waiting,
};
use windlass_core::permission::{Rule, RuleError, Subject};

use super::body::{Body, Query};
use super::files::is_sendable;
use crate::app::Shared;
use crate::checks::Who;
use crate::problem::Problem;
use crate::questions::{OpenQuestion, refuse, was_asked};
use crate::queue::event;
use crate::sends::Sent;

/// Maximum number of rules in an answer.
const MAX_RULES: usize = 32;

/// A message.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    /// UUID made by the client. A request that is repeated with it is answered like the first.
    id: Option<String>,
    /// Text of the message, if it has no other parts.
    text: Option<String>,
    /// Content, in order.
    #[serde(default)]
    parts: Vec<Part>,
    /// Ids of uploaded images, which follow the text.
    #[serde(default)]
    uploads: Vec<String>,
    /// Action if a turn runs: `refuse`, `queue` or `steer`.
    #[serde(default = "queue")]
    on_busy: OnBusy,
}

fn queue() -> OnBusy {
    OnBusy::Queue
}

pub(crate) async fn send(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Path(id): Path<SessionId>,
    Body(message): Body<Message>,
) -> Result<(StatusCode, Json<Sent>), Problem> {
    let message_id = match message.id {
        None => None,
        Some(given) => match given.parse::<uuid::Uuid>() {
            Ok(parsed) => Some(MessageId::from(parsed.to_string())),
            Err(error) => return Err(Problem::field("id", format!("not a UUID: {error}"))),
        },
    };
    let text = message.text.into_iter().map(Part::text);
    let mut parts: Vec<Part> = text.chain(message.parts).collect();
    for (place, upload) in message.uploads.iter().enumerate() {
        let image = app.inputs.uploads.get(&who.user, upload);
        let missing = || Problem::field(format!("uploads[{place}]"), "no such upload: send it again");
        parts.push(Part::Binary(image.ok_or_else(missing)?));
    }
    if parts.is_empty() {
        return Err(Problem::field("text", "a message needs `text` or `parts`"));
    }
    if let Some(place) = parts
        .iter()
        .position(|part| !matches!(part, Part::Text(_) | Part::Binary(_)))
    {
        let text = "a message of a user has text and files only";
        return Err(Problem::field(format!("parts[{place}].type"), text));
    }
    let is_odd = |part: &Part| matches!(part, Part::Binary(file) if !is_sendable(file));
    if let Some(place) = parts.iter().position(is_odd) {
        let text =
            "not a file: `mime` is a media type, and `data` is base64; images are PNG, JPEG, GIF or WebP";
        return Err(Problem::field(format!("parts[{place}].data"), text));
    }
    // Started before the message is sent, so that it hears the whole turn.
    app.hubs.hub(&id).await?;
    let submission = Submission {
        session: id,
        parts,
        on_busy: message.on_busy,
        id: message_id,
    };
    let sent = app.inputs.sends.send(&*app.ports.backend, submission).await?;
    Ok((StatusCode::ACCEPTED, Json(sent)))
}

/// Answer to a cancellation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Canceled {
    /// True if a turn was running.
    was_running: bool,
}

pub(crate) async fn cancel(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<Json<Canceled>, Problem> {
    app.info(&id).await?;
    let was_running = app.ports.backend.cancel(&id).await;
    Ok(Json(Canceled { was_running }))
}

/// Answer to a permission request or a question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    /// Answer to a permission request.
    answer: Option<ReplyAnswer>,
    /// With `no`: a reason for the model, which then continues.
    note: Option<String>,
    /// With `always`: rules such as `bash(git *)` that say which calls of this tool are allowed from now on, instead
    /// of exactly this one. Together they match every subject of the request.
    #[serde(default)]
    rules: Vec<String>,
    /// Answer to a question.
    text: Option<String>,
}

/// Answer to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplyAnswer {
    /// Yes, this time only.
    Once,
    /// Yes, and do not ask about the same call again in this session.
    Session,
    /// Yes, and never ask about the same call again.
    Always,
    /// No; the turn ends, unless there is a note.
    No,
}

impl Reply {
    fn into_reply(self) -> Result<UserReply, Problem> {
        let rules = rules(&self.rules)?;
        if !rules.is_empty() && self.answer != Some(ReplyAnswer::Always) {
            return Err(Problem::field("rules", "only with the answer `always`"));
        }
        let note = self.note.filter(|note| !note.trim().is_empty());
        match (self.answer, note, self.text) {
            (Some(ReplyAnswer::No), Some(note), None) => Ok(UserReply::Permission(Answer::NoBecause(note))),
            (Some(_), Some(_), None) => Err(Problem::field("note", "only with the answer `no`")),
            (Some(answer), None, None) => Ok(UserReply::Permission(match answer {
                ReplyAnswer::Once => Answer::Once,
                ReplyAnswer::Session => Answer::Session,
                ReplyAnswer::Always if !rules.is_empty() => Answer::AlwaysFor(rules),
                ReplyAnswer::Always => Answer::Always,
                ReplyAnswer::No => Answer::No,
            })),
            (None, None, Some(text)) => Ok(UserReply::Text(text)),
            (None, Some(_), _) => Err(Problem::field("note", "only with the answer `no`")),
            (Some(_), _, Some(_)) => Err(Problem::field("text", "either `answer` or `text`")),
            (None, None, None) => Err(Problem::field("answer", "`answer` or `text` is missing")),
        }
    }
}

fn rules(texts: &[String]) -> Result<Vec<Rule>, Problem> {
    if texts.len() > MAX_RULES {
        return Err(Problem::field("rules", format!("at most {MAX_RULES} rules")));
    }
    let rule = |(place, text): (usize, &String)| {
        text.parse()
            .map_err(|error: RuleError| Problem::field(format!("rules[{place}]"), error.to_string()))
    };
    texts.iter().enumerate().map(rule).collect()
}

/// SAFE-6: checks that rules are about the tool that asks, and that they match what it asks for.
fn check_rules(rules: &[Rule], question: &OpenQuestion) -> Result<(), Problem> {
    let Event::Waiting(Waiting::PermissionRequest { tool, subjects, .. }) = &question.request else {
        return Ok(());
    };
    if let Some(place) = rules.iter().position(|rule| rule.tool() != tool) {
        let text = format!("this request is about `{tool}`: write `{tool}(PATTERN)`");
        return Err(Problem::field(format!("rules[{place}]"), text));
    }
    let fits = |text: &String| {
        let kinds = [Subject::Command, Subject::Path, Subject::Host];
        kinds
            .iter()
            .any(|kind| rules.iter().any(|rule| rule.fits(&kind(text.clone()))))
    };
    match subjects.iter().find(|subject| !fits(subject)) {
        Some(subject) => Err(Problem::field("rules", format!("no rule matches `{subject}`"))),
        None => Ok(()),
    }
}

pub(crate) async fn reply(
    State(app): State<Shared>,
    Extension(Who(who)): Extension<Who>,
    Path((id, call)): Path<(SessionId, CallId)>,
    Body(reply): Body<Reply>,
) -> Result<StatusCode, Problem> {
    let reply = reply.into_reply()?;
    let info = app.info(&id).await?;
    // Opening completes a record that a killed process left, so that its questions count as interrupted. A session
    // that another process has is not opened; its questions are read as they are.
    let _ = app.ports.backend.overview(&id).await;
    let open = app.coarse.questions(&info).await;
    let open = open.into_iter().find(|question| question.call == call);
    if let Some(question) = &open {
        match (&reply, question.question()) {
            (UserReply::Permission(_), Some(_)) => {
                return Err(Problem::field("answer", "this is a question: it needs a `text`"));
            }
            (UserReply::Text(_), None) => {
                return Err(Problem::field(
                    "text",
                    "this is a permission request: it needs an `answer`",
                ));
            }
            (UserReply::Permission(Answer::AlwaysFor(rules)), None) => check_rules(rules, question)?,
            _ => {}
        }
    }
    // Before it counts. The session records the request and the outcome.
    let detail = json!({ "call": call, "answer": told(&reply) });
    app.audit(&who, Some(&id), "answer_given", detail).await?;
    let answers = &app.inputs.answers;
    let is_taken = match open.filter(|question| question.is_interrupted) {
        // Only one client continues the work.
        Some(question) if answers.claim(&id, &call, &who.name) => {
            let taken = continued(&app, &id, &question, reply).await;
            if taken.is_err() {
                answers.forget(&id, &call);
            }
            taken?
        }
        Some(_) => false,
        None => app.ports.backend.reply(&id, &call, reply).await,
    };
    if !is_taken {
        return Err(stale(&app, &id, &call).await?);
    }
    answers.remember(&id, &call, &who.name);
    if let Some(hub) = app.hubs.known(&id) {
        hub.tell(&event(
            "answered",
            &json!({ "session": id, "call": call, "by": who.name }),
        ));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Returns an answer for the audit log. The text of an answer to a question is part of the session only.
fn told(reply: &UserReply) -> serde_json::Value {
    match reply {
        UserReply::Text(_) => json!("text"),
        UserReply::Permission(answer) => match answer {
            Answer::Once => json!("once"),
            Answer::Session => json!("session"),
            Answer::Always => json!("always"),
            Answer::AlwaysFor(rules) => {
                json!({ "always": rules.iter().map(ToString::to_string).collect::<Vec<_>>() })
            }
            Answer::No | Answer::NoBecause(_) => json!("no"),
        },
    }
}

/// Continues the work of an interrupted turn with the answer to its question.
async fn continued(
    app: &Shared,
    session: &SessionId,
    question: &OpenQuestion,
    reply: UserReply,
) -> Result<bool, Problem> {
    let carried = &app.inputs.carried;
    let Some(text) = carried.keep(session, question, reply) else {
        refuse(&*app.ports.store, session, question).await?;
        return Ok(true);
    };
    let sent = send_on(app, session, text).await;
    if sent.is_err() {
        carried.forget(session);
    }
    sent.map(|()| true)
}

/// Sends the text that continues an interrupted turn. The hub, which finds the request that a kept answer is for, comes
/// first: it stays as long as an answer is kept.
async fn send_on(app: &Shared, session: &SessionId, text: String) -> Result<(), Problem> {
    app.hubs.hub(session).await?;
    let submission = Submission {
        on_busy: OnBusy::Queue,
        ..Submission::text(session.clone(), text)
    };
    app.inputs.sends.send(&*app.ports.backend, submission).await?;
    Ok(())
}

/// Explains why an answer came too late.
async fn stale(app: &Shared, session: &SessionId, call: &CallId) -> Result<Problem, Problem> {
    if let Some(by) = app.inputs.answers.by(session, call) {
        let mut problem = Problem::conflict("answered", format!("{by} has answered this already"));
        problem.by = Some(by.into());
        return Ok(problem);
    }
    let record = windlass_core::log::record(&*app.ports.store, session).await?;
    Ok(match was_asked(&record, call) {
        true => Problem::conflict("answered", "this was answered already, or its turn has ended"),
        false => Problem::not_found(format!("no pending request has the id `{call}` in this session")),
    })
}

/// A message that was taken back.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TakenBack {
    /// The message.
    message: std::sync::Arc<windlass_api::Message>,
}

pub(crate) async fn take_back(
    State(app): State<Shared>,
    Path((id, message)): Path<(SessionId, MessageId)>,
) -> Result<Json<TakenBack>, Problem> {
    app.info(&id).await?;
    // A session that is not live has its queue in the record.
    app.ports.backend.overview(&id).await?;
    match app.ports.backend.take_back(&id, &message).await {
        Some(message) => Ok(Json(TakenBack { message })),
        None if app.ports.backend.sent(&id, &message).await?.is_some() => Err(Problem::conflict(
            "sent",
            "this message is no longer in the queue: its turn has begun",
        )),
        None => Err(Problem::not_found(format!(
            "there is no message {message} in the queue"
        ))),
    }
}

pub(crate) async fn go_on(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
) -> Result<StatusCode, Problem> {
    app.ports.backend.overview(&id).await?;
    app.hubs.hub(&id).await?;
    app.ports.backend.go_on(&id).await;
    Ok(StatusCode::ACCEPTED)
}

/// A line to complete.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandsQuery {
    complete: Option<String>,
}

/// Commands of a session.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CommandList {
    /// All commands.
    commands: Vec<CommandInfo>,
    /// Completions of the line, each a whole line.
    completions: Vec<String>,
}

pub(crate) async fn commands(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Query(query): Query<CommandsQuery>,
) -> Result<Json<CommandList>, Problem> {
    app.info(&id).await?;
    let backend = &app.ports.backend;
    Ok(Json(match query.complete {
        Some(line) => CommandList {
            commands: Vec::new(),
            completions: backend.complete(&id, &line).await,
        },
        None => CommandList {
            commands: backend.catalog(&id).await,
            completions: Vec::new(),
        },
    }))
}

/// A command line.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandBody {
    /// The line, with its slash; text after a `!` is a shell command.
    line: String,
}

/// Result of a command.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CommandAnswer {
    /// Text for the user: plain, or Markdown if it is long.
    pub(crate) text: String,
    /// Next action of the client: `nothing`, `submit` (with the parts to send), `session` (to continue in), `watch`
    /// (its events come by the stream), `edit` (a line), `leave`.
    #[schemars(with = "serde_json::Value")]
    follow: Follow,
}

pub(crate) async fn command(
    State(app): State<Shared>,
    Path(id): Path<SessionId>,
    Body(body): Body<CommandBody>,
) -> Result<Json<CommandAnswer>, Problem> {
    let Some(line) = windlass_api::typed_command(&body.line) else {
        return Err(Problem::field(
            "line",
            "a command starts with `/` or `!`; text goes to /messages",
        ));
    };
    run(&app, &id, &line).await.map(Json)
}

/// Runs a command line.
pub(crate) async fn run(app: &Shared, id: &SessionId, line: &str) -> Result<CommandAnswer, Problem> {
    app.hubs.hub(id).await?;
    let reply = app.ports.backend.command(id, line).await;
    let reply = reply.map_err(|error| match error {
        // The name of a session in an argument, not the session of the path.
        ClientError::Unknown(other) if other != *id => {
            Problem::field("line", format!("there is no session {other}"))
        }
        error => error.into(),
    })?;
    Ok(CommandAnswer {
        text: reply.text,
        follow: reply.follow,
    })
}
