//! SUB-4: the ledger of sub-agents. A sub-agent is a session with a parent and one row here.
//!
//! A row is written together with its session, before the sub-agent starts. From then on the store changes it
//! as it stores the events of the sessions: [`AgentEvent::AgentEnded`] in the session of the sub-agent sets
//! state and result, [`AgentEvent::AgentDelivered`] in the session of its parent marks the result as delivered.
//! A result is therefore delivered exactly once, whenever a process is killed.
//!
//! [`AgentEvent::AgentEnded`]: crate::event::AgentEvent::AgentEnded
//! [`AgentEvent::AgentDelivered`]: crate::event::AgentEvent::AgentDelivered

use std::fmt;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LogError, NewSession, Opened, UserName};
use crate::clock::Timestamp;
use crate::event::ClaimCheck;
use crate::id::{CallId, SessionId};

/// State of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Created, and not started yet.
    #[default]
    Queued,
    /// A turn runs.
    Running,
    /// A turn runs and waits for a person.
    Waiting,
    /// The last turn ended with an answer.
    Done,
    /// The last turn failed, or reached a limit.
    Failed,
    /// The last turn was stopped.
    Canceled,
    /// The last turn was stopped at its deadline.
    TimedOut,
    /// The process that ran it ended.
    Orphaned,
}

impl AgentState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Done,
        Self::Failed,
        Self::Canceled,
        Self::TimedOut,
        Self::Orphaned,
    ];

    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::TimedOut => "timed_out",
            Self::Orphaned => "orphaned",
        }
    }

    /// Returns the state of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Returns true if the sub-agent has not ended.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().replace('_', " "))
    }
}

/// Amounts of tokens, money, model requests and time. As a limit, `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentBudget {
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Model requests of turns.
    pub turns: Option<u64>,
    /// Seconds of running time.
    pub seconds: Option<u64>,
}

impl AgentBudget {
    /// Returns the name of an amount of which nothing is left.
    pub fn used_up(&self) -> Option<&'static str> {
        match self {
            Self { tokens: Some(0), .. } => Some("tokens"),
            Self { turns: Some(0), .. } => Some("turns"),
            Self {
                cost_usd: Some(cost), ..
            } if *cost <= 0.0 => Some("money"),
            _ => None,
        }
    }
}

impl fmt::Display for AgentBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.tokens.map(|tokens| format!("{tokens} tokens")),
            self.cost_usd.map(|cost| format!("${cost:.2}")),
            self.turns.map(|turns| format!("{turns} turns")),
            self.seconds.map(|seconds| format!("{seconds} s")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => f.write_str("no limit"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}

/// Position of a sub-agent in its tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFamily {
    /// Session at the top of the tree.
    pub root: SessionId,
    /// Session that started it.
    pub parent: SessionId,
    /// Call that started it. Ids of calls repeat, so this is no key.
    pub call: Option<CallId>,
    /// Number within the tree, starting at 1.
    pub number: u32,
    /// Number of agents above it.
    pub depth: u8,
}

/// The job of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentJob {
    /// Name, for people and for messages to it.
    pub name: String,
    /// Name of its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The task, as the parent wrote it.
    pub task: String,
    /// True if its parent does not wait for it.
    pub background: bool,
    /// True if an idle parent continues when it ends.
    pub wake: bool,
    /// Folder it works in.
    pub place: String,
    /// Copy of the parent's files that it works in.
    pub worktree: Option<String>,
}

/// Result of a sub-agent so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentStatus {
    /// The state.
    pub state: AgentState,
    /// Kind of failure, as one word.
    pub reason: Option<String>,
    /// The thing that a waiting sub-agent waits for.
    pub waiting_on: Option<String>,
    /// Answer, or the text so far, once it has ended.
    pub result: Option<String>,
    /// True if the result is part of the parent's conversation.
    pub delivered: bool,
    /// GOAL-7: claims in the result, each with the facts known about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimCheck>,
}

