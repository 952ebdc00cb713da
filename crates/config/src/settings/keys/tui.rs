//! Keys of the terminal UI.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule};

/// Names of the color themes of the terminal UI.
pub(super) const THEMES: [&str; 4] = ["terminal", "dark", "light", "none"];

pub(super) static SECTION: Section = Section {
    name: "tui",
    help: "The terminal UI. `windlass` with no arguments begins it.",
    keys: &[
        Key {
            name: "tui.theme",
            kind: Kind::Choice {
                words: || THEMES.to_vec(),
                default: None,
                set: |s, _, v| s.agent.screen.theme = Some(v.to_owned()),
            },
            help: "The colours: the terminal's own, or ones for a dark or a light background, or none.",
            effect: "Unset, it is what `/theme` chose last, or the terminal's own. `NO_COLOR` beats it.",
            example: "\"dark\"",
            project_ok: false,
        },
        Key {
            name: "tui.full_screen",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.agent.screen.full_screen = v,
            },
            help: "Whether the conversation begins on the whole screen.",
            effect: "Otherwise it goes into the terminal's own scrollback, where selecting and searching work as always.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "tui.vim",
            kind: Kind::Switch {
                default: None,
                set: |s, _, v| s.agent.screen.vim = Some(v),
            },
            help: "Whether text is written with vim's keys.",
            effect: "Unset, it is what `/vim` chose last, or no.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "tui.keys.<action>",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, p, v| {
                    let action = p.get(2).cloned().unwrap_or_default();
                    s.agent.screen.keys.insert(action, v);
                },
            },
            help: "Another key for an action; `/keys` lists the actions and their keys.",
            effect: "The default key of the action is free then. A key that does two things is refused.",
            example: "\"ctrl+t\"",
            project_ok: false,
        },
    ],
};
