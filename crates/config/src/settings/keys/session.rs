//! Keys of sessions.

use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::{Kind, TextRule};

pub(super) static SECTION: Section = Section {
    name: "session",
    help: "Storage and titles of sessions.",
    keys: &[
        Key {
            name: "session.provider_persistence",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.session.provider_persistence = v,
            },
            help: "Whether a choice made with `/provider` or `/model` is remembered for the folder.",
            effect: "With `false`, every run starts with the provider from the settings.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "session.title_model",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.title_model = Some(v),
            },
            help: "Model that generates session titles: one of the active provider, or `provider/model`.",
            effect: "If unset, the title is the start of the first message. If set, the first message is \
                     also sent to this model, in the background.",
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
            help: "Maximum number of messages in a conversation at the start of a turn; 0 for no limit.",
            effect: "Above the limit, the oldest messages are dropped in whole exchanges, with a warning. \
                     They stay in the session log.",
            example: "200",
            project_ok: true,
        },
        Key {
            name: "session.record",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.session.record = v,
            },
            help: "Whether model requests and replies are recorded, so that `windlass replay` can replay a \
                   session.",
            effect: "With `false`, sessions take less space and cannot be replayed.",
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
            help: "Maximum size of the recorded requests and replies of a session, in megabytes.",
            effect: "Later requests are not recorded; the session itself continues.",
            example: "256",
            project_ok: false,
        },
    ],
};
