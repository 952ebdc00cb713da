//! `windlass sessions`: what was done before, found, read, named, taken in and given away.

mod cost;
mod delete;
mod export;
mod import;
mod list;
mod markdown;
mod record;
mod show;

pub(crate) use self::record::record;
use windlass_core::log::{SessionInfo, Sessions};
use windlass_store::SqliteStore;

use crate::args::SessionsCommand;
use crate::exit::{Exit, Problem};
use crate::keeping::{self, find, problem};
use crate::print_text;
use crate::terminal::{plain, say};

/// How much of an id is shown: the moment a session was made, which is seldom another one's too.
const SHORT: usize = 13;

/// The longest name, in characters.
const MAX_NAME: usize = 100;

/// Runs a command.
pub(crate) async fn command(command: SessionsCommand) -> Result<Exit, Problem> {
    let store = keeping::store()?;
    match command {
        SessionsCommand::List(options) => list::list(&store, &options).await,
        SessionsCommand::Show { session, json } => show::show(&store, &session, json).await,
        SessionsCommand::Search { words, limit, json } => list::search(&store, &words, limit, json).await,
        SessionsCommand::Export(options) => export::export(&store, &options).await,
        SessionsCommand::Import(options) => import::import(&store, &options).await,
        SessionsCommand::Rename { session, name } => rename(&store, &session, &name).await,
        SessionsCommand::Delete { sessions, yes } => delete::delete(&store, &sessions, yes).await,
        SessionsCommand::Cost { session, by, json } => cost::cost(&store, session.as_deref(), by, json).await,
    }
}

async fn rename(store: &SqliteStore, session: &str, name: &str) -> Result<Exit, Problem> {
    let info = find(store, session).await?;
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(Problem::usage(format!(
            "a name is one line of at most {MAX_NAME} characters"
        )));
    }
    if let Some(other) = keeping::named(store, name)
        .await?
        .iter()
        .find(|other| other.id != info.id)
    {
        return Err(Problem::usage(format!(
            "another session has this name already:\n{}",
            keeping::line(other)
        )));
    }
    let label = windlass_api::Label {
        name: Some(name.to_owned()),
        ..windlass_api::Label::default()
    };
    store.label(&info.id, &label).await.map_err(problem)?;
    say!("{} is called {} now", short(&info), plain(name));
    Ok(Exit::Ok)
}

/// The beginning of a session's id.
pub(crate) fn short(info: &SessionInfo) -> String {
    info.id.as_str().chars().take(SHORT).collect()
}

/// What a session is called, on one line.
fn called(info: &SessionInfo) -> String {
    let title = info.label.title.as_deref().unwrap_or("untitled");
    match &info.label.name {
        Some(name) => line(&format!("{name}: {title}")),
        None => line(title),
    }
}

/// Foreign text on one line.
fn line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The same, cut after so many characters.
fn cut(text: &str, most: usize) -> String {
    let line = line(text);
    if line.chars().count() <= most {
        return line;
    }
    let start: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

/// Dollars, with more digits for little.
fn dollars(cost: f64) -> String {
    if cost == 0.0 {
        "$0".to_owned()
    } else if cost < 1.0 {
        format!("${cost:.4}")
    } else {
        format!("${cost:.2}")
    }
}

/// A date and time of UTC.
fn date(time: windlass_core::clock::Timestamp) -> String {
    let millis = i64::try_from(time.0).unwrap_or_default();
    jiff::Timestamp::from_millisecond(millis)
        .map(|time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<Exit, Problem> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print_text(&text),
        Err(error) => Err(Problem::new(Exit::Failed, error.to_string())),
    }
}
