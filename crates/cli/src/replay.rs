//! `windlass replay`: replays a session offline, or starts a new session from one of its requests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use windlass_api::{Begin, Client, Event, Message, Part, Role, SessionId, SessionInfo};
use windlass_core::clock::SystemClock;
use windlass_core::log::{Entry, Exchange, Frame, Store};
use windlass_core::provider::Provider;
use windlass_core::text::count;
use windlass_replay::{RecordedChoices, Replay, ReplayProviders, ReplayRecording, ReplayVerdict, TurnAgain};
use windlass_service::{Options, Service};
use windlass_sim::{Brain, Recorded, SimHandle};
use windlass_tools::{BackgroundJobs, TodoList};

use crate::exit::Exit;
use crate::session_choice;
use crate::terminal::Stdout;
use crate::{editor, engine, exec};
use windlass_args::{ExecOptions, ReplaySessionOptions, SessionOptions, SettingsOptions};
use windlass_config::environment;
use windlass_config::settings::Settings;
use windlass_config::{Problem, ProblemKind};
use windlass_host::connect::{connect_recorded, start_sim};
use windlass_host::context_parts::ContextParts;
use windlass_host::factory::{LocalFactory, SessionSpec};
use windlass_host::local_env::limits;
use windlass_host::models::Models;

/// Runs the command.
pub(crate) async fn replay(options: &ReplaySessionOptions) -> Result<Exit, Problem> {
    let store = session_choice::store()?;
    let info = session_choice::find(&*store, &options.session).await?;
    let exchanges = store.exchanges(&info.id).await.map_err(session_choice::problem)?;
    if exchanges.is_empty() {
        return Err(Problem::usage(format!(
            "session {} has no recording: it was imported or copied, or `session.record` is off",
            info.id
        )));
    }
    if let Some(number) = options.to.or(options.fork_at)
        && (number == 0 || number > exchanges.len())
    {
        return Err(Problem::usage(format!(
            "there is no request {number}: this session has {} recorded requests",
            exchanges.len()
        )));
    }
    let entries = store
        .entries(&info.id, 0, usize::MAX)
        .await
        .map_err(session_choice::problem)?;
    match options.fork_at {
        Some(number) => {
            let exchange = exchanges.get(number - 1);
            fork(store, &info, &entries, exchange, options).await
        }
        None => again(&store, &info, entries, exchanges, options).await,
    }
}

/// Replays the session and prints the result.
async fn again(
    store: &Arc<dyn Store>,
    info: &SessionInfo,
    entries: Vec<Entry>,
    exchanges: Vec<Exchange>,
    options: &ReplaySessionOptions,
) -> Result<Exit, Problem> {
    let place = PathBuf::from(&info.place);
    let settings = environment::settings(&options.settings.given(), &place)?;
    let reel = Arc::new(ReplayRecording::new(exchanges, options.to));
    let players = RecordedProviders {
        sim: start_sim(brain(Arc::clone(&reel))).await?,
        store: Arc::clone(store),
        settings: &settings,
    };
    let open = (TodoList::new(), BackgroundJobs::default());
    let context = ContextParts::new(&settings, open, None, &info.id)?;
    let replay = Replay {
        session: info.id.clone(),
        entries,
        reel: Arc::clone(&reel),
        limits: limits(&settings),
        hooks: context.pressure(),
        compactor: context.compactor(),
        clock: Arc::new(SystemClock::default()),
    };
    let turns = replay
        .run(&players)
        .await
        .map_err(|why| Problem::new(ProblemKind::Failed, why))?;
    tell(&turns, &reel).map_err(|error| Problem::new(ProblemKind::BrokenPipe, error.to_string()))
}

/// Returns a simulated model that answers from the recording.
fn brain(reel: Arc<ReplayRecording>) -> Brain {
    Brain::recording(move |request| {
        let exchange = reel.play(&Bytes::copy_from_slice(request))?;
        let answer = &exchange.answer;
        Some(Recorded {
            status: answer.status.unwrap_or(502),
            form: answer.form.clone(),
            body: answer.body.clone(),
            is_cut: answer.cut.is_some(),
        })
    })
}

struct RecordedProviders<'a> {
    sim: SimHandle,
    store: Arc<dyn Store>,
    settings: &'a Settings,
}

#[async_trait]
impl ReplayProviders for RecordedProviders<'_> {
    async fn provider(&self, order: RecordedChoices) -> Result<Arc<dyn Provider>, String> {
        let connected = connect_recorded(self.settings, order.choices, order.next, self.sim.url()).await;
        connected.map_err(|problem| problem.to_string())
    }

    async fn frame(&self, exchange: &Exchange) -> Result<Frame, String> {
        let digest = exchange.frame.as_deref();
        let digest = digest.ok_or("the system prompt and the tools of this turn were not recorded")?;
        let found = self
            .store
            .frame(digest)
            .await
            .map_err(|error| error.to_string())?;
        found.ok_or_else(|| {
            "the system prompt and the tools of this turn are no longer in the store".to_owned()
        })
    }
}

