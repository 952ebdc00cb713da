//! Keys of memory across sessions, and of compaction strategies.

use std::time::Duration;

use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::{EmbeddingSource, Word};

pub(super) static SECTION: Section = Section {
    name: "memory",
    help: "Memory across sessions (`docs/memory.md`), and how a conversation is compacted. `docs/context.md` compares \
           the strategies.",
    keys: &[
        Key {
            name: "memory.enabled",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.context.memory.enabled = v,
            },
            help: "Whether sessions are remembered on this machine, and recalled in later sessions of the same project.",
            effect: "With `false`, nothing new is kept and nothing is recalled; what was kept stays until it is \
                     forgotten.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "memory.budget_tokens",
            kind: Kind::Integer {
                min: 50,
                max: Some(20_000),
                default: Some(1_000),
                set: |s, _, v| s.context.memory.budget_tokens = size(v),
            },
            help: "Maximum number of tokens that are recalled before a turn.",
            effect: "More context from earlier sessions, and a higher cost of every request.",
            example: "2000",
            project_ok: false,
        },
        Key {
            name: "memory.max_results",
            kind: Kind::Integer {
                min: 1,
                max: Some(50),
                default: Some(8),
                set: |s, _, v| s.context.memory.max_results = size(v),
            },
            help: "Maximum number of units that are recalled before a turn.",
            effect: "The budget limits them as well.",
            example: "5",
            project_ok: false,
        },
        Key {
            name: "memory.threshold",
            kind: Kind::Number {
                min: 0.0,
                max: Some(1.0),
                default: Some(0.35),
                set: |s, _, v| s.context.memory.threshold = v,
            },
            help: "Relevance that a unit needs to be recalled: the share of the telling words of the question that it \
                   contains, or the similarity of meaning.",
            effect: "Lower values recall more, and more that does not matter.",
            example: "0.5",
            project_ok: false,
        },
        Key {
            name: "memory.time_limit_ms",
            kind: Kind::Integer {
                min: 1,
                max: Some(60_000),
                default: Some(150),
                set: |s, _, v| s.context.memory.time_limit = Duration::from_millis(v),
            },
            help: "Maximum time of recall before a turn, in milliseconds.",
            effect: "A turn that would wait longer starts without recalled text, and `windlass memory misses` lists it.",
            example: "500",
            project_ok: false,
        },
        Key {
            name: "memory.embeddings",
            kind: Kind::Choice {
                words: words::<EmbeddingSource>,
                default: Some("local"),
                set: |s, _, v| s.context.memory.embeddings = Word::from_word(v),
            },
            help: "Source of the vectors that find texts by their meaning: the local model that `windlass memory \
                   setup` installs, a server, or none.",
            effect: "Without vectors, search matches words only. `server` sends texts of conversations to `memory.server`.",
            example: "\"off\"",
            project_ok: false,
        },
        Key {
            name: "memory.server",
            kind: Kind::Text {
                rule: TextRule::Url,
                set: |s, _, v| s.context.memory.server = Some(v),
            },
            help: "Address of a server with an OpenAI-compatible `/v1/embeddings`.",
            effect: "Used only if `memory.embeddings` is `server`.",
            example: "\"http://localhost:11434\"",
            project_ok: false,
        },
        Key {
            name: "memory.server_model",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.context.memory.server_model = Some(v),
            },
            help: "Model of the embedding server.",
            effect: "Vectors of another model are never compared with it; they are made again.",
            example: "\"nomic-embed-text\"",
            project_ok: false,
        },
        Key {
            name: "memory.server_key_env",
            kind: Kind::Text {
                rule: TextRule::Variable,
                set: |s, _, v| s.context.memory.server_key_env = Some(v),
            },
            help: "Environment variable with the key of the embedding server.",
            effect: "Unset: no key is sent.",
            example: "\"EMBEDDINGS_API_KEY\"",
            project_ok: false,
        },
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
