//! Keys of compaction.

use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "context",
    help: "When history is compacted to fit the model's context window.",
    keys: &[
        Key {
            name: "context.auto_compact",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.context.auto_compact = v,
            },
            help: "Whether history is compacted when it nears the model's context window.",
            effect: "With `false`, a session that outgrows the window ends with an error.",
            example: "false",
            project_ok: true,
        },
        Key {
            name: "context.hard_threshold",
            kind: Kind::Number {
                min: 0.1,
                max: Some(0.99),
                default: Some(0.90),
                set: |s, _, v| s.context.hard_threshold = v,
            },
            help: "The share of the context window at which history is compacted.",
            effect: "A lower share compacts earlier and leaves more room for replies.",
            example: "0.8",
            project_ok: true,
        },
        Key {
            name: "context.soft_threshold",
            kind: Kind::Number {
                min: 0.1,
                max: Some(0.99),
                default: Some(0.60),
                set: |s, _, v| s.context.soft_threshold = v,
            },
            help: "The share of the context window at which summaries that are ready are applied, and to which compaction goes down.",
            effect: "A lower share frees more at a time, and the provider's cache is used again for longer.",
            example: "0.5",
            project_ok: true,
        },
        Key {
            name: "context.pair_summaries",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.context.pair_summaries = v,
            },
            help: "Whether old calls and their results are summarized in the background, to be used when the context fills up.",
            effect: "With `true`, models are asked for more than you see; `/cost cause` shows it as `pair-summary`.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "context.keep_recent_messages",
            kind: Kind::Integer {
                min: 0,
                max: None,
                default: Some(6),
                set: |s, _, v| s.context.keep_recent_messages = size(v),
            },
            help: "How many of the newest messages compaction leaves as they are.",
            effect: "More keeps recent work exact and frees less room.",
            example: "10",
            project_ok: true,
        },
    ],
};
