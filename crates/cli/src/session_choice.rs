//! The session a run belongs to, and the session store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use windlass_api::{Begin, Label, SessionId, SessionInfo};
use windlass_core::clock::{Clock, SystemClock, Timestamp};
use windlass_core::log::{LogError, SessionQuery, Store, UserName};
use windlass_service::{format, past};

use crate::db::advice;
use crate::signals::asked_to_end;
use crate::terminal::tell;
use windlass_args::{Cli, SessionOptions, SettingsOptions};
use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};

/// Maximum number of sessions listed in a message.
const MAX_SHOWN: usize = 10;

/// The session to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// A new session.
    New,
    /// A new session that is not saved.
    Ephemeral,
    /// The latest session of this folder.
    Latest,
    /// The session with this name or id.
    Called(String),
    /// The session that the user chooses from a list.
    Picked,
}

/// Id and name of a new session.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewSession {
    id: Option<SessionId>,
    name: Option<String>,
}

impl NewSession {
    pub(crate) fn of(options: &SessionOptions) -> Result<Self, Problem> {
        let resumes = options.resume.is_some() || options.continue_last;
        let flag = match (&options.session_id, &options.name) {
            (Some(_), _) => "--session-id",
            _ => "--name",
        };
        let new = Self {
            id: options
                .session_id
                .as_ref()
                .map(|id| SessionId::from(id.to_lowercase())),
            name: options.name.clone(),
        };
        if resumes && !options.fork && (new.id.is_some() || new.name.is_some()) {
            return Err(Problem::usage(format!(
                "{flag} is for a new session: add --fork to continue in a copy"
            )));
        }
        if let Some(id) = new.id.as_ref().filter(|id| !id.is_uuid()) {
            return Err(Problem::usage(format!(
                "--session-id {id}: expected a UUID, as in 123e4567-e89b-42d3-a456-426614174000; --name takes any name"
            )));
        }
        Ok(new)
    }

    fn label(&self) -> Label {
        Label {
            name: self.name.clone(),
            ..Label::default()
        }
    }
}

impl SessionChoice {
    pub(crate) fn of(options: &SessionOptions) -> Result<(Self, bool), Problem> {
        let which = match &options.resume {
            Some(called) if called.is_empty() && options.continue_last => Self::Latest,
            Some(_) if options.continue_last => {
                return Err(Problem::usage(
                    "--continue and --resume name two sessions: use one of them",
                ));
            }
            Some(called) if called.is_empty() => Self::Picked,
            Some(called) => Self::Called(called.clone()),
            None if options.continue_last => Self::Latest,
            None if options.ephemeral => Self::Ephemeral,
            None => Self::New,
        };
        let goes_on = matches!(which, Self::Latest | Self::Called(_) | Self::Picked);
        if options.fork && !goes_on {
            return Err(Problem::usage(
                "--fork copies a session: name it with --resume, or use the latest one with --continue",
            ));
        }
        Ok((which, options.fork))
    }
}

/// The session store. A temporary one is deleted with this value.
pub(crate) struct SessionStore {
    pub(crate) store: Arc<dyn Store>,
}

impl SessionStore {
    /// Opens the user's store, or a temporary one for this run.
    pub(crate) fn open(which: &SessionChoice) -> Result<Self, Problem> {
        let store = windlass_store::open(url(which)?, clock()).map_err(problem)?;
        Ok(Self { store })
    }

    /// Starts opening the store in the background.
    pub(crate) fn begin(which: &SessionChoice) -> Result<Self, Problem> {
        let store = windlass_store::begin(url(which)?, clock()).map_err(problem)?;
        Ok(Self { store })
    }

    /// Waits until the store is open.
    pub(crate) async fn ready(&self) -> Result<(), Problem> {
        self.store.ready().await.map_err(problem)
    }
}

/// Size of the largest settings file that is looked into.
const MAX_SETTINGS: u64 = 1 << 20;

