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
        Key {
            name: "fallback",
            kind: Kind::List {
                default: &[],
                check: stand_in,
                set: |s, _, v| s.retry.fallback = v,
            },
            help: "Models that answer when the first one cannot: `provider/model`, in order.",
            effect: "Used when a request failed after its retries because of a quota, an overload or an outage. \
                     The switch is reported, and cost is booked for the model that answered.",
            example: "[\"openai/gpt-5.1\"]",
            project_ok: false,
        },
    ],
};

/// Checks the name of a model.
fn stand_in(text: &str) -> Result<(), String> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(()),
        _ => Err("expected `provider/model`".to_owned()),
    }
}
