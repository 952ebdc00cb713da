//! `windlass exec`: runs one prompt non-interactively.

mod command;
mod given;
mod goal;
mod input;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use windlass_api::{
    Client, ClientError, Envelope, Event, EventStream, OnBusy, Part, Presence, SessionId, SessionInfo,
    Submission, Waiting, command_line,
};
use windlass_service::{Service, format};

pub(crate) use self::given::{flags, given};
use self::input::{MessageLines, read_prompt};
use self::schema::AnswerSchema;
use crate::asking;
use crate::engine::{Engine, ModelRuntime, Plan, advice, not_begun, working_directory};
use crate::exit::Exit;
use crate::observe::Wanted;
use crate::output::{Outcome, Printer, RunResult, Style, Totals, Trouble, json, millis_since, printer};
use crate::session_choice::{self, NewSession, PickBy, SessionChoice, SessionStore};
use crate::session_folder;
use crate::signals::Signals;
use crate::terminal::plain;
use windlass_args::{ExecOptions, InputFormat, OutputFormat, OutputOptions, SettingsOptions};
use windlass_config::environment;
use windlass_config::environment::Given;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_host::compat;
use windlass_host::model_preference::ModelPreference;
use windlass_host::models::Models;
use windlass_host::watch::Watch;

/// Runs a prompt and prints its answer. A problem at the start is printed in the output format as well.
pub(crate) async fn exec(words: &[String], options: &ExecOptions) -> Result<Exit, Problem> {
    let begun = Instant::now();
    match prepare(words, options).await {
        Err(problem) if options.output.format() != OutputFormat::Text => {
            let style = style(&options.output);
            let result = RunResult::not_started(&problem, begun);
            json::print(&result).map_or(Ok(Exit::BrokenPipe), |()| {
                style.error(&problem.message);
                Ok(result.exit)
            })
        }
        ended => ended,
    }
}

/// Returns the style that the options ask for.
pub(crate) fn style(options: &OutputOptions) -> Style {
    let style = Style::detect(options.quiet, &environment::var);
    style.with(options.verbose, options.color)
}

async fn prepare(words: &[String], options: &ExecOptions) -> Result<Exit, Problem> {
    let style = style(&options.output);
    let (which, fork) = SessionChoice::of(&options.session)?;
    let new = NewSession::of(&options.session)?;
    let keeper = SessionStore::begin(&which)?;
    let cwd = working_directory(options.cd.as_deref())?;
    let which = session_choice::picked(&*keeper.store, which, &cwd, PickBy::Nobody).await?;
    let schema = options.output.output_schema.as_deref();
    let schema = schema.map(AnswerSchema::read).transpose()?;
    let given = given(options, &cwd)?;
    let settings = Arc::new(environment::settings(&given, &cwd)?);
    for warning in &settings.warnings {
        style.warn(warning);
    }
    session_folder::check(&settings, &cwd, false)?;
    let request = goal::request(words, options)?;
    let reads_lines = options.output.input_format == InputFormat::StreamJson;
    let prompt = match &request {
        Some(request) => request.line(),
        None if reads_lines => String::new(),
        None => read_prompt(words, style).await?,
    };
    let extras = Extras {
        images: compat_images(options)?,
        timeout: options.output.timeout,
        last_message: options.output.output_last_message.clone(),
        lines: reads_lines.then(|| MessageLines::of_stdin(words)),
        new,
    };
    let remembered = ModelPreference::of_local(&settings, Arc::clone(&keeper.store) as _);
    let wanted = Wanted {
        dump: options.debug_dump.as_deref(),
        ..Wanted::default()
    };
    let runtime = ModelRuntime::new(&settings, &keeper, &which, remembered, wanted).await?;
    let ModelRuntime { models, watch } = runtime;
    // Piped input is data, so only a prompt on the command line can be a slash command.
    let is_command = request.is_some() || (!reads_lines && command_line(&words.join(" ")).is_some());
    if is_command && request.is_none() {
        command::check(&prompt)?;
    }
    if let Some(file) = &options.output.output_last_message {
        check_writable(file)?;
    }
    // A command may need no model; if it does, it connects later.
    if !is_command || request.is_some() {
        connect(&models, style).await?;
    }
    let format = options.output.format();
    let job = Job {
        prompt,
        is_command,
        schema,
        format,
        require_done: options.goal.require_done,
        style,
        interactive: format == OutputFormat::Text && asking::somebody_is_there(),
        which,
        fork,
        given,
        watch,
        extras,
    };
    Ok(run(&settings, &models, cwd, job, keeper).await?.exit)
}