/// URL of the store that this process uses instead of the database in the data folder.
static CHOSEN: OnceLock<String> = OnceLock::new();

/// SES-1: chooses the store of this process: `--store`, or the setting. Settings are read here only if they mention it,
/// because the store is opened while they are read.
pub(crate) fn choose_store(cli: &Cli) -> Result<(), Problem> {
    let url = match &cli.store {
        Some(url) => Some(url.clone()),
        None => set_store(cli.settings())?,
    };
    if let Some(url) = url {
        // Checked now, so that a mistake is reported before anything else happens.
        windlass_store::shown(&url).map_err(foreign_problem)?;
        let _ = CHOSEN.set(url);
    }
    Ok(())
}

/// Returns the store that the settings name.
fn set_store(options: Option<&SettingsOptions>) -> Result<Option<String>, Problem> {
    let Ok(folders) = environment::folders() else {
        return Ok(None);
    };
    let given = options.map(SettingsOptions::given).unwrap_or_default();
    let file = given.config.clone().unwrap_or_else(|| folders.user_file());
    let profile = given.profile.as_deref().map(|name| folders.profile_file(name));
    let mentions = |file: PathBuf| {
        // A pipe can be read only once, by the settings.
        let text = windlass_sandbox::read_regular(&file, MAX_SETTINGS).unwrap_or_default();
        String::from_utf8_lossy(&text)
            .lines()
            .any(|line| line.trim_start().starts_with("store"))
    };
    let is_set = environment::var("WINDLASS_STORE").is_some()
        || given
            .set
            .iter()
            .any(|pair| pair.trim_start().starts_with("store"))
        || mentions(file)
        || profile.is_some_and(mentions);
    if !is_set {
        return Ok(None);
    }
    let cwd = environment::current_dir().unwrap_or_default();
    let settings = environment::settings(&given, &cwd)?;
    Ok(settings.agent.session.store.map(|store| store.0))
}

/// Returns the URL of the store if it is not the database in the data folder.
pub(crate) fn chosen_store() -> Option<&'static str> {
    CHOSEN.get().map(String::as_str)
}

/// Returns the path of the user's database.
pub(crate) fn database() -> Result<PathBuf, Problem> {
    Ok(environment::folders()?.data.join("windlass.db"))
}

/// The user's store.
pub(crate) fn store() -> Result<Arc<dyn Store>, Problem> {
    SessionStore::open(&SessionChoice::New).map(|keeper| keeper.store)
}

/// URL of the store for a choice.
fn url(which: &SessionChoice) -> Result<OsString, Problem> {
    if *which == SessionChoice::Ephemeral {
        let mut url = OsString::from("ephemeral:");
        url.push(environment::folders()?.ephemeral());
        return Ok(url);
    }
    if let Some(url) = chosen_store() {
        return Ok(url.into());
    }
    let mut url = OsString::from("sqlite:");
    url.push(database()?);
    Ok(url)
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

/// Returns how to start the session, its id, and the session that is resumed.
pub(crate) async fn begin(
    store: &dyn Store,
    (which, wanted): (&SessionChoice, &NewSession),
    fork: bool,
    cwd: &Path,
) -> Result<(Begin, SessionId, Option<SessionInfo>), Problem> {
    let found = found(store, which, cwd).await?;
    let new = wanted.id.clone().unwrap_or_else(SessionId::generate);
    if wanted.id.is_some() && store.get(&new).await.map_err(problem)?.is_some() {
        return Err(Problem::usage(format!(
            "--session-id {new}: this session exists; --resume {new} continues it"
        )));
    }
    Ok(match found {
        None => {
            let begin = Begin::New {
                id: Some(new.clone()),
                place: cwd.display().to_string(),
                label: wanted.label(),
                parent: None,
            };
            (begin, new, None)
        }
        Some(info) if fork => {
            let begin = Begin::Fork {
                of: info.id.clone(),
                after: None,
                id: Some(new.clone()),
                place: Some(cwd.display().to_string()),
            };
            (begin, new, Some(info))
        }
        Some(info) => (Begin::Resume(info.id.clone()), info.id.clone(), Some(info)),
    })
}

/// Returns the session that is resumed, if any.
pub(crate) async fn found(
    store: &dyn Store,
    which: &SessionChoice,
    cwd: &Path,
) -> Result<Option<SessionInfo>, Problem> {
    Ok(match which {
        SessionChoice::New | SessionChoice::Ephemeral | SessionChoice::Picked => None,
        SessionChoice::Latest => Some(latest(store, cwd).await?),
        SessionChoice::Called(called) => Some(own(find(store, called).await?)?),
    })
}

/// Refuses the session of another user: what it may do and remember, and what it costs, is theirs.
fn own(info: SessionInfo) -> Result<SessionInfo, Problem> {
    match info.user.is_local() {
        true => Ok(info),
        false => Err(Problem::usage(format!(
            "session {} belongs to {}; `windlass sessions show {}` reads it",
            info.id, info.user, info.id
        ))),
    }
}

/// Way of choosing a session from a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickBy {
    /// Nobody can answer.
    Nobody,
    /// A number that is typed.
    Number,
    /// The arrow keys.
    Keys,
}

