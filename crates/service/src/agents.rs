//! Sub-agents: sessions that a session starts, and whose results come back to it.
//!
//! [`start`] creates a sub-agent: its row in the ledger and its session in one transaction, then its turn. A task
//! follows its events ([`watch`]), passes them to the session above, and enforces its deadline. The end of a run is
//! recorded by the sub-agent itself, together with the outcome of its turn ([`Family::close`]). The result reaches
//! the session above with the tool call that waits for it, or between two iterations ([`AgentInbox`]); the sink
//! marks it as delivered in the same write ([`delivered_by`]).

mod asker;
mod budget;
mod copies;
mod deliver;
mod elsewhere;
mod family;
mod format;
mod orphans;
mod start;
mod tools;
mod types;
mod watch;

use std::sync::Arc;

use windlass_api::SessionInfo;
use windlass_core::hook::Hooks;
use windlass_core::log::AgentRow;
use windlass_core::permission::Asker;
use windlass_core::tool::AnyTool;

pub(crate) use self::asker::ChildAsker;
use self::budget::BudgetHook;
pub(crate) use self::deliver::{AgentInbox, Deliveries, results_message};
pub(crate) use self::elsewhere::{explain, taken_over};
pub(crate) use self::family::Family;
pub use self::format::{agent_line, agent_lines, goal_lines};
pub(crate) use self::orphans::adopt;
pub(crate) use self::start::{resume, steer};
pub(crate) use self::tools::{find, stop};
pub use self::types::{AgentCatalog, AgentModel, AgentTools, AgentType, MAX_TURNS};
use crate::environment::{AgentCopies, SessionHost};
use crate::handle::SessionHandle;
use crate::inputs::OwnInputs;
use crate::{Inner, Service};

/// Returns the connections of a session's environment to the service.
pub(crate) async fn host(inner: &Arc<Inner>, info: &SessionInfo, handle: &SessionHandle) -> SessionHost {
    let own: Arc<dyn Asker> = Arc::new(handle.replies.clone());
    let row = handle.family.row();
    let (asker, parent) = match &row {
        None => (own, None),
        Some(row) => (
            Arc::new(ChildAsker::new(inner, row, own)) as Arc<dyn Asker>,
            inner.store.get(&row.family.parent).await.ok().flatten(),
        ),
    };
    SessionHost {
        asker,
        tools: offered(inner, info, row.as_ref()).await,
        agent: row,
        parent,
        inputs: Arc::new(OwnInputs(Arc::downgrade(inner), info.id.clone())),
    }
}

/// Returns the tools for sub-agents; none at the greatest depth.
async fn offered(inner: &Arc<Inner>, info: &SessionInfo, row: Option<&AgentRow>) -> Vec<Arc<dyn AnyTool>> {
    let catalog = inner.factory.agents(info).await;
    let depth = row.map_or(0, |row| row.family.depth);
    if depth >= catalog.limits.max_spawn_depth {
        return Vec::new();
    }
    tools::tools(&Arc::downgrade(inner), &info.id, &catalog)
}

/// Adds the hooks of every turn, and those of a sub-agent's.
pub(crate) fn add_hooks(inner: &Arc<Inner>, family: &Family, hooks: &mut Hooks) {
    inner
        .guard
        .get()
        .into_iter()
        .for_each(|guard| hooks.push_shared(Arc::clone(guard)));
    if let Some(row) = family.row() {
        hooks.push(BudgetHook::new(inner, family, row));
    }
}

/// Reads the relations of a session that becomes live. Sub-agents that ended with their process get their end.
pub(crate) async fn open(inner: &Inner, info: &SessionInfo, family: &Family) {
    if info.parent.is_some() {
        family.is_agent(inner.store.agent(&info.id).await.ok().flatten());
    }
    // A new session has no entries, and no sub-agents either.
    if info.last_seq > 0 && adopt(inner, &info.id).await {
        family.has_children();
    }
}

impl Service {
    /// Returns the copies of files that sub-agents work in.
    pub(crate) fn copies(&self) -> Result<Arc<dyn AgentCopies>, String> {
        let copies = self.inner.factory.copies();
        copies.ok_or_else(|| "copies of files are not available here".to_owned())
    }

    /// Returns the family of a session that is or was live here.
    fn family(&self, session: &windlass_api::SessionId) -> Option<Family> {
        self.lock().get(session).map(|live| live.handle.family.clone())
    }
}
