//! `windlass` without a command: everything up to the front end of an interactive session.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use windlass_api::{Backend, Client, Connections, OnBusy, Part, SessionInfo, Submission};
use windlass_core::log::{LogError, Preferences, Store};
use windlass_service::ModelSwitch;

use crate::cron::{InSession, News};
use crate::engine::{Engine, ModelRuntime, Plan, not_begun, working_directory};
use crate::exec;
use crate::exit::Exit;
use crate::observe::Wanted;
use crate::output::Style;
use crate::repl::{self, Spoken};
use crate::session_choice::{self, NewSession, PickBy, SessionChoice, SessionStore};
use crate::terminal::tell_last;
use crate::{asking, attach, session_folder, terminal_ui, trust};
use windlass_args::{ExecOptions, FrontOptions, OutputFormat};
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::environment::Given;
use windlass_config::settings::Settings;
use windlass_host::connect::{SIM, choose};
use windlass_host::model_preference::ModelPreference;

/// Number of lines that a front end may be late.
pub(crate) const NEWS: usize = 64;
/// Notice when no key was found and the simulated model is used.
const NO_KEY: &str = "no API key found: using the simulated model. /connect sets up a real one";

/// Runs an interactive session.
pub(crate) async fn interactive(
    options: &ExecOptions,
    front: &FrontOptions,
    first: Option<String>,
) -> Result<Exit, Problem> {
    check(options, front)?;
    repl::check_input()?;
    let is_plain = front.plain || environment::var("TERM").is_some_and(|term| term == "dumb");
    let style = style(options, is_plain);
    let (which, fork) = SessionChoice::of(&options.session)?;
    let new = NewSession::of(&options.session)?;
    let images = exec::compat_images(options)?;
    let keeper = SessionStore::begin(&which)?;
    let cwd = working_directory(options.cd.as_deref())?;
    let is_somebody_there = asking::somebody_is_there();
    let by = PickBy::of(is_somebody_there, is_plain);
    let which = session_choice::picked(&*keeper.store, which, &cwd, by).await?;
    if let Some(held) = attach::holder(&keeper, &which, fork, &cwd).await? {
        let look = (style, is_plain, front.full_screen);
        return attach::to_own_server(&keeper, held, &options.settings, look).await;
    }
    let given = exec::given(options, &cwd)?;
    // Invalid settings are reported below; they allow nothing.
    if let Ok(settings) = environment::settings(&given, &cwd) {
        session_folder::check(&settings, &cwd, is_somebody_there)?;
    }
    if is_somebody_there {
        trust::offer(&environment::folders()?, &cwd);
    }
    let wanted = wanted(options);
    let Ready {
        settings,
        given,
        lines,
        keeper,
        notices,
    } = Ready::make(given, keeper, &which, &cwd, wanted).await?;
    let keeps = which != SessionChoice::Ephemeral;
    let plan = Plan {
        cwd,
        which,
        fork,
        require_done: false,
        // Lines from a pipe are messages, never answers to a request.
        interactive: is_somebody_there,
        given,
        watch: lines.watch.clone(),
        new,
    };
    let preferences: Arc<dyn Preferences> = Arc::clone(&keeper.store) as _;
    let store = Arc::clone(&keeper.store);
    let engine = Engine::start(&settings, &lines.models, plan, keeper).await?;
    // A session that is not saved has a store of its own, without the slots of jobs.
    let news = News::new(NEWS);
    let jobs = keeps
        .then(|| InSession::start(&store, &options.settings, &news))
        .flatten();
    let backend: Arc<dyn Backend> = Arc::clone(&engine.backend) as _;
    let scene = Scene {
        backend: &backend,
        session: &engine.session,
        past: engine.past.as_ref(),
        settings: &settings,
        model: active(&lines),
        connections: &engine.connections,
        preferences: &preferences,
        notices: Notices {
            first: &notices,
            later: &news,
        },
        style,
        is_plain,
        is_somebody_there,
        keeps,
    };
    begin_with(&engine, first, images).await?;
    let spoken = front_end(&scene, front.full_screen).await;
    if let Some(jobs) = jobs {
        jobs.stop().await;
    }
    stop(engine, &spoken).await;
    let spoken = spoken?;
    if spoken.has_talked && keeps && !style.quiet && is_in_place(&*store).await {
        tell_last(format!("Resume with: windlass --resume {}", spoken.session));
    }
    Ok(spoken.exit)
}