impl PickBy {
    /// Chooses by what the terminal can do.
    pub(crate) fn of(is_somebody_there: bool, is_plain: bool) -> Self {
        match is_somebody_there {
            true if is_plain => Self::Number,
            true => Self::Keys,
            false => Self::Nobody,
        }
    }
}

/// Replaces the choice from a list by the chosen session.
pub(crate) async fn picked(
    store: &dyn Store,
    which: SessionChoice,
    cwd: &Path,
    by: PickBy,
) -> Result<SessionChoice, Problem> {
    if which != SessionChoice::Picked {
        return Ok(which);
    }
    let query = SessionQuery {
        user: Some(UserName::default()),
        place: Some(cwd.display().to_string()),
        used: true,
        limit: MAX_SHOWN,
        ..SessionQuery::default()
    };
    let found = store.list(&query).await.map_err(problem)?;
    if found.is_empty() {
        // The same error as for the latest one.
        latest(store, cwd).await?;
    }
    if by == PickBy::Nobody {
        let lines: Vec<String> = found.iter().map(line).collect();
        return Err(Problem::usage(format!(
            "--resume needs a session here: its name, or the start of its id. The latest ones in this folder:\n{}",
            lines.join("\n")
        )));
    }
    let lines: Vec<String> = found
        .iter()
        .map(|info| crate::terminal::plain(&line(info)))
        .collect();
    let picked = match by {
        PickBy::Keys => windlass_tui::pick("Session to resume:", &lines, asked_to_end()).await,
        PickBy::Number | PickBy::Nobody => by_number(&lines),
    };
    let picked = picked.map_err(|error| Problem::usage(error.to_string()))?;
    match picked.and_then(|index| found.get(index)) {
        Some(info) => Ok(SessionChoice::Called(info.id.to_string())),
        None => Err(Problem::new(ProblemKind::Interrupted, "no session chosen")),
    }
}

/// Lets the user type the number of a line.
fn by_number(lines: &[String]) -> std::io::Result<Option<usize>> {
    for (number, line) in (1..).zip(lines) {
        tell!("{number:>3}  {line}");
    }
    tell!("Number of the session to resume (Enter: 1, q: none):");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    let number = match answer.trim() {
        "" if !answer.is_empty() => 1,
        text => text.parse::<usize>().unwrap_or(0),
    };
    Ok(number.checked_sub(1))
}

