//! Keys of sessions.

use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::{Kind, TextRule};

pub(super) static SECTION: Section = Section {
    name: "session",
    help: "What is remembered of sessions, and what they are called.",
    keys: &[
        Key {
            name: "session.provider_persistence",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.session.provider_persistence = v,
            },
            help: "Whether a choice by `/provider` or `/model` is remembered for the folder.",
            effect: "With `false`, every run begins with the provider that the settings name.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "session.title_model",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.title_model = Some(v),
            },
            help: "The model that makes titles of sessions: one of the active provider, or `provider/model`.",
            effect: "Unset, a title is the beginning of the first message. Set, the first message is also sent to this \
                     model, in the background.",
            example: "\"anthropic/claude-haiku-4-5\"",
            project_ok: false,
        },
        Key {
            name: "session.max_conversation_messages",
            kind: Kind::Integer {
                min: 0,
                max: None,
                default: Some(0),
                set: |s, _, v| s.agent.session.max_conversation_messages = size(v),
            },
            help: "The most messages of a conversation when a turn begins; 0 for no limit.",
            effect: "Over it the oldest go first, in whole exchanges, with a warning. They stay in the record.",
            example: "200",
            project_ok: true,
        },
        Key {
            name: "session.record",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.session.record = v,
            },
            help: "Whether requests to models and their answers are kept, so that `windlass replay` can drive a session again.",
            effect: "With `false`, sessions take less room, and cannot be replayed.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "session.record_max_mb",
            kind: Kind::Integer {
                min: 1,
                max: Some(10_000),
                default: Some(64),
                set: |s, _, v| s.agent.session.record_max_mb = v,
            },
            help: "How many megabytes of requests and answers are kept of a session.",
            effect: "What comes after is not kept; the session itself goes on.",
            example: "256",
            project_ok: false,
        },
    ],
};
