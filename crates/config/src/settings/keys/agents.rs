//! Keys of sub-agents.

use crate::settings::keys::{DAY, Key, Section, small};
use crate::settings::kind::{Kind, TextRule};

pub(super) static SECTION: Section = Section {
    name: "agents",
    help: "Sub-agents: limits of a tree of agents, and the tools that they do not get.",
    keys: &[
        Key {
            name: "agents.max_spawn_depth",
            kind: Kind::Integer {
                min: 0,
                max: Some(5),
                default: Some(1),
                set: |s, _, v| s.agent.children.limits.max_spawn_depth = u8::try_from(v).unwrap_or(5),
            },
            help: "How many levels of agents there can be below a session.",
            effect: "With 1, agents cannot start agents. With 0, nothing can.",
            example: "2",
            project_ok: false,
        },
        Key {
            name: "agents.max_children",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: Some(5),
                set: |s, _, v| s.agent.children.limits.max_children = small(v),
            },
            help: "Maximum number of agents that one session or agent has running at the same time.",
            effect: "Further agents are refused, with the numbers.",
            example: "3",
            project_ok: false,
        },
        Key {
            name: "agents.max_concurrent",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: Some(8),
                set: |s, _, v| s.agent.children.limits.max_concurrent = small(v),
            },
            help: "Maximum number of agents of a whole tree that run at the same time.",
            effect: "Further agents are refused, with the numbers.",
            example: "4",
            project_ok: false,
        },
        Key {
            name: "agents.max_agents",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: Some(20),
                set: |s, _, v| s.agent.children.limits.max_agents = small(v),
            },
            help: "Maximum number of agents of a whole tree in all, including those that have ended.",
            effect: "Further agents are refused; agents that have ended can still be resumed.",
            example: "100",
            project_ok: false,
        },
        Key {
            name: "agents.max_tokens",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: Some(5_000_000),
                set: |s, _, v| s.agent.children.limits.budget.tokens = Some(v),
            },
            help: "Maximum number of tokens that all agents of a tree read and write together.",
            effect: "Each agent gets a share, and stops when it is used up.",
            example: "1000000",
            project_ok: false,
        },
        Key {
            name: "agents.max_cost_usd",
            kind: Kind::Number {
                min: 0.001,
                max: None,
                default: None,
                set: |s, _, v| s.agent.children.limits.budget.cost_usd = Some(v),
            },
            help: "Maximum cost of all agents of a tree together, in US dollars.",
            effect: "Each agent gets a share, and stops when it is used up.",
            example: "2.5",
            project_ok: false,
        },
        Key {
            name: "agents.max_turns",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: Some(400),
                set: |s, _, v| s.agent.children.limits.budget.turns = Some(v),
            },
            help: "Maximum number of model requests of all agents of a tree together.",
            effect: "One agent has at most 20 per run, or the `max_turns` of its type.",
            example: "100",
            project_ok: false,
        },
        Key {
            name: "agents.max_time",
            kind: Kind::Seconds {
                min: 1.0,
                max: 30.0 * DAY,
                default: 14_400,
                set: |s, _, v| s.agent.children.limits.budget.seconds = Some(v.as_secs()),
            },
            help: "Maximum running time of all agents of a tree together, in seconds.",
            effect: "Each agent gets a share.",
            example: "3600",
            project_ok: false,
        },
        Key {
            name: "agents.deadline",
            kind: Kind::Seconds {
                min: 1.0,
                max: DAY,
                default: 1_800,
                set: |s, _, v| s.agent.children.deadline = v,
            },
            help: "Seconds after which an agent is stopped, unless the call that starts it says otherwise.",
            effect: "It ends as `timed_out`, with its text so far.",
            example: "600",
            project_ok: false,
        },
        Key {
            name: "agents.silence",
            kind: Kind::Seconds {
                min: 1.0,
                max: DAY,
                default: 300,
                set: |s, _, v| s.agent.children.silence = v,
            },
            help: "Seconds without an event after which Windlass reports what an agent is waiting for.",
            effect: "The agent is not stopped.",
            example: "60",
            project_ok: false,
        },
        Key {
            name: "agents.default_type",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.children.default_type = Some(v),
            },
            help: "Type of an agent whose type is not named.",
            effect: "If unset, `task`: research with read-only tools.",
            example: "\"explorer\"",
            project_ok: false,
        },
        Key {
            name: "agents.default_model",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.children.model = Some(v),
            },
            help: "Model of agents whose type names none, as `model` or `provider/model`.",
            effect: "If unset, the model of the session that starts them.",
            example: "\"claude-haiku-4-5\"",
            project_ok: false,
        },
        Key {
            name: "agents.denied_tools",
            kind: Kind::List {
                default: &["cron", "memory_search", "memory_get", "set_working_directory"],
                check: tool,
                set: |s, _, v| s.agent.children.denied_tools = v,
            },
            help: "Tools that no agent gets, whatever its type names.",
            effect: "Replaces the default list.",
            example: "[\"cron\", \"fetch\"]",
            project_ok: false,
        },
        Key {
            name: "agents.leaf_denied_tools",
            kind: Kind::List {
                default: &["agent", "agent_send", "agent_wait", "agent_stop", "agent_list"],
                check: tool,
                set: |s, _, v| s.agent.children.leaf_denied_tools = v,
            },
            help: "Tools that agents at the greatest depth do not get either.",
            effect: "Replaces the default list.",
            example: "[\"agent\"]",
            project_ok: false,
        },
    ],
};

fn tool(text: &str) -> Result<(), String> {
    match text.trim().is_empty() || text.contains(char::is_whitespace) {
        true => Err("a tool's name has no spaces".to_owned()),
        false => Ok(()),
    }
}
