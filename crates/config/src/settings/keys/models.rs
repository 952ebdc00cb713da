//! Keys of models.

use crate::settings::Settings;
use crate::settings::keys::{Key, Section};
use crate::settings::kind::Kind;
use crate::settings::typed::ModelEntry;

pub(super) static SECTION: Section = Section {
    name: "models",
    help: "Facts about models that are unknown to Windlass or differ from its built-in data. Quote an id \
           that contains dots: `[models.\"gpt-5.1\"]`.",
    keys: &[
        Key {
            name: "models.<id>.context_window",
            kind: Kind::Integer {
                min: 1_000,
                max: None,
                default: None,
                set: |s, p, v| model(s, p).context_window = Some(v),
            },
            help: "Maximum number of tokens of a request and its reply together.",
            effect: "Determines when the conversation is compacted. If unset, the built-in value applies, or \
                     a safe guess for an unknown model.",
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
            help: "Maximum number of tokens in a reply.",
            effect: "Requests never ask for more.",
            example: "16000",
            project_ok: false,
        },
        Key {
            name: "models.<id>.images",
            kind: Kind::Switch {
                default: None,
                set: |s, p, v| model(s, p).images = Some(v),
            },
            help: "Whether the model accepts images.",
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
            help: "Whether the model supports reasoning.",
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
            help: "Price in US dollars per million tokens of uncached input.",
            effect: "Used to calculate costs.",
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
            help: "Price in US dollars per million tokens of output, including reasoning.",
            effect: "Used to calculate costs.",
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
            help: "Price in US dollars per million tokens read from the provider's cache.",
            effect: "Used to calculate costs.",
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
            help: "Price in US dollars per million tokens written to the provider's cache.",
            effect: "Used to calculate costs.",
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
