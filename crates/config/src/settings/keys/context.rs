//! Keys of compaction.

use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "context",
    help: "When the conversation is compacted to fit the model's context window.",
    keys: &[
        Key {
            name: "context.auto_compact",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.context.auto_compact = v,
            },
            help: "Whether the conversation is compacted automatically when it approaches the model's \
                   context window.",
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
            help: "Fraction of the context window at which the conversation is compacted.",
            effect: "A lower value compacts earlier and leaves more room for replies.",
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
            help: "Fraction of the context window at which prepared summaries are applied, and the size \
                   compaction aims for.",
            effect: "A lower value frees more at a time, so that the provider's cache stays valid for \
                     longer.",
            example: "0.5",
            project_ok: true,
        },
        Key {
            name: "context.pair_summaries",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.context.pair_summaries = v,
            },
            help: "Whether old tool calls and their results are summarized in the background, for use when \
                   the context fills up.",
            effect: "With `true`, extra model calls run in the background; `/cost cause` lists them as \
                     `pair-summary`.",
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
            help: "Number of most recent messages that compaction leaves unchanged.",
            effect: "A higher value preserves more recent work verbatim and frees less space.",
            example: "10",
            project_ok: true,
        },
    ],
};