/// One sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRow {
    /// Its session.
    pub session: SessionId,
    /// Position in its tree.
    #[serde(flatten)]
    pub family: AgentFamily,
    /// Its job.
    #[serde(flatten)]
    pub job: AgentJob,
    /// Its result so far.
    #[serde(flatten)]
    pub status: AgentStatus,
    /// Limits of this sub-agent and all below it.
    pub budget: AgentBudget,
    /// Amounts that it used itself.
    pub spent: AgentBudget,
    /// Time it was created.
    pub created_at: Timestamp,
    /// Time its last run ended.
    pub ended_at: Option<Timestamp>,
    /// Time of its last event.
    pub seen_at: Timestamp,
    /// Server of a cluster that has it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl AgentRow {
    /// Returns its number and its name.
    pub fn title(&self) -> String {
        format!("{} {}", self.family.number, self.job.name)
    }
}

/// Limits of a tree of sub-agents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentLimits {
    /// Maximum depth.
    pub max_spawn_depth: u8,
    /// Maximum number of sub-agents of one agent that run at the same time.
    pub max_children: u32,
    /// Maximum number of sub-agents of the tree that run at the same time.
    pub max_concurrent: u32,
    /// Maximum number of sub-agents of the tree in all.
    pub max_agents: u32,
    /// Budget of all sub-agents of the tree together.
    pub budget: AgentBudget,
}

/// A sub-agent to be created.
#[derive(Debug, Clone)]
pub struct NewAgent {
    /// Session that starts it.
    pub parent: SessionId,
    /// Call that starts it.
    pub call: Option<CallId>,
    /// Its job. An empty name is replaced by its type.
    pub job: AgentJob,
    /// The part of the parent's budget that it asks for. An amount that is `None` gets an equal share.
    pub asks: AgentBudget,
    /// Limits of the tree.
    pub limits: AgentLimits,
    /// Id of its session.
    pub session: SessionId,
    /// Time of creation.
    pub time: Timestamp,
}

/// A sub-agent that was created.
#[derive(Debug, Clone)]
pub struct Spawned {
    /// Its session.
    pub opened: Opened,
    /// Its row.
    pub row: AgentRow,
    /// Amounts that are left for further sub-agents.
    pub left: AgentsLeft,
}

/// Amounts that are left for further sub-agents of the same parent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentsLeft {
    /// Number of further sub-agents that may run now.
    pub running: u32,
    /// Number of further sub-agents of the tree.
    pub agents: u32,
    /// The rest of the budget.
    pub budget: AgentBudget,
}

impl fmt::Display for AgentsLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (running, agents) = (self.running, self.agents);
        write!(
            f,
            "left: {running} more at the same time, {agents} more in all, {}",
            self.budget
        )
    }
}

