//! `windlass sessions`: finds, shows, renames, exports, imports and deletes past sessions.

mod cost;
mod delete;
mod export;
pub(crate) mod import;
mod list;
mod show;

use windlass_core::log::{SessionInfo, Store};
pub(crate) use windlass_service::format::short;
use windlass_service::{format, past};

use crate::cluster;
use crate::exit::Exit;
use crate::print_text;
use crate::session_choice::{self, find, problem};
use crate::terminal::{plain, say};
use windlass_args::SessionsCommand;
use windlass_config::{Problem, ProblemKind};

/// Runs a subcommand.
pub(crate) async fn command(command: SessionsCommand) -> Result<Exit, Problem> {
    let shared = session_choice::store()?;
    let store = &*shared;
    match command {
        SessionsCommand::List(options) => list::list(store, &options).await,
        SessionsCommand::Show { session, json } => show::show(store, &session, json).await,
        SessionsCommand::Search {
            words,
            limit,
            user,
            json,
        } => list::search(store, &words, (user.0.as_ref(), limit), json).await,
        SessionsCommand::Export(options) => export::export(store, &options).await,
        SessionsCommand::Import(options) => import::import(store, &options).await,
        SessionsCommand::Rename { session, name } => rename(store, &session, &name).await,
        SessionsCommand::Move {
            session,
            place,
            folder,
        } => {
            let info = find(store, &session).await?;
            cluster::move_session(&shared, &info, &place, folder.as_deref()).await
        }
        SessionsCommand::Delete { sessions, yes } => delete::delete(store, &sessions, yes).await,
        SessionsCommand::Cost { session, by, json } => cost::cost(store, session.as_deref(), by, json).await,
    }
}

async fn rename(store: &dyn Store, session: &str, name: &str) -> Result<Exit, Problem> {
    let info = find(store, session).await?;
    let name = name.trim();
    let wrong = past::name_problem(store, (&info.user, Some(&info.id)), name).await;
    if let Some(why) = wrong.map_err(problem)? {
        return Err(Problem::usage(why));
    }
    let label = windlass_api::Label {
        name: Some(name.to_owned()),
        ..windlass_api::Label::default()
    };
    store.label(&info.id, &label).await.map_err(problem)?;
    say!("renamed {} to {}", short(&info), plain(name));
    Ok(Exit::Ok)
}

/// Returns the name or title of a session, on one line.
fn called(info: &SessionInfo) -> String {
    line(&format::called(info))
}

/// Puts foreign text on one line.
fn line(text: &str) -> String {
    format::one_line(&plain(text))
}

/// Puts foreign text on one line of at most `most` characters.
fn cut(text: &str, most: usize) -> String {
    format::cut(&plain(text), most)
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<Exit, Problem> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print_text(&text),
        Err(error) => Err(Problem::new(ProblemKind::Failed, error.to_string())),
    }
}
