//! Differences between a sub-agent and other sessions: mode, tools, limits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_config::settings::Settings;
use windlass_core::permission::Mode;
use windlass_core::turn::Limits;

use crate::factory::{AgentSpec, SharedMode};
use crate::tool_catalog::AllowedTools;

/// The tool that runs commands, and the one that ends the work with claims about them.
const BASH: &str = "bash";
const DONE: &str = "done";

/// Position of a session among agents.
pub(crate) struct AgentRole {
    /// The mode of this session, for the sub-agents below it.
    mode: SharedMode,
    /// Differences of a sub-agent.
    agent: Option<Arc<AgentSpec>>,
}

impl AgentRole {
    pub(crate) fn new(mode: Mode, agent: Option<Arc<AgentSpec>>) -> Self {
        Self {
            mode: Arc::new(Mutex::new(mode)),
            agent,
        }
    }

    /// Returns true if the session is a sub-agent.
    pub(crate) fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// Returns the mode of this session, for the sub-agents below it.
    pub(crate) fn shared_mode(&self) -> SharedMode {
        Arc::clone(&self.mode)
    }

    /// SUB-3: returns the mode of a turn: never freer than that of the session above.
    pub(crate) fn limited(&self, own: Mode) -> Mode {
        let mode = match &self.agent {
            None => own,
            Some(agent) => {
                let above = *lock(&agent.mode_above);
                agent.kind.mode.unwrap_or(own).stricter(own).stricter(above)
            }
        };
        *lock(&self.mode) = mode;
        mode
    }

    /// LOOP-9: returns the limits of a turn; those of a sub-agent are its type's and its share of the budget.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        let Some(agent) = &self.agent else {
            return limits;
        };
        let budget = &agent.row.budget;
        let share = budget.turns.and_then(|turns| u32::try_from(turns).ok());
        Limits {
            max_iterations: agent.kind.max_turns.min(share.unwrap_or(u32::MAX)).max(1),
            max_cost_usd: budget.cost_usd,
            ..limits
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// SUB-3: returns the tools of a sub-agent: those of its type, without the denied ones.
pub(crate) fn allowed_tools(settings: &Settings, agent: &Arc<AgentSpec>) -> AllowedTools {
    let children = &settings.agent.children;
    let mut denied = children.denied_tools.clone();
    if agent.is_leaf {
        denied.extend(children.leaf_denied_tools.iter().cloned());
    }
    denied.extend(agent.kind.disallowed_tools.iter().cloned());
    let tools = agent.kind.tools.clone();
    // GOAL-7: who can run commands can claim what they show.
    let claims = tools.contains(BASH);
    let is_allowed = move |name: &str| tools.contains(name) || (claims && name == DONE);
    Arc::new(move |name| is_allowed(name) && !denied.iter().any(|denied| denied == name))
}