/// Refuses a file that the answer could not be written to: a turn costs money.
fn check_writable(file: &Path) -> Result<(), Problem> {
    // Opening a pipe would wait for its reader.
    if std::fs::metadata(file).is_ok_and(|data| !data.is_file() && !data.is_dir()) {
        return Ok(());
    }
    let is_new = std::fs::symlink_metadata(file).is_err();
    let opened = std::fs::File::options().append(true).create(true).open(file);
    if is_new && opened.is_ok() {
        // A run without an answer leaves no file.
        let _ = std::fs::remove_file(file);
    }
    opened
        .map(drop)
        .map_err(|error| Problem::usage(format!("--output-last-message {}: {error}", file.display())))
}

/// Reads the images that go with the prompt.
pub(crate) fn compat_images(options: &ExecOptions) -> Result<Vec<Part>, Problem> {
    let paths = options.guide.image.iter();
    paths.map(|path| compat::image(path)).collect()
}

/// Runs a slash command on a stored session: the given one, or the latest one in this folder. It runs in the
/// session's folder.
pub(crate) async fn kept(
    line: String,
    session: Option<String>,
    mut options: SettingsOptions,
) -> Result<Exit, Problem> {
    let style = Style::detect(false, &environment::var);
    let which = session.map_or(SessionChoice::Latest, SessionChoice::Called);
    let keeper = SessionStore::open(&which)?;
    let mut cwd = working_directory(None)?;
    let found = session_choice::found(&*keeper.store, &which, &cwd).await?;
    let held = match &found {
        Some(info) => keeper
            .store
            .holder(&info.id)
            .await
            .map_err(session_choice::problem)?,
        None => None,
    };
    if let (Some(info), Some(_), "/checkpoint list") = (&found, &held, line.as_str()) {
        return checkpoints_of_held(info);
    }
    // A session that another process has open is looked at in a copy.
    let fork = held.is_some() && line.starts_with("/context show");
    if let Some(info) = found {
        let place = PathBuf::from(info.place);
        if place.is_dir() {
            cwd = place;
        }
        // The model used last is the one that would be used next.
        if let (None, None, Some((provider, model))) = (&options.provider, &options.model, info.model) {
            options.provider = Some(provider);
            options.model = Some(model);
        }
    }
    let mut given = options.given();
    let settings = match environment::settings(&given, &cwd) {
        Ok(settings) => Arc::new(settings),
        // The command still works if the session's provider no longer exists.
        Err(_) => {
            given = Given::default();
            Arc::new(environment::settings(&given, &cwd)?)
        }
    };
    let job = Job {
        prompt: line,
        is_command: true,
        schema: None,
        format: OutputFormat::Text,
        require_done: false,
        style,
        interactive: false,
        which,
        fork,
        given,
        watch: Watch::default(),
        extras: Extras::default(),
    };
    let models = Models::unsent(&settings).await;
    let store = Arc::clone(&keeper.store);
    let result = run(&settings, &models, cwd, job, keeper).await?;
    if fork {
        let copy = SessionId::from(result.session);
        store.delete(&copy).await.map_err(session_choice::problem)?;
    }
    Ok(result.exit)
}

/// Lists the checkpoints of a session that another process works in.
fn checkpoints_of_held(info: &SessionInfo) -> Result<Exit, Problem> {
    let folder = environment::folders()?.checkpoints();
    let failed = |error: std::io::Error| Problem::new(ProblemKind::Failed, error.to_string());
    let place = std::fs::canonicalize(&info.place).unwrap_or_else(|_| PathBuf::from(&info.place));
    let all = windlass_checkpoint::recorded(&folder, &place, &info.id).map_err(failed)?;
    crate::print_text(&plain(&format::checkpoints(all, environment::clock().now())))
}

