//! SessionChoice session a run belongs to, and where sessions are kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_api::{Begin, Label, SessionId, SessionInfo};
use windlass_core::clock::{Clock, SystemClock, Timestamp};
use windlass_core::log::{LogError, SessionQuery, Store};
use windlass_service::{format, past};

use crate::args::SessionOptions;
use windlass_config::environment;
use windlass_config::{Problem, ProblemKind};

/// How many sessions a message lists.
const MAX_SHOWN: usize = 10;

/// SessionChoice session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// A new one.
    New,
    /// A new one of which nothing is kept.
    Ephemeral,
    /// The last one of this folder.
    Latest,
    /// The one of this name or id.
    Called(String),
}

impl SessionChoice {
    pub(crate) fn of(options: &SessionOptions) -> Result<(Self, bool), Problem> {
        let which = match &options.resume {
            Some(called) => Self::Called(called.clone()),
            None if options.continue_last => Self::Latest,
            None if options.ephemeral => Self::Ephemeral,
            None => Self::New,
        };
        let goes_on = matches!(which, Self::Latest | Self::Called(_));
        if options.fork && !goes_on {
            return Err(Problem::usage(
                "--fork copies a session: name it with --resume, or take the last one with --continue",
            ));
        }
        Ok((which, options.fork))
    }
}

/// Store of a run's sessions. An ephemeral one is removed with this value.
pub(crate) struct SessionStore {
    pub(crate) store: Arc<dyn Store>,
}

impl SessionStore {
    /// Opens the store of this user, or one for this run alone.
    pub(crate) fn open(which: &SessionChoice) -> Result<Self, Problem> {
        let store = windlass_store::open(url(which)?, clock()).map_err(problem)?;
        Ok(Self { store })
    }

    /// Begins to open it, while other things are done.
    pub(crate) fn begin(which: &SessionChoice) -> Result<Self, Problem> {
        let store = windlass_store::begin(url(which)?, clock()).map_err(problem)?;
        Ok(Self { store })
    }

    /// Waits until it is open.
    pub(crate) async fn ready(&self) -> Result<(), Problem> {
        self.store.ready().await.map_err(problem)
    }
}

/// The user's database.
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
        return Ok("ephemeral:".into());
    }
    let mut url = OsString::from("sqlite:");
    url.push(database()?);
    Ok(url)
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::default())
}

/// How to begin, and the session that is gone on with.
pub(crate) async fn begin(
    store: &dyn Store,
    which: &SessionChoice,
    fork: bool,
    cwd: &Path,
) -> Result<(Begin, SessionId, Option<SessionInfo>), Problem> {
    let found = found(store, which, cwd).await?;
    let new = SessionId::generate();
    Ok(match found {
        None => {
            let begin = Begin::New {
                id: Some(new.clone()),
                place: cwd.display().to_string(),
                label: Label::default(),
                parent: None,
            };
            (begin, new, None)
        }
        Some(info) if fork => {
            let begin = Begin::Fork {
                of: info.id.clone(),
                after: None,
                id: Some(new.clone()),
            };
            (begin, new, Some(info))
        }
        Some(info) => (Begin::Resume(info.id.clone()), info.id.clone(), Some(info)),
    })
}

/// The session that is gone on with, if one is.
pub(crate) async fn found(
    store: &dyn Store,
    which: &SessionChoice,
    cwd: &Path,
) -> Result<Option<SessionInfo>, Problem> {
    Ok(match which {
        SessionChoice::New | SessionChoice::Ephemeral => None,
        SessionChoice::Latest => Some(latest(store, cwd).await?),
        SessionChoice::Called(called) => Some(find(store, called).await?),
    })
}

async fn latest(store: &dyn Store, cwd: &Path) -> Result<SessionInfo, Problem> {
    let query = SessionQuery {
        place: Some(cwd.display().to_string()),
        // One that was only begun is nothing to go on with.
        used: true,
        limit: 1,
        ..SessionQuery::default()
    };
    let found = store.list(&query).await.map_err(problem)?;
    found.into_iter().next().ok_or_else(|| {
        Problem::usage(format!(
            "there is no session in {} to go on with; `windlass sessions list --all` shows all",
            cwd.display()
        ))
    })
}

/// The one session of this id or name, or whose id begins so.
pub(crate) async fn find(store: &dyn Store, called: &str) -> Result<SessionInfo, Problem> {
    let mut found = past::find(store, called).await.map_err(problem)?;
    match found.len() {
        0 => Err(nothing(store, called).await?),
        1 => Ok(found.swap_remove(0)),
        count => {
            let mut lines: Vec<String> = found.iter().take(MAX_SHOWN).map(line).collect();
            if count > MAX_SHOWN {
                lines.push("… and more".to_owned());
            }
            Err(Problem::usage(format!(
                "{called} fits several sessions; write more of the id:\n{}",
                lines.join("\n")
            )))
        }
    }
}

/// That there is no such session, and which there are.
async fn nothing(store: &dyn Store, called: &str) -> Result<Problem, Problem> {
    let query = SessionQuery {
        limit: 5,
        ..SessionQuery::default()
    };
    let last = store.list(&query).await.map_err(problem)?;
    let mut text = format!("there is no session {called}");
    if !last.is_empty() {
        let lines: Vec<String> = last.iter().map(line).collect();
        text.push_str(&format!(
            "; `windlass sessions list --all` shows all, and the last ones are:\n{}",
            lines.join("\n")
        ));
    }
    Ok(Problem::usage(text))
}

/// Removes a session that was made for this run alone and in which nothing happened: a command that only looked around.
pub(crate) async fn drop_unused(store: &dyn Store, session: &SessionId) {
    if let Ok(Some(info)) = store.get(session).await
        && info.last_seq == 0
        && info.label == Label::default()
    {
        // What stays is an empty session, which harms nobody.
        let _ = store.delete(session).await;
    }
}

/// A session in a line.
pub(crate) fn line(info: &SessionInfo) -> String {
    let name = info.label.name.as_deref().map(|name| format!("{name}: "));
    format!(
        "{}  {:>4} messages  {:<9} {:>8}  {}{}",
        info.id,
        info.totals.messages,
        format::standing(info.standing),
        ago(info.updated_at.0),
        name.unwrap_or_default(),
        info.label.title.as_deref().unwrap_or("untitled")
    )
}

/// How long ago, roughly.
pub(crate) fn ago(time: u64) -> String {
    Timestamp(time).ago(SystemClock::default().now())
}

/// What the store says, with its exit code.
pub(crate) fn problem(error: LogError) -> Problem {
    match error {
        LogError::Busy { .. } => Problem::new(ProblemKind::Busy, error.to_string()),
        LogError::Unknown(_) => Problem::usage(error.to_string()),
        _ => Problem::new(ProblemKind::Store, error.to_string()),
    }
}
