//! GOAL-7: `windlass verify`: runs the commands of all claims again, also those of sub-agents.

use windlass_config::Problem;
use windlass_core::log::AgentQuery;

use crate::exec;
use crate::exit::Exit;
use crate::session_choice::{self, SessionChoice, problem};
use crate::terminal::say;
use windlass_args::SettingsOptions;

/// Verifies the claims of a session, and those of every sub-agent below it that has its own copy of the files, in
/// that copy.
pub(crate) async fn command(session: Option<String>, settings: SettingsOptions) -> Result<Exit, Problem> {
    let which = session
        .clone()
        .map_or(SessionChoice::Latest, SessionChoice::Called);
    let mut copies = Vec::new();
    {
        let store = &*session_choice::store()?;
        let cwd = crate::engine::working_directory(None)?;
        if let Some(top) = session_choice::found(store, &which, &cwd).await? {
            let query = AgentQuery::Below(top.id);
            let rows = store.agents(&query).await.map_err(problem)?;
            let is_apart = |row: &windlass_core::log::AgentRow| {
                !row.status.claims.is_empty() && row.job.worktree.is_some() && !row.status.state.is_active()
            };
            copies.extend(rows.into_iter().filter(is_apart));
        }
    }
    let mut exit = exec::kept("/verify".to_owned(), session, settings.clone()).await?;
    for row in copies {
        say!("In the copy of agent {}:", row.title());
        let session = Some(row.session.to_string());
        let own = exec::kept("/verify".to_owned(), session, settings.clone()).await?;
        exit = worse(exit, own);
    }
    Ok(exit)
}

/// Returns the worse of two results: a failure, then a false claim, then a stale one.
fn worse(one: Exit, other: Exit) -> Exit {
    let rank = |exit: &Exit| match exit {
        Exit::Ok => 0,
        Exit::StaleClaim => 1,
        Exit::FalseClaim => 2,
        _ => 3,
    };
    if rank(&other) > rank(&one) { other } else { one }
}