/// Reason a sub-agent was not created. Nothing was stored.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpawnError {
    /// The tree is deep enough.
    #[error(
        "an agent at depth {depth} would be too deep: agents.max_spawn_depth is {most}; do the work yourself"
    )]
    Depth {
        /// Depth of the new sub-agent.
        depth: u8,
        /// Maximum depth.
        most: u8,
    },
    /// The parent has enough running sub-agents.
    #[error(
        "{running} agents of this session run, and agents.max_children is {most}; wait for one with agent_wait, or stop one"
    )]
    Children {
        /// Number of running ones.
        running: u32,
        /// Maximum number.
        most: u32,
    },
    /// The tree has enough running sub-agents.
    #[error("{running} agents of this tree run, and agents.max_concurrent is {most}; wait until one ends")]
    Concurrent {
        /// Number of running ones.
        running: u32,
        /// Maximum number.
        most: u32,
    },
    /// The tree has had enough sub-agents.
    #[error(
        "this tree has had {made} agents, and agents.max_agents is {most}; no more can be started, but ended ones can be \
         resumed with agent_send"
    )]
    Agents {
        /// Number of sub-agents so far.
        made: u32,
        /// Maximum number.
        most: u32,
    },
    /// The budget does not suffice.
    #[error("the budget does not suffice: {asked} {what} asked for, {left} left of {of}")]
    Budget {
        /// Name of the amount.
        what: &'static str,
        /// Amount asked for.
        asked: String,
        /// Amount that is left.
        left: String,
        /// Budget of the parent.
        of: String,
    },
    /// The sub-agent has not ended, so that it cannot start again.
    #[error("agent {title} is already {state}")]
    Active {
        /// Number and name.
        title: String,
        /// Its state.
        state: AgentState,
    },
    /// The sub-agent has nothing left of its budget, so that it cannot start again.
    #[error("the budget of agent {title} is used up: no {what} left of {of}")]
    UsedUp {
        /// Number and name.
        title: String,
        /// Name of the amount.
        what: &'static str,
        /// Its budget.
        of: AgentBudget,
    },
    /// The store failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Sub-agents to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentQuery {
    /// Every sub-agent below a session, by number.
    Below(SessionId),
    /// Sub-agents that a session started itself, by number.
    Children(SessionId),
    /// Sub-agents below a session that have not ended.
    Active(SessionId),
    /// Sub-agents that a session started and whose result is not delivered, running ones included.
    Pending(SessionId),
    /// Sub-agents that a session started, that have ended, and whose result is not delivered.
    Undelivered(SessionId),
    /// Sub-agents of the trees that changed last, tree by tree; at most this number of trees.
    Recent(usize),
}

/// SUB-4, SUB-5: the ledger of sub-agents.
#[async_trait]
pub trait AgentLedger: Send + Sync {
    /// Creates the session of a sub-agent together with its row, and takes the session's lease. Limits and
    /// budgets are counted in the same transaction.
    ///
    /// # Errors
    /// The limit that is reached, with its numbers, or the failure of the store. In either case nothing was
    /// written.
    async fn spawn(&self, new: NewAgent, owner: &str) -> Result<Spawned, SpawnError>;

    /// Reserves the place of a sub-agent that has ended and is about to start again: it is `queued` from here on.
    /// Limits and its budget are checked in the same transaction. Returns its row.
    ///
    /// # Errors
    /// The limit that is reached, with its numbers, or the failure of the store. In either case nothing was
    /// written.
    async fn restart(&self, session: &SessionId, limits: &AgentLimits) -> Result<AgentRow, SpawnError>;

    /// Returns the row of a session; `None` if it is no sub-agent.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn agent(&self, session: &SessionId) -> Result<Option<AgentRow>, LogError>;

    /// Returns rows.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn agents(&self, query: &AgentQuery) -> Result<Vec<AgentRow>, LogError>;

    /// Returns the part of a sub-agent's budget that is left for itself: without its own use, and without the
    /// shares of those below it.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    async fn budget_left(&self, session: &SessionId) -> Result<AgentBudget, LogError>;

    /// Records the folder of a sub-agent's own copy of the files, which it works in from here on, or that the copy is
    /// gone.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    async fn set_worktree(&self, session: &SessionId, folder: Option<&str>) -> Result<(), LogError>;
}

impl NewAgent {
    /// Returns the session to create. Its key names the session above.
    pub fn new_session(&self, depth: u8, parent_key: &str) -> NewSession {
        let line = self.job.task.lines().find(|line| !line.trim().is_empty());
        let title: String = line.unwrap_or_default().trim().chars().take(80).collect();
        let key = super::SessionKey::sub(self.session.as_str(), depth, parent_key).ok();
        NewSession {
            id: Some(self.session.clone()),
            parent: Some(self.parent.clone()),
            label: super::Label {
                title: Some(title),
                name: None,
                key: key.map(|key| key.to_string()),
            },
            place: self.job.place.clone(),
            time: self.time,
            // The store gives it the user of the session above.
            user: UserName::default(),
        }
    }
}