fn tell(turns: &[TurnAgain], reel: &ReplayRecording) -> std::io::Result<Exit> {
    let mut out = Stdout;
    let mut exit = Exit::Ok;
    for (number, turn) in turns.iter().enumerate() {
        let verdict = match &turn.verdict {
            ReplayVerdict::Same => "the same".to_owned(),
            ReplayVerdict::NotRecorded => "not recorded".to_owned(),
            ReplayVerdict::Stopped => "stopped here".to_owned(),
            ReplayVerdict::Different(why) => {
                exit = Exit::Failed;
                format!("different: {why}")
            }
        };
        let requests = count(turn.requests, "request");
        writeln!(
            out,
            "turn {:<3} {requests:<13} {verdict}   {}",
            number + 1,
            turn.prompt
        )?;
    }
    let (played, all) = (reel.played(), reel.exchanges().len());
    let is_whole = turns.iter().all(|turn| turn.verdict == ReplayVerdict::Same);
    match exit {
        Exit::Ok if !is_whole => writeln!(
            out,
            "{played} of {all} recorded requests replayed, byte for byte identical"
        )?,
        Exit::Ok => writeln!(
            out,
            "{played} of {all} recorded requests replayed, byte for byte identical; the history is identical"
        )?,
        _ => writeln!(out, "{played} of {all} recorded requests were identical")?,
    }
    Ok(exit)
}

/// Starts a new session with everything before a request; with a different input, if one is given.
async fn fork(
    store: Arc<dyn Store>,
    info: &SessionInfo,
    entries: &[Entry],
    exchange: Option<&Exchange>,
    options: &ReplaySessionOptions,
) -> Result<Exit, Problem> {
    let last = exchange.and_then(|exchange| exchange.last.as_ref());
    let message = |entry: &Entry| match &entry.event {
        Event::Message { message } => Some(Arc::clone(message)),
        _ => None,
    };
    let Some(place) = entries
        .iter()
        .position(|entry| message(entry).is_some_and(|message| Some(&message.id) == last))
    else {
        let why = "this request belongs to no message of the log, as for a summary; choose the one before or after it";
        return Err(Problem::usage(why));
    };
    let before = entries.get(..=place).unwrap_or_default();
    let input = before.iter().rev().find_map(|entry| {
        message(entry)
            .filter(|message| message.role == Role::User)
            .map(|message| (entry.seq, message))
    });
    let (after, text) = match (&options.edit, input) {
        (None, _) => (before.last().map_or(0, |entry| entry.seq), None),
        (Some(text), Some((seq, old))) => (seq.saturating_sub(1), Some(edited(text, &old).await?)),
        (Some(_), None) => return Err(Problem::usage("there is no input before this request to edit")),
    };
    let settings = environment::settings(&options.settings.given(), Path::new(&info.place))?;
    let id = copy(store, info, after, settings).await?;
    match text {
        None => {
            let mut out = Stdout;
            let told = writeln!(
                out,
                "{id}\nA new session that starts at request {}. Resume with:\n  windlass exec --resume {id} \"…\"",
                options.fork_at.unwrap_or_default()
            );
            told.map_err(|error| Problem::new(ProblemKind::BrokenPipe, error.to_string()))?;
            Ok(Exit::Ok)
        }
        Some(text) => {
            // Use the same model as the original request.
            let asked = exchange.map(|exchange| (exchange.provider.clone(), exchange.model.clone()));
            let (provider, model) = asked.unzip();
            let options = ExecOptions {
                settings: SettingsOptions {
                    provider: options.settings.provider.clone().or(provider),
                    model: options.settings.model.clone().or(model),
                    ..options.settings.clone()
                },
                cd: Some(PathBuf::from(&info.place)),
                session: SessionOptions {
                    resume: Some(id.to_string()),
                    ..SessionOptions::default()
                },
                ..ExecOptions::default()
            };
            Box::pin(exec::exec(&[text], &options)).await
        }
    }
}

async fn copy(
    store: Arc<dyn Store>,
    info: &SessionInfo,
    after: u64,
    settings: Settings,
) -> Result<SessionId, Problem> {
    let id = SessionId::generate();
    let settings = Arc::new(settings);
    let spec = SessionSpec::looking(Path::new(&info.place), id.as_str());
    let owner = windlass_store::owner();
    let factory = LocalFactory::new(&settings, &Models::new(&settings, None), spec, &owner);
    factory.prepare(Path::new(&info.place))?;
    let service = Service::new(
        store as _,
        Arc::new(factory),
        Arc::new(SystemClock::default()),
        owner,
        Options::default(),
    );
    let begin = Begin::Fork {
        of: info.id.clone(),
        after: Some(after),
        id: Some(id),
        place: None,
    };
    let made = service.begin(begin).await.map_err(engine::not_begun);
    service.close().await;
    Ok(made?.id)
}

/// Returns the new text: as given, or from an editor that shows the old one.
async fn edited(text: &str, old: &Message) -> Result<String, Problem> {
    if !text.is_empty() {
        return Ok(text.to_owned());
    }
    let old = old.parts.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.text.clone()),
        _ => None,
    });
    let Some(editor) = editor::chosen() else {
        return Err(Problem::usage(
            "--edit: give the new text, or set VISUAL or EDITOR to edit the old one",
        ));
    };
    let edited = editor::edit(&editor, &old.unwrap_or_default()).await;
    let edited = edited.map_err(|error| Problem::new(ProblemKind::Failed, format!("{editor}: {error}")))?;
    let written = edited.ok().filter(|text| !text.trim().is_empty());
    written.ok_or_else(|| Problem::usage("the new text is empty, so nothing was changed"))
}