/// Connects before the turn starts, so that connection problems have their own exit code.
async fn connect(models: &Models, style: Style) -> Result<(), Problem> {
    for notice in models.connect().await?.take_notices() {
        style.note(&notice);
    }
    Ok(())
}

/// Options of one run.
pub(crate) struct Job {
    pub(crate) prompt: String,
    /// True if the prompt is a slash command.
    pub(crate) is_command: bool,
    pub(crate) schema: Option<AnswerSchema>,
    pub(crate) format: OutputFormat,
    pub(crate) require_done: bool,
    pub(crate) style: Style,
    /// True if permission requests are asked on the terminal.
    pub(crate) interactive: bool,
    /// The session the run belongs to.
    pub(crate) which: SessionChoice,
    /// True if the session is copied first.
    pub(crate) fork: bool,
    /// Settings from the command line.
    pub(crate) given: Given,
    /// Observes the run.
    pub(crate) watch: Watch,
    pub(crate) extras: Extras,
}

/// Options of a run that most runs do not use.
#[derive(Default)]
pub(crate) struct Extras {
    /// Images sent with the prompt.
    pub(crate) images: Vec<Part>,
    /// Maximum duration of the run.
    pub(crate) timeout: Option<Duration>,
    /// File that gets the answer.
    pub(crate) last_message: Option<PathBuf>,
    /// Messages from standard input, instead of a prompt.
    pub(crate) lines: Option<MessageLines>,
    /// Id and name of a new session.
    pub(crate) new: NewSession,
}

/// Runs a job to its end, including its output, and leaves no process behind.
pub(crate) async fn run(
    settings: &Arc<Settings>,
    models: &Models,
    cwd: PathBuf,
    mut job: Job,
    keeper: SessionStore,
) -> Result<RunResult, Problem> {
    let begun = Instant::now();
    let plan = Plan {
        cwd,
        which: job.which.clone(),
        fork: job.fork,
        require_done: job.require_done,
        interactive: job.interactive,
        given: job.given.clone(),
        watch: job.watch.clone(),
        new: std::mem::take(&mut job.extras.new),
    };
    let signals = Signals::begin();
    let engine = Engine::start(settings, models, plan, keeper).await?;
    let session = engine.session.id.clone();
    let mut runner = Runner {
        client: &engine.backend,
        session: session.clone(),
        printer: printer(job.format, job.style),
        signals: signals.ready(),
        totals: Totals::default(),
        interactive: job.interactive,
        went_to: None,
        heartbeat: tokio::time::interval(Duration::from_millis(120)),
        is_dirty: false,
        is_broken: false,
        deadline: job
            .extras
            .timeout
            .map(|limit| tokio::time::Instant::now() + limit),
        is_late: false,
    };
    let mut lines = job.extras.lines.take();
    let outcome = if job.is_command {
        let last = engine.past.as_ref().map_or(0, |past| past.last_seq);
        runner.command(&job, models, last).await
    } else {
        if let Some(info) = &engine.past {
            job.style
                .note(&format!("resuming {}", session_choice::line(info)));
            runner.tell_queue(job.style).await;
        }
        match &mut lines {
            Some(lines) => runner.messages(&job, lines).await,
            None => Ok(runner.work(&job, vec![Part::text(job.prompt.clone())]).await),
        }
    };
    let ended = outcome.map(|outcome| runner.finish(outcome, begun, job.extras.last_message.as_deref()));
    let only_looked = engine.past.is_none() && job.is_command;
    engine
        .stop(Some(&session).filter(|_| only_looked).as_slice())
        .await;
    ended
}

struct Runner<'a> {
    client: &'a Service,
    session: SessionId,
    printer: Box<dyn Printer>,
    signals: Signals,
    totals: Totals,
    interactive: bool,
    /// The session that a command switched to.
    went_to: Option<SessionId>,
    heartbeat: tokio::time::Interval,
    /// True if there is output that was not flushed.
    is_dirty: bool,
    /// True if nobody reads the output any more.
    is_broken: bool,
    /// End of the time that the run may take.
    deadline: Option<tokio::time::Instant>,
    /// True once that time is over.
    is_late: bool,
}

