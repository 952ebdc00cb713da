//! Keys of providers.

use crate::settings::Settings;
use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::{ProviderEntry, Word};
use windlass_providers::Wire;

pub(super) static SECTION: Section = Section {
    name: "providers",
    help: "Providers under names of your choice. API keys do not belong here: name the environment variable \
           that holds the key, or the command that prints it.",
    keys: &[
        Key {
            name: "providers.<name>.preset",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, p, v| provider(s, p).preset = Some(v),
            },
            help: "Built-in provider that this one is based on.",
            effect: "Supplies every key below that is not set. If unset, `wire` and `base_url` are required.",
            example: "\"openai\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.wire",
            kind: Kind::Choice {
                words: words::<Wire>,
                default: None,
                set: |s, p, v| provider(s, p).wire = Some(Word::from_word(v)),
            },
            help: "Format of requests and replies.",
            effect: "Must match the server at `base_url`.",
            example: "\"openai-chat\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.base_url",
            kind: Kind::Text {
                rule: TextRule::Url,
                set: |s, p, v| provider(s, p).base_url = Some(v),
            },
            help: "Address of the server, up to and including the version.",
            effect: "Requests are sent there, including the API key.",
            example: "\"http://localhost:8000/v1\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.key_env",
            kind: Kind::Text {
                rule: TextRule::Variable,
                set: |s, p, v| provider(s, p).key_env = Some(v),
            },
            help: "Name of the environment variable that holds the API key.",
            effect: "The variable is read when the provider is first used.",
            example: "\"MY_SERVER_API_KEY\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.key_command",
            kind: Kind::Command {
                set: |s, p, v| provider(s, p).key_command = Some(v),
            },
            help: "Command that prints the API key: a shell command line, or an array of a program and its \
                   arguments.",
            effect: "The command runs when the provider is first used; the key stays in memory.",
            example: "[\"pass\", \"show\", \"my-server\"]",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.model",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, p, v| provider(s, p).model = Some(v),
            },
            help: "Model to use when `model` is unset.",
            effect: "If unset, the preset's default applies.",
            example: "\"qwen3-coder\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.headers.<header>",
            kind: Kind::Text {
                rule: TextRule::Header,
                set: set_header,
            },
            help: "Header added to every request.",
            effect: "Headers that carry an API key, such as `Authorization`, are rejected.",
            example: "\"research\"",
            project_ok: false,
        },
    ],
};

fn provider<'a>(settings: &'a mut Settings, path: &[String]) -> &'a mut ProviderEntry {
    settings
        .providers
        .entry(path.get(1).cloned().unwrap_or_default())
        .or_default()
}

fn set_header(settings: &mut Settings, path: &[String], value: String) {
    let name = path.last().cloned().unwrap_or_default();
    provider(settings, path).headers.insert(name, value);
}
