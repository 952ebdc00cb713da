//! Keys of a turn.

use crate::settings::keys::{Key, Section, small};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::Word;
use windlass_core::turn::OnMaxIterations;
use windlass_providers::Effort;

pub(super) static SECTION: Section = Section {
    name: "agent",
    help: "Limits and style of a turn.",
    keys: &[
        Key {
            name: "agent.max_iterations",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: Some(200),
                set: |s, _, v| s.agent.max_iterations = small(v),
            },
            help: "The most model requests in one turn.",
            effect: "A turn that is not done by then ends as `agent.on_max_iterations` says.",
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
            help: "How a turn ends that used up its iterations.",
            effect: "`summary` asks the model once more, without tools, where it stands; `message` ends with a fixed text.",
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
            help: "How often per turn the model is told that work is still open before its answer is accepted.",
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
            help: "The most a session may cost, in US dollars.",
            effect: "The turn that reaches it ends. Unset, cost is counted and not limited.",
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
            effect: "Replaces the built-in one; an empty text sends none.",
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
            help: "How much the model is asked to reason before it answers.",
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
            help: "The most tokens of one reply.",
            effect: "A reply that is cut there goes on in the next request. Unset, it is the model's own limit.",
            example: "8000",
            project_ok: false,
        },
        Key {
            name: "agent.goal.enabled",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.goal.enabled = v,
            },
            help: "Whether a session has a goal: what your first message says, or what `/goal TEXT` sets.",
            effect: "It is shown to you and changes nothing else. With `false` there is none, and `/goal` and `/done` are refused.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "agent.goal.track_in_system_prompt",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.agent.goal.in_system_prompt = v,
            },
            help: "Whether `{current_goal}` in `agent.system_prompt` is replaced by the goal, as it is when a turn begins.",
            effect: "With `false` no model is told of goals. A goal that changes makes the provider read the whole conversation anew.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "agent.goal.completion_phrases",
            kind: Kind::List {
                default: &["task complete", "done", "finished", "completed"],
                check: phrase,
                set: |s, _, v| s.agent.goal.completion_phrases = v,
            },
            help: "Words in an answer that say that the goal was reached. Code, quotes, questions and denials do not count.",
            effect: "Your next message is a new goal then. With an empty list only `/done` completes one.",
            example: "[\"task complete\"]",
            project_ok: false,
        },
    ],
};

fn phrase(text: &str) -> Result<(), String> {
    if text.chars().any(char::is_alphanumeric) {
        return Ok(());
    }
    Err("expected words".to_owned())
}
