//! Keys without a section.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule};

pub(super) static SECTION: Section = Section {
    name: "",
    help: "Which model answers.",
    keys: &[
        Key {
            name: "provider",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.provider = Some(v),
            },
            help: "The provider that answers: a built-in one, or a name from `providers`.",
            effect: "Unset, the provider is chosen from the keys found in the environment.",
            example: "\"anthropic\"",
            project_ok: false,
        },
        Key {
            name: "model",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.model = Some(v),
            },
            help: "The model to ask, by the provider's name for it.",
            effect: "Unset, it is the provider's default model.",
            example: "\"claude-sonnet-4-5\"",
            project_ok: true,
        },
    ],
};