impl Runner<'_> {
    /// Prints the result.
    fn finish(&mut self, outcome: Outcome, begun: Instant, file: Option<&Path>) -> RunResult {
        let mut result = RunResult {
            session: self.went_to.as_ref().unwrap_or(&self.session).to_string(),
            exit: outcome.exit,
            answer: outcome.answer,
            structured: outcome.structured,
            problem: outcome.problem,
            totals: self.totals.clone(),
            duration_ms: millis_since(begun),
        };
        if let Some(file) = file {
            let written = std::fs::write(file, result.answer.as_deref().unwrap_or_default());
            if let (Err(error), None) = (written, &result.problem) {
                result.exit = Exit::Failed;
                let message = format!("--output-last-message {}: {error}", file.display());
                result.problem = Outcome::failed(Exit::Failed, "output", message, None).problem;
            }
        }
        if self.printer.finish(&result).is_err() {
            result.exit = Exit::BrokenPipe;
        }
        result
    }

    /// Reports messages that were already queued when the session was left; they are sent first.
    async fn tell_queue(&self, style: Style) {
        let overview = self.client.overview(&self.session).await;
        let waits = overview.map_or(0, |overview| overview.queue.len());
        if waits > 0 {
            style.note(&format!("queued messages are sent first: {waits}"));
        }
    }

    /// Runs the prompt, then checks the schema and `--require-done`.
    async fn work(&mut self, job: &Job, mut parts: Vec<Part>) -> Outcome {
        parts.extend(job.extras.images.iter().cloned());
        if let Some(schema) = &job.schema {
            parts.push(Part::text(schema.instruction()));
        }
        let mut outcome = self.turn(parts).await;
        if let Some(schema) = &job.schema {
            outcome = self.conform(schema, outcome).await;
        }
        if job.require_done && outcome.exit == Exit::Ok && !outcome.done {
            outcome.exit = Exit::Failed;
            let message = "the model answered without calling `done`".to_owned();
            outcome.problem = Some(Trouble {
                kind: "not_done".to_owned(),
                message,
                hint: None,
            });
        }
        outcome
    }

    /// Sends each message of standard input when the turn before it has ended. The last result counts, unless a
    /// turn failed.
    async fn messages(&mut self, job: &Job, lines: &mut MessageLines) -> Result<Outcome, Problem> {
        let mut last = None;
        while let Some(parts) = lines.next(&self.signals).await? {
            let outcome = self.work(job, parts).await;
            let has_failed = outcome.exit != Exit::Ok;
            last = Some(outcome);
            if has_failed {
                break;
            }
        }
        last.ok_or_else(|| Problem::usage("there is no message on standard input"))
    }

    async fn turn(&mut self, parts: Vec<Part>) -> Outcome {
        match self.submit(parts).await {
            Ok(events) => self.watch(events).await,
            Err(error @ ClientError::Busy(_)) => {
                let hint = advice(&error).map(str::to_owned);
                Outcome::failed(Exit::Busy, "busy", error.to_string(), hint)
            }
            Err(error @ ClientError::Empty) => Outcome::failed(Exit::Usage, "empty", error.to_string(), None),
            Err(error) => {
                let problem = not_begun(error);
                Outcome::failed(problem.kind.into(), "store", problem.to_string(), None)
            }
        }
    }

    /// Submits a message to the session. A signal in the meantime cancels the turn it starts.
    async fn submit(&mut self, parts: Vec<Part>) -> Result<EventStream, ClientError> {
        let (client, session) = (self.client, self.session.clone());
        let mut submitted = client.submit(Submission {
            session: session.clone(),
            parts,
            on_busy: OnBusy::Refuse,
            id: None,
        });
        tokio::select! {
            biased;
            () = self.signals.interrupted() => {}
            submitted = &mut submitted => return submitted,
        }
        // The message may be in the middle of being stored, or the service may not have received it yet.
        client.cancel(&session).await;
        let submitted = submitted.await;
        client.cancel(&session).await;
        submitted
    }

    /// Prints the events of a turn to their end. A signal or a closed output cancels the turn.
    async fn watch(&mut self, mut events: EventStream) -> Outcome {
        let mut ended_by_tool = false;
        let mut last = None;
        while let Some(envelope) = self.next(&mut events).await {
            if let Event::ToolResult { name, is_error, .. } = &envelope.event {
                ended_by_tool = name == "done" && !is_error;
            }
            if envelope.event.is_terminal() {
                let outcome = match Outcome::of(&envelope.event, self.signals.exit()) {
                    outcome if self.is_late && outcome.answer.is_none() => outcome.late(),
                    outcome => outcome,
                };
                last = Some(Outcome {
                    exit: self.exit(outcome.exit),
                    done: ended_by_tool,
                    ..outcome
                });
            }
        }
        let text = "the event stream ended before the turn did".to_owned();
        last.unwrap_or_else(|| Outcome::failed(Exit::Failed, "lost", text, None))
    }

    /// Returns the exit code, unless the output was closed.
    fn exit(&self, exit: Exit) -> Exit {
        if self.is_broken { Exit::BrokenPipe } else { exit }
    }

    /// Returns the next event, after it was printed and any question in it was answered.
    async fn next(&mut self, events: &mut EventStream) -> Option<Envelope> {
        let deadline = self.deadline.unwrap_or_else(tokio::time::Instant::now);
        let envelope = loop {
            tokio::select! {
                biased;
                () = self.signals.interrupted() => {
                    self.client.cancel(&self.session).await;
                }
                () = tokio::time::sleep_until(deadline), if self.deadline.is_some() && !self.is_late => {
                    self.is_late = true;
                    self.client.cancel(&self.session).await;
                }
                envelope = events.next() => break envelope?,
                // Flush only when no event is waiting: a flush per event would cost a system call each.
                () = std::future::ready(()), if self.is_dirty => {
                    self.is_dirty = false;
                    self.is_broken |= self.printer.idle().is_err();
                }
                _ = self.heartbeat.tick() => self.printer.tick(),
            }
        };
        self.totals.count(&envelope.event);
        self.is_broken |= self.printer.event(&envelope).is_err();
        self.is_dirty = true;
        self.ask(&envelope.event).await;
        if self.is_broken {
            self.client.cancel(&self.session).await;
        }
        Some(envelope)
    }

    /// Shows a request of the turn and returns the reply. A signal while it waits cancels the turn.
    async fn ask(&mut self, event: &Event) {
        let Event::Waiting(asking) = event else { return };
        let (Waiting::PermissionRequest { call_id, .. } | Waiting::Question { call_id, .. }) = asking else {
            return;
        };
        if !self.interactive {
            return;
        }
        let mut typed = asking::Typed;
        let reply = tokio::select! {
            biased;
            () = self.signals.interrupted() => None,
            reply = asking::ask(asking, &mut typed) => reply,
        };
        match reply {
            Some(reply) => self.client.reply(&self.session, call_id, reply).await,
            None => self.client.cancel(&self.session).await,
        };
    }

    /// Checks the answer against the schema; an invalid answer is sent back once.
    async fn conform(&mut self, schema: &AnswerSchema, first: Outcome) -> Outcome {
        let Some(answer) = first.answer.as_deref().filter(|_| first.exit == Exit::Ok) else {
            return first;
        };
        let complaint = match schema.check(answer) {
            Ok(value) => return first.conforming(value),
            Err(complaint) => complaint,
        };
        let second = self
            .turn(vec![Part::text(schema.repair_prompt(&complaint))])
            .await;
        let Some(answer) = second.answer.as_deref().filter(|_| second.exit == Exit::Ok) else {
            return second;
        };
        match schema.check(answer) {
            Ok(value) => second.conforming(value),
            Err(complaint) => {
                let message = format!("the answer does not match {}: {complaint}", schema.name());
                Outcome {
                    answer: second.answer,
                    ..Outcome::failed(Exit::Schema, "schema", message, None)
                }
            }
        }
    }
}