/// Returns false if the database was removed or replaced: the session in it cannot be found any more.
async fn is_in_place(store: &dyn Store) -> bool {
    !matches!(store.sync().await, Err(LogError::ReadOnly(_)))
}

/// Returns the style of output; plain output has no colors and nothing that moves.
fn style(options: &ExecOptions, is_plain: bool) -> Style {
    let detected = exec::style(&options.output);
    Style {
        color: detected.color && !is_plain,
        spinner: detected.spinner && !is_plain,
        ..detected
    }
}

/// Returns what the options ask to observe.
fn wanted(options: &ExecOptions) -> Wanted<'_> {
    Wanted {
        dump: options.debug_dump.as_deref(),
        ..Wanted::default()
    }
}

/// Sends the message of the command line. The front end shows the turn that it finds.
async fn begin_with(engine: &Engine, first: Option<String>, images: Vec<Part>) -> Result<(), Problem> {
    let Some(first) = first else { return Ok(()) };
    let mut parts = vec![Part::text(first)];
    parts.extend(images);
    let submission = Submission {
        session: engine.session.id.clone(),
        parts,
        on_busy: OnBusy::Queue,
        id: None,
    };
    let submitted = engine.backend.submit(submission).await;
    submitted.map(drop).map_err(not_begun)
}

/// Stops an engine, and removes the sessions that were not used.
async fn stop(engine: Engine, spoken: &Result<Spoken, Problem>) {
    let begun = engine.session.id.clone();
    let last = spoken.as_ref().ok().map(|spoken| spoken.session.clone());
    let new = engine.past.is_none().then_some(&begun);
    let unused: Vec<_> = new.into_iter().chain(last.as_ref()).collect();
    engine.stop(&unused).await;
}

/// Lines for the user that are not part of a session.
pub(crate) struct Notices<'a> {
    /// Shown first.
    pub(crate) first: &'a [String],
    /// Shown when they come.
    pub(crate) later: &'a News,
}

/// Returns the provider and the model, if there are any.
fn active(lines: &ModelRuntime) -> Option<String> {
    let (provider, model) = lines.models.active().ok()?;
    Some(format!("{provider} {model}"))
}

/// Everything a front end works with.
pub(crate) struct Scene<'a> {
    pub(crate) backend: &'a Arc<dyn Backend>,
    pub(crate) session: &'a SessionInfo,
    /// The resumed session, as it was before.
    pub(crate) past: Option<&'a SessionInfo>,
    pub(crate) settings: &'a Arc<Settings>,
    /// Provider and model, if there are any.
    pub(crate) model: Option<String>,
    pub(crate) connections: &'a Arc<dyn Connections>,
    /// Store of small choices.
    pub(crate) preferences: &'a Arc<dyn Preferences>,
    pub(crate) notices: Notices<'a>,
    pub(crate) style: Style,
    /// True for plain line-by-line output, without redrawing.
    pub(crate) is_plain: bool,
    /// True if a user can answer requests.
    pub(crate) is_somebody_there: bool,
    /// True if the session is saved.
    pub(crate) keeps: bool,
}

/// Chooses the front end; no other code does. Every front end leaves the terminal as it found it.
pub(crate) async fn front_end(scene: &Scene<'_>, full_screen: bool) -> Result<Spoken, Problem> {
    if !scene.is_plain && terminal_ui::is_possible() {
        return terminal_ui::run(scene, full_screen).await;
    }
    greet(scene).await;
    repl::run(scene).await
}

