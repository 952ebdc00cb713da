//! Keys of compaction strategies.

use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::{Kind, words};
use crate::settings::typed::Word;

pub(super) static SECTION: Section = Section {
    name: "memory",
    help: "How a conversation is compacted. `docs/context.md` compares the strategies.",
    keys: &[
        Key {
            name: "memory.compression.pruning_strategy",
            kind: Kind::Choice {
                words: words::<windlass_core::compact::Strategy>,
                default: Some("summarize"),
                set: |s, _, v| s.context.strategy = Word::from_word(v),
            },
            help: "Compaction strategy: a summary, short notes in place of old outputs, keeping what serves \
                   the current goal, and others.",
            effect: "`none` never compacts. `subgoal` and `subgoal_mig` cannot be used with \
                     `memory.sidequest.enabled`.",
            example: "\"mask\"",
            project_ok: true,
        },
        Key {
            name: "memory.focus.auto_consolidate_min_window",
            kind: Kind::Integer {
                min: 1,
                max: Some(1_000),
                default: Some(4),
                set: |s, _, v| s.context.focus_window = size(v),
            },
            help: "With the strategy `focus`: number of turns between checks of the collected knowledge for \
                   repetition.",
            effect: "0 is rejected: it would compare everything after every step.",
            example: "6",
            project_ok: true,
        },
        Key {
            name: "memory.sidequest.enabled",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.context.sidequest = v,
            },
            help: "Whether a model is asked every ten turns which outputs can be dropped.",
            effect: "With `true`, extra model calls run in the background. Cannot be combined with the \
                     strategies `subgoal` and `subgoal_mig`.",
            example: "true",
            project_ok: false,
        },
    ],
};
