//! Keys of a provider.

use crate::settings::Settings;
use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::{ProviderEntry, Word};
use windlass_providers::Wire;

pub(super) static SECTION: Section = Section {
    name: "providers",
    help: "Providers under names of your choice. Keys never live here: name the environment variable or the command that has the key.",
    keys: &[
        Key {
            name: "providers.<name>.preset",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, p, v| provider(s, p).preset = Some(v),
            },
            help: "The built-in provider that this one is based on.",
            effect: "Gives every key below that is not set. Unset, `wire` and `base_url` say it all.",
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
            help: "The format of requests and replies.",
            effect: "Must be what the server at `base_url` speaks.",
            example: "\"openai-chat\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.base_url",
            kind: Kind::Text {
                rule: TextRule::Url,
                set: |s, p, v| provider(s, p).base_url = Some(v),
            },
            help: "The address of the server, up to the version.",
            effect: "Requests, and with them the key, go there.",
            example: "\"http://localhost:8000/v1\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.key_env",
            kind: Kind::Text {
                rule: TextRule::Variable,
                set: |s, p, v| provider(s, p).key_env = Some(v),
            },
            help: "The name of the environment variable that has the key.",
            effect: "The variable is read when the provider is first used.",
            example: "\"MY_SERVER_API_KEY\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.key_command",
            kind: Kind::Command {
                set: |s, p, v| provider(s, p).key_command = Some(v),
            },
            help: "A command that prints the key: a line for the shell, or an array with a program and its arguments.",
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
            help: "The model this provider is asked when `model` is unset.",
            effect: "Unset, it is the preset's default.",
            example: "\"qwen3-coder\"",
            project_ok: false,
        },
        Key {
            name: "providers.<name>.headers.<header>",
            kind: Kind::Text {
                rule: TextRule::Header,
                set: set_header,
            },
            help: "A header added to every request.",
            effect: "Headers that carry a key, such as `Authorization`, are refused.",
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
