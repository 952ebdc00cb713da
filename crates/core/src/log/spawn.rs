//! Limits and budgets of sub-agents: the decisions that every store takes in the transaction that starts one.

use super::agents::{
    AgentBudget, AgentFamily, AgentLimits, AgentRow, AgentStatus, AgentsLeft, NewAgent, SpawnError,
};
use crate::id::SessionId;

/// Numbers of sub-agents in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentCounts {
    /// In the tree, so far. The last one has this number.
    pub made: u32,
    /// Running in the tree.
    pub running: u32,
    /// Running, of the same parent.
    pub children: u32,
}

impl AgentCounts {
    /// Refuses a further running sub-agent if there are enough.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn check(&self, limits: &AgentLimits) -> Result<(), SpawnError> {
        if self.children >= limits.max_children {
            let (running, most) = (self.children, limits.max_children);
            return Err(SpawnError::Children { running, most });
        }
        if self.running >= limits.max_concurrent {
            let (running, most) = (self.running, limits.max_concurrent);
            return Err(SpawnError::Concurrent { running, most });
        }
        Ok(())
    }

    /// Returns the number of sub-agents that the parent may start now, including the new one.
    fn free(&self, limits: &AgentLimits) -> u32 {
        let beside = limits.max_children.saturating_sub(self.children);
        beside.min(limits.max_concurrent.saturating_sub(self.running))
    }
}

impl AgentBudget {
    /// Returns the rest of a budget.
    #[must_use]
    pub fn minus(self, used: &Self) -> Self {
        let number = |budget: Option<u64>, used: Option<u64>| {
            budget.map(|budget| budget.saturating_sub(used.unwrap_or_default()))
        };
        Self {
            tokens: number(self.tokens, used.tokens),
            cost_usd: self
                .cost_usd
                .map(|budget| (budget - used.cost_usd.unwrap_or_default()).max(0.0)),
            turns: number(self.turns, used.turns),
            seconds: number(self.seconds, used.seconds),
        }
    }
}

impl NewAgent {
    /// Returns the session at the top of the tree. `above` is the row of the parent, if it is a sub-agent.
    pub fn root<'a>(&'a self, above: Option<&'a AgentRow>) -> &'a SessionId {
        above.map_or(&self.parent, |above| &above.family.root)
    }

    /// Checks limits and budgets. Returns the row to store, and the amounts that are left for further sub-agents.
    /// `used` are the amounts that the parent and those below it have used, or hold.
    ///
    /// # Errors
    /// The limit that is reached, with its numbers.
    pub fn admit(
        &self,
        above: Option<&AgentRow>,
        counts: &AgentCounts,
        used: &AgentBudget,
    ) -> Result<(AgentRow, AgentsLeft), SpawnError> {
        let depth = above.map_or(0, |above| above.family.depth) + 1;
        if depth > self.limits.max_spawn_depth {
            let most = self.limits.max_spawn_depth;
            return Err(SpawnError::Depth { depth, most });
        }
        if counts.made >= self.limits.max_agents {
            let (made, most) = (counts.made, self.limits.max_agents);
            return Err(SpawnError::Agents { made, most });
        }
        counts.check(&self.limits)?;
        let budget = above.map_or(self.limits.budget, |above| above.budget);
        let left = budget.minus(used);
        let running = counts.free(&self.limits);
        let share = share(budget, left, self.asks, running)?;
        let row = self.row((self.root(above).clone(), depth), (counts.made, share));
        let left = AgentsLeft {
            running: running.saturating_sub(1),
            agents: self.limits.max_agents.saturating_sub(counts.made + 1),
            budget: left.minus(&share),
        };
        Ok((row, left))
    }

    fn row(&self, (root, depth): (SessionId, u8), (made, budget): (u32, AgentBudget)) -> AgentRow {
        let mut job = self.job.clone();
        if job.name.is_empty() {
            job.name.clone_from(&job.kind);
        }
        AgentRow {
            session: self.session.clone(),
            family: AgentFamily {
                root,
                parent: self.parent.clone(),
                call: self.call.clone(),
                number: made + 1,
                depth,
            },
            job,
            status: AgentStatus::default(),
            budget,
            spent: AgentBudget::default(),
            created_at: self.time,
            ended_at: None,
            seen_at: self.time,
            server: None,
        }
    }
}

/// Returns the share of a new sub-agent: the amounts it asks for, or an equal part of the rest.
fn share(
    of: AgentBudget,
    left: AgentBudget,
    asks: AgentBudget,
    slots: u32,
) -> Result<AgentBudget, SpawnError> {
    let slots = slots.max(1);
    let refused = |what, asked: String, left: String, of: String| SpawnError::Budget {
        what,
        asked,
        left,
        of,
    };
    let number = |what, of: Option<u64>, left: Option<u64>, asks: Option<u64>| {
        let Some(left) = left else { return Ok(asks) };
        let asked = asks.unwrap_or((left / u64::from(slots)).max(1));
        if asked > left {
            let of = of.unwrap_or_default();
            return Err(refused(what, asked.to_string(), left.to_string(), of.to_string()));
        }
        Ok(Some(asked))
    };
    let cost = match (left.cost_usd, asks.cost_usd) {
        (None, asks) => asks,
        (Some(left), asks) => {
            let asked = asks.unwrap_or(left / f64::from(slots));
            if asked > left || left <= 0.0 {
                let dollars = |amount: f64| format!("${amount:.4}");
                let of = of.cost_usd.unwrap_or_default();
                return Err(refused("of money", dollars(asked), dollars(left), dollars(of)));
            }
            Some(asked)
        }
    };
    Ok(AgentBudget {
        tokens: number("tokens", of.tokens, left.tokens, asks.tokens)?,
        cost_usd: cost,
        turns: number("turns", of.turns, left.turns, asks.turns)?,
        seconds: number("seconds", of.seconds, left.seconds, asks.seconds)?,
    })
}
