//! Keys without a section.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule};
use crate::settings::typed::StoreUrl;

pub(super) static SECTION: Section = Section {
    name: "",
    help: "The provider, the model, and the store.",
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
        Key {
            name: "store",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.store = Some(StoreUrl(v)),
            },
            help: "Database of the sessions: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, `sqlite:PATH`, or a path.",
            effect: "Postgres lets several processes and machines share sessions, memory and scheduled jobs. If unset, \
                     sessions are in `windlass.db` in the data folder. The password is never shown. `--store` overrides it.",
            example: "\"postgres://me@db.example.org/windlass?sslmode=verify-full\"",
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
