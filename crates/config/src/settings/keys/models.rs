//! Keys of a model.

use crate::settings::Settings;
use crate::settings::keys::{Key, Section};
use crate::settings::kind::Kind;
use crate::settings::typed::ModelEntry;

pub(super) static SECTION: Section = Section {
    name: "models",
    help: "Facts about models that are not built in, or that differ. An id with dots is quoted: `[models.\"gpt-5.1\"]`.",
    keys: &[
        Key {
            name: "models.<id>.context_window",
            kind: Kind::Integer {
                min: 1_000,
                max: None,
                default: None,
                set: |s, p, v| model(s, p).context_window = Some(v),
            },
            help: "The most tokens of a request and its reply together.",
            effect: "Compaction is measured against it. Unset, it is the built-in fact, or a safe guess for an unknown model.",
            example: "128000",
            project_ok: false,
        },
        Key {
            name: "models.<id>.max_output",
            kind: Kind::Integer {
                min: 1,
                max: None,
                default: None,
                set: |s, p, v| model(s, p).max_output = Some(v),
            },
            help: "The most tokens of a reply.",
            effect: "Requests ask for no more.",
            example: "16000",
            project_ok: false,
        },
        Key {
            name: "models.<id>.images",
            kind: Kind::Switch {
                default: None,
                set: |s, p, v| model(s, p).images = Some(v),
            },
            help: "Whether the model reads images.",
            effect: "With `false`, an image is replaced by a note.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "models.<id>.reasoning",
            kind: Kind::Switch {
                default: None,
                set: |s, p, v| model(s, p).reasoning = Some(v),
            },
            help: "Whether the model can be asked to reason.",
            effect: "With `false`, `agent.reasoning` is not sent.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "models.<id>.price.input",
            kind: Kind::Number {
                min: 0.0,
                max: None,
                default: None,
                set: |s, p, v| model(s, p).price.input = Some(v),
            },
            help: "US dollars for a million tokens of input that is not cached.",
            effect: "Costs are counted with it.",
            example: "1.25",
            project_ok: false,
        },
        Key {
            name: "models.<id>.price.output",
            kind: Kind::Number {
                min: 0.0,
                max: None,
                default: None,
                set: |s, p, v| model(s, p).price.output = Some(v),
            },
            help: "US dollars for a million tokens of output, reasoning included.",
            effect: "Costs are counted with it.",
            example: "10.0",
            project_ok: false,
        },
        Key {
            name: "models.<id>.price.cache_read",
            kind: Kind::Number {
                min: 0.0,
                max: None,
                default: None,
                set: |s, p, v| model(s, p).price.cache_read = Some(v),
            },
            help: "US dollars for a million tokens read from the provider's cache.",
            effect: "Costs are counted with it.",
            example: "0.125",
            project_ok: false,
        },
        Key {
            name: "models.<id>.price.cache_write",
            kind: Kind::Number {
                min: 0.0,
                max: None,
                default: None,
                set: |s, p, v| model(s, p).price.cache_write = Some(v),
            },
            help: "US dollars for a million tokens written to the provider's cache.",
            effect: "Costs are counted with it.",
            example: "1.5",
            project_ok: false,
        },
    ],
};

fn model<'a>(settings: &'a mut Settings, path: &[String]) -> &'a mut ModelEntry {
    settings
        .models
        .entry(path.get(1).cloned().unwrap_or_default())
        .or_default()
}
