//! Keys without a section.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule};

pub(super) static SECTION: Section = Section {
    name: "",
    help: "The provider and the model.",
    keys: &[
        Key {
            name: "provider",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.provider = Some(v),
            },
            help: "Provider to use: a built-in one, or a name from `providers`.",
            effect: "If unset, the provider is chosen by the API keys found in the environment.",
            example: "\"anthropic\"",
            project_ok: false,
        },
        Key {
            name: "model",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.model = Some(v),
            },
            help: "Id of the model, as the provider spells it.",
            effect: "If unset, the provider's default model is used.",
            example: "\"claude-sonnet-4-5\"",
            project_ok: true,
        },
    ],
};
