//! Keys of the agent loop.

use crate::settings::keys::{Key, Section, small};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::Word;
use windlass_core::turn::OnMaxIterations;
use windlass_providers::Effort;

pub(super) static SECTION: Section = Section {
    name: "agent",
    help: "Limits and behavior of a turn.",
    keys: &[
        Key {
            name: "agent.max_iterations",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: Some(200),
                set: |s, _, v| s.agent.max_iterations = small(v),
            },
            help: "Maximum number of model requests in one turn.",
            effect: "A turn that reaches it ends according to `agent.on_max_iterations`.",
            example: "50",
            project_ok: true,
        },
        Key {
            name: "agent.on_max_iterations",
            kind: Kind::Choice {
                words: words::<OnMaxIterations>,
                default: Some("summary"),
                set: |s, _, v| s.agent.on_max_iterations = Word::from_word(v),
            },
            help: "How a turn ends when it has used up its iterations.",
            effect: "`summary` asks the model for a final progress report, without tools; `message` ends \
                     with a fixed text.",
            example: "\"message\"",
            project_ok: true,
        },
        Key {
            name: "agent.max_incomplete_prompts",
            kind: Kind::Integer {
                min: 0,
                max: Some(100),
                default: Some(2),
                set: |s, _, v| s.agent.max_incomplete_prompts = small(v),
            },
            help: "How many times per turn the model is reminded of unfinished work before its answer is \
                   accepted.",
            effect: "0 accepts the first answer.",
            example: "0",
            project_ok: true,
        },
        Key {
            name: "agent.max_cost_usd",
            kind: Kind::Number {
                min: 0.001,
                max: None,
                default: None,
                set: |s, _, v| s.agent.max_cost_usd = Some(v),
            },
            help: "Spending limit of a session, in US dollars.",
            effect: "A turn that reaches the limit ends. If unset, cost is tracked but not limited.",
            example: "2.5",
            project_ok: false,
        },
        Key {
            name: "agent.system_prompt",
            kind: Kind::Text {
                rule: TextRule::Free,
                set: |s, _, v| s.agent.system_prompt = Some(v),
            },
            help: "The system prompt.",
            effect: "Replaces the built-in prompt; an empty string sends no system prompt.",
            example: "\"You are a careful reviewer.\"",
            project_ok: false,
        },
        Key {
            name: "agent.reasoning",
            kind: Kind::Choice {
                words: words::<Option<Effort>>,
                default: Some("off"),
                set: |s, _, v| s.agent.reasoning = Word::from_word(v),
            },
            help: "How much the model should reason before it answers.",
            effect: "More reasoning takes longer and costs more. Models that cannot reason ignore it.",
            example: "\"medium\"",
            project_ok: false,
        },
        Key {
            name: "agent.max_output_tokens",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: None,
                set: |s, _, v| s.agent.max_output_tokens = Some(v),
            },
            help: "Maximum number of tokens in one reply.",
            effect: "A reply cut off at the limit continues in the next request. If unset, the model's own \
                     limit applies.",
            example: "8000",
            project_ok: false,
        },
    ],
};
