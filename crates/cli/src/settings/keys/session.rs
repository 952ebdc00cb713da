//! Keys of sessions.

use crate::settings::keys::{Key, Section};
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
    ],
};