async fn latest(store: &dyn Store, cwd: &Path) -> Result<SessionInfo, Problem> {
    let query = SessionQuery {
        user: Some(UserName::default()),
        place: Some(cwd.display().to_string()),
        // There is nothing to continue in a session that was never used.
        used: true,
        limit: 1,
        ..SessionQuery::default()
    };
    let found = store.list(&query).await.map_err(problem)?;
    found.into_iter().next().ok_or_else(|| {
        Problem::usage(format!(
            "there is no session in {} to continue; `windlass sessions list --all` shows all",
            cwd.display()
        ))
    })
}

/// Returns the only session with this id, name, or start of an id.
pub(crate) async fn find(store: &dyn Store, called: &str) -> Result<SessionInfo, Problem> {
    let mut found = past::find(store, None, called).await.map_err(problem)?;
    match found.len() {
        0 => Err(nothing(store, called).await?),
        1 => Ok(found.swap_remove(0)),
        count => {
            let mut lines: Vec<String> = found.iter().take(MAX_SHOWN).map(line).collect();
            if count > MAX_SHOWN {
                lines.push("… and more".to_owned());
            }
            Err(Problem::usage(format!(
                "{called} matches several sessions; give more of the id:\n{}",
                lines.join("\n")
            )))
        }
    }
}

/// Returns the error that there is no such session, with a list of recent ones.
async fn nothing(store: &dyn Store, called: &str) -> Result<Problem, Problem> {
    let query = SessionQuery {
        user: Some(UserName::default()),
        limit: 5,
        ..SessionQuery::default()
    };
    let last = store.list(&query).await.map_err(problem)?;
    let mut text = format!("there is no session {called}");
    if !last.is_empty() {
        let lines: Vec<String> = last.iter().map(line).collect();
        text.push_str(&format!(
            "; `windlass sessions list --all` shows all. The latest ones:\n{}",
            lines.join("\n")
        ));
    }
    Ok(Problem::usage(text))
}

/// Deletes a session that was created for this run and never used, as by a command that only reads.
pub(crate) async fn drop_unused(store: &dyn Store, session: &SessionId) {
    if let Ok(Some(info)) = store.get(session).await
        && info.last_seq == 0
        && info.label == Label::default()
    {
        // If this fails, a harmless empty session remains.
        let _ = store.delete(session).await;
    }
}

/// Formats a session on one line.
pub(crate) fn line(info: &SessionInfo) -> String {
    let name = info.label.name.as_deref().map(|name| format!("{name}: "));
    format!(
        "{}  {}  {:<9} {:>8}  {}{}",
        info.id,
        format::column(info.totals.messages, "message", 4),
        format::standing(info.standing),
        ago(info.updated_at.0),
        name.unwrap_or_default(),
        info.label.title.as_deref().unwrap_or("untitled")
    )
}

/// Formats a time as a rough age.
pub(crate) fn ago(time: u64) -> String {
    Timestamp(time).ago(SystemClock::default().now())
}

/// Returns the path of the database of this process; `None` for a database on a server.
fn database_in_use() -> Option<PathBuf> {
    match chosen_store() {
        None => database().ok(),
        Some(url) if windlass_store::is_shared(url).ok()? => None,
        Some(url) => windlass_store::shown(url).ok().map(PathBuf::from),
    }
}

/// Converts an error of a store that is not that of this process.
pub(crate) fn foreign_problem(error: LogError) -> Problem {
    Problem::new(ProblemKind::Store, error.to_string())
}

/// Converts an error of the store, with its exit code and the user's next step.
pub(crate) fn problem(error: LogError) -> Problem {
    let kind = match error {
        LogError::Busy { .. } => ProblemKind::Busy,
        LogError::Unknown(_) => ProblemKind::Usage,
        _ => ProblemKind::Store,
    };
    let advice = database_in_use().and_then(|path| advice(&path, &error));
    let advice = advice.map(|advice| format!("\n{advice}")).unwrap_or_default();
    Problem::new(kind, format!("{error}{advice}"))
}
