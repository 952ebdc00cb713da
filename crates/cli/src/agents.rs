//! SUB-8: `windlass agents`: the trees of agents, from any process.

use windlass_config::Problem;
use windlass_core::id::SessionId;
use windlass_core::log::{AgentQuery, AgentRow, AgentState};
use windlass_service::format::short_id;
use windlass_service::{agent_lines, goal_lines};

use crate::exit::Exit;
use crate::session_choice::{self, find, problem};
use crate::sessions::print_json;
use crate::terminal::{plain, say};
use windlass_args::AgentsOptions;

/// Number of trees that are listed unless a session is named.
const TREES: usize = 10;

/// Lists the agents of a session, or those of the last trees.
pub(crate) async fn command(options: AgentsOptions) -> Result<Exit, Problem> {
    let store = &*session_choice::store()?;
    let query = match &options.session {
        Some(session) => AgentQuery::Below(find(store, session).await?.id),
        None => AgentQuery::Recent(TREES),
    };
    let mut rows = store.agents(&query).await.map_err(problem)?;
    // The process of an agent may have been killed; the session above notices when it is resumed.
    for row in rows.iter_mut().filter(|row| row.status.state.is_active()) {
        if store.holder(&row.session).await.map_err(problem)?.is_none() {
            row.status.state = AgentState::Orphaned;
        }
    }
    if options.running {
        rows.retain(|row| row.status.state.is_active());
    }
    if options.json {
        return print_json(&rows);
    }
    if rows.is_empty() {
        say!(
            "There are no agents{}.",
            if options.running { " running" } else { " yet" }
        );
    }
    let now = windlass_config::environment::clock().now();
    for tree in rows.chunk_by(|one, other| one.family.root == other.family.root) {
        if let Some(root) = tree.first().map(|row: &AgentRow| &row.family.root) {
            say!("{}", heading(store, root).await?);
        }
        say!("{}", plain(&agent_lines(tree, now)));
    }
    if options.session.is_none() {
        let goals = store.goals(options.running).await.map_err(problem)?;
        goal_lines(&goals)
            .iter()
            .for_each(|lines| say!("{}", plain(lines)));
    }
    Ok(Exit::Ok)
}

/// Returns the session at the top of a tree, as one line.
async fn heading(store: &dyn windlass_core::log::Store, root: &SessionId) -> Result<String, Problem> {
    let info = store.get(root).await.map_err(problem)?;
    let called = info
        .as_ref()
        .map(windlass_service::format::called)
        .unwrap_or_default();
    let called: String = plain(&called).lines().next().unwrap_or_default().to_owned();
    Ok(format!("{} {called}", short_id(root)))
}
