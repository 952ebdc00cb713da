//! Keys of goals, and of work without input.

use std::time::Duration;

use crate::settings::keys::{DAY, Key, Section, small};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::Word;
use windlass_core::event::LaterMessages;

/// GOAL-1, GOAL-2, GOAL-3, GOAL-4: goals of sessions.
pub(super) static SECTION: Section = Section {
    name: "agent.goal",
    help: "Goals of sessions, and work towards them without input.",
    keys: &[
        Key {
            name: "agent.goal.enabled",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.goal.enabled = v,
            },
            help: "Whether a session has a goal: your first message, or the text set with `/goal TEXT`.",
            effect: "The goal is only information; the status line shows one that a command set. With `false`, sessions have no goal, and `/goal` and \
                     `/done` are refused.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "agent.goal.later_messages",
            kind: Kind::Choice {
                words: words::<LaterMessages>,
                default: Some("extend"),
                set: |s, _, v| s.agent.goal.later_messages = Word::from_word(v),
            },
            help: "What your later messages do to a goal that came from your first message.",
            effect: "`extend` adds them, up to 2,000 characters in all; `replace` makes each the new goal; `keep` leaves \
                     the goal as it is. A goal set with `/goal` stays.",
            example: "\"keep\"",
            project_ok: false,
        },
        Key {
            name: "agent.goal.track_in_system_prompt",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.agent.goal.in_system_prompt = v,
            },
            help: "Whether `{current_goal}` in `agent.system_prompt` is replaced by the goal at the start of \
                   each turn.",
            effect: "With `false`, models do not see the goal. Changing the goal invalidates the provider's \
                     cache for the whole conversation.",
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
            help: "Phrases that mark the goal as reached: as a whole sentence of an answer, or at its end. Code, \
                   quotes, lists, tables, questions and negations do not count.",
            effect: "After that, your next message becomes the new goal. With an empty list, only `/done` \
                     completes a goal.",
            example: "[\"task complete\"]",
            project_ok: false,
        },
        Key {
            name: "agent.goal.autonomous_enabled",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.agent.goal.autonomy.enabled = v,
            },
            help: "Whether `/goal create --auto` may work towards a goal without your input.",
            effect: "With `false`, `--auto` is rejected. `windlass exec --goal` states the wish itself and \
                     needs no setting.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "agent.goal.autonomous_max_turns",
            kind: Kind::Integer {
                min: 1,
                max: Some(10_000),
                default: Some(50),
                set: |s, _, v| s.agent.goal.autonomy.max_turns = small(v),
            },
            help: "Maximum number of turns without input, unless `--turns` names another.",
            effect: "At the limit the goal is paused; `/goal resume` allows as many turns again.",
            example: "20",
            project_ok: false,
        },
        Key {
            name: "agent.goal.autonomous_turn_delay_ms",
            kind: Kind::Integer {
                min: 0,
                max: Some(3_600_000),
                default: Some(500),
                set: |s, _, v| s.agent.goal.autonomy.turn_delay = Duration::from_millis(v),
            },
            help: "Pause between two turns without input, in milliseconds.",
            effect: "Your own messages come first, whatever the pause.",
            example: "2000",
            project_ok: false,
        },
        Key {
            name: "agent.goal.autonomous_max_tokens",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: None,
                set: |s, _, v| s.agent.goal.autonomy.max_tokens = Some(v),
            },
            help: "Maximum number of tokens that work towards one goal may use.",
            effect: "At the limit the goal is paused. If unset, tokens are counted but not limited.",
            example: "2000000",
            project_ok: false,
        },
        Key {
            name: "agent.goal.autonomous_max_minutes",
            kind: Kind::Integer {
                min: 1,
                max: Some(10_080),
                default: Some(480),
                set: |s, _, v| s.agent.goal.autonomy.max_time = Duration::from_secs(v * 60),
            },
            help: "Maximum time that work towards one goal may take, in minutes.",
            effect: "At the limit the goal is paused; `/goal resume` starts the time again.",
            example: "60",
            project_ok: false,
        },
        Key {
            name: "agent.goal.max_stuck_count",
            kind: Kind::Integer {
                min: 2,
                max: Some(100),
                default: Some(3),
                set: |s, _, v| s.agent.goal.autonomy.max_stuck_count = small(v),
            },
            help: "Number of turns in a row with the same answer, or the same failure, after which a goal is \
                   blocked.",
            effect: "A higher number gives the model more attempts that look alike.",
            example: "5",
            project_ok: false,
        },
        Key {
            name: "agent.goal.check_timeout_secs",
            kind: Kind::Seconds {
                min: 1.0,
                max: 1800.0,
                default: 600,
                set: |s, _, v| s.agent.goal.autonomy.check_timeout = v,
            },
            help: "Maximum time of one check of a goal.",
            effect: "A check that takes longer is killed and counts as failed.",
            example: "120",
            project_ok: false,
        },
        Key {
            name: "agent.goal.answer_timeout_secs",
            kind: Kind::Seconds {
                min: 1.0,
                max: DAY,
                default: 600,
                set: |s, _, v| s.agent.goal.autonomy.answer_timeout = v,
            },
            help: "Maximum time that a question or a permission request waits for you in a turn without input.",
            effect: "After that, the goal is blocked and the request is denied.",
            example: "3600",
            project_ok: false,
        },
        Key {
            name: "agent.goal.supervisor_provider",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.goal.autonomy.supervisor.provider = Some(v),
            },
            help: "Provider that judges progress towards a goal: a name, or `provider/model`.",
            effect: "If unset, the session's own model judges.",
            example: "\"anthropic/claude-haiku-4-5\"",
            project_ok: false,
        },
        Key {
            name: "agent.goal.verify_interval",
            kind: Kind::Integer {
                min: 1,
                max: Some(10_000),
                default: Some(5),
                set: |s, _, v| s.agent.goal.autonomy.supervisor.interval = small(v),
            },
            help: "Number of turns between two judgements of the supervisor.",
            effect: "A goal without checks is also judged when the model says that it is done.",
            example: "10",
            project_ok: false,
        },
        Key {
            name: "agent.goal.supervisor_timeout_secs",
            kind: Kind::Seconds {
                min: 0.1,
                max: 600.0,
                default: 30,
                set: |s, _, v| s.agent.goal.autonomy.supervisor.timeout = v,
            },
            help: "Maximum time of one judgement.",
            effect: "A judgement that takes longer counts as failed: the goal is not done.",
            example: "60",
            project_ok: false,
        },
        Key {
            name: "agent.goal.max_supervisor_fails",
            kind: Kind::Integer {
                min: 1,
                max: Some(100),
                default: Some(3),
                set: |s, _, v| s.agent.goal.autonomy.supervisor.max_fails = small(v),
            },
            help: "Number of failed judgements in a row after which a goal is paused.",
            effect: "Garbled answers and timeouts count as failures.",
            example: "5",
            project_ok: false,
        },
    ],
};

/// GOAL-9: spending while nobody watches.
pub(super) static AUTONOMY: Section = Section {
    name: "autonomy",
    help: "Spending while nobody watches.",
    keys: &[Key {
        name: "autonomy.max_cost_per_day",
        kind: Kind::Number {
            min: 0.0,
            max: None,
            default: Some(10.0),
            set: |s, _, v| s.agent.goal.autonomy.max_cost_per_day = Some(v).filter(|limit| *limit > 0.0),
        },
        help: "Maximum cost of all work without input per day (UTC), in US dollars, over all sessions.",
        effect: "At the limit goals are paused until you resume them on another day; 0 means no limit.",
        example: "25.0",
        project_ok: false,
    }],
};

fn phrase(text: &str) -> Result<(), String> {
    if text.chars().any(char::is_alphanumeric) {
        return Ok(());
    }
    Err("expected words".to_owned())
}
