//! Events of sub-agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClaimCheck, ClaimStatus, Event, GoalEvent, SessionEvent};
use crate::id::SessionId;
use crate::log::AgentState;
use crate::model::Usage;

/// An event of a sub-agent. A sub-agent is a session with a parent; its own record is in its own session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// An event of a sub-agent of this session, or of one further below. Live: the sub-agent records the event.
    Subagent {
        /// Session of the sub-agent.
        agent: SessionId,
        /// Number of the sub-agent within its tree, starting at 1.
        number: u32,
        /// Name of the sub-agent.
        name: String,
        /// Number of agents above it.
        depth: u8,
        /// The event.
        event: Box<Event>,
    },
    /// This sub-agent, which had ended, runs again.
    AgentStarted {
        /// True if an idle parent continues when it ends.
        wake: bool,
        /// True if the result of the last run, if it is not delivered, is dropped. Otherwise the new result follows it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replaces: bool,
    },
    /// This sub-agent ended a run. Recorded together with the terminal event of its turn.
    AgentEnded {
        /// State of the sub-agent from now on.
        state: AgentState,
        /// Kind of failure, as one word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Answer of the sub-agent, or the text it had written so far.
        result: String,
        /// GOAL-7: claims in the answer, each with the facts known about it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        claims: Vec<ClaimCheck>,
    },
    /// The results of these sub-agents are part of the conversation of this session. Recorded together with the
    /// message or the tool result that contains them.
    AgentDelivered {
        /// Sessions of the sub-agents.
        agents: Vec<SessionId>,
    },
}

impl AgentEvent {
    /// SES-8: returns the cost of a model call of a sub-agent in US dollars, with its tokens.
    pub fn usage(&self) -> Option<(Usage, Option<f64>)> {
        match self {
            Self::Subagent { event, .. } => match &**event {
                Event::Usage { usage, cost_usd, .. } => Some((*usage, *cost_usd)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Describes an event of a sub-agent in one line for people; `None` if it is not worth a line.
    pub fn line(&self) -> Option<String> {
        let Self::Subagent {
            number, name, event, ..
        } = self
        else {
            return None;
        };
        let text = match &**event {
            Event::StepStart { title, .. } => title.clone(),
            Event::Warning { message } | Event::Error { message } => message.clone(),
            Event::Final { .. } => "answered".to_owned(),
            Event::Canceled { .. } => "stopped".to_owned(),
            Event::Failed { message, .. } => format!("failed: {message}"),
            Event::Session(SessionEvent::Work(GoalEvent::Claim(claim)))
                if claim.status != ClaimStatus::Verified =>
            {
                claim.line()
            }
            _ => return None,
        };
        Some(format!("agent {number} {name}: {text}"))
    }

    /// Wraps this event.
    pub fn into_event(self) -> Event {
        Event::Session(SessionEvent::Agent(self))
    }
}