/// Prints the notices at the start of a session.
async fn greet(scene: &Scene<'_>) {
    let style = scene.style;
    for warning in &scene.settings.warnings {
        style.warn(warning);
    }
    if let Some(past) = scene.past {
        style.note(&format!("resuming {}", session_choice::line(past)));
    }
    for notice in scene.notices.first {
        style.note(notice);
    }
    if scene.is_somebody_there
        && let Ok(overview) = scene.backend.overview(&scene.session.id).await
        && !overview.surroundings.instructions.is_empty()
    {
        let names = overview.surroundings.instructions.join(", ");
        style.note(&format!("instructions read: {names}"));
    }
    if scene.is_somebody_there {
        let model = scene.model.as_ref().map(|model| format!("{model} · "));
        let model = model.unwrap_or_default();
        style.note(&format!("{model}/help lists the commands · Ctrl+D quits"));
    }
}

/// Rejects options that need a prompt or a terminal.
fn check(options: &ExecOptions, front: &FrontOptions) -> Result<(), Problem> {
    let has_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if front.full_screen && !has_terminal {
        let text = "--full-screen needs a terminal: standard input and standard output must be one";
        return Err(Problem::usage(text));
    }
    let flags = [
        (options.output.format() != OutputFormat::Text, "--output-format"),
        (options.output.output_schema.is_some(), "--output-schema"),
        (options.goal.require_done, "--require-done"),
        (options.goal.goal.is_some(), "--goal"),
    ];
    match flags.iter().find(|(is_given, _)| *is_given) {
        None => Ok(()),
        Some((_, flag)) => Err(Problem::usage(format!(
            "{flag} is for a run with a prompt: write `windlass exec {flag} … \"<prompt>\"`"
        ))),
    }
}

/// The prepared settings, store and models.
pub(crate) struct Ready {
    pub(crate) settings: Arc<Settings>,
    pub(crate) given: Given,
    pub(crate) lines: ModelRuntime,
    pub(crate) keeper: SessionStore,
    pub(crate) notices: Vec<String>,
}

impl Ready {
    pub(crate) async fn make(
        mut given: Given,
        keeper: SessionStore,
        which: &SessionChoice,
        cwd: &Path,
        wanted: Wanted<'_>,
    ) -> Result<Self, Problem> {
        let (mut settings, mut lines) = models(&given, &keeper, which, cwd, wanted).await?;
        let notices = if lines.models.active().is_err() && has_no_key(&settings) {
            // As if given on the command line, so that reloading the settings does not change it.
            given.provider = Some(SIM.to_owned());
            (settings, lines) = models(&given, &keeper, which, cwd, wanted).await?;
            // The notice replaces those of the connection.
            lines.models.connect().await?.take_notices();
            vec![NO_KEY.to_owned()]
        } else {
            match lines.models.connect().await {
                Ok(line) => line.take_notices(),
                // Turns report the problem again, and commands can fix it.
                Err(problem) if problem.kind.is_of_provider() => vec![problem.message],
                Err(problem) => return Err(problem),
            }
        };
        Ok(Self {
            settings,
            given,
            lines,
            keeper,
            notices,
        })
    }
}

/// Reads the settings and creates the models they name.
async fn models(
    given: &Given,
    keeper: &SessionStore,
    which: &SessionChoice,
    cwd: &Path,
    wanted: Wanted<'_>,
) -> Result<(Arc<Settings>, ModelRuntime), Problem> {
    let settings = Arc::new(environment::settings(given, cwd)?);
    let remembered = ModelPreference::of_local(&settings, Arc::clone(&keeper.store) as _);
    let lines = ModelRuntime::new(&settings, keeper, which, remembered, wanted).await?;
    Ok((settings, lines))
}

/// Returns true if no model is configured and none can be found.
fn has_no_key(settings: &Settings) -> bool {
    let is_silent = settings.provider.is_none() && settings.model.is_none();
    is_silent && choose(settings, &environment::var).is_err_and(|problem| problem.kind.is_of_provider())
}
