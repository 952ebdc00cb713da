//! Keys of the terminal UI.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule};

/// Names of the color themes of the terminal UI.
pub(super) const THEMES: [&str; 4] = ["terminal", "dark", "light", "none"];

/// Ways to notify the user.
const NOTIFY: [&str; 5] = ["auto", "osc9", "osc777", "bell", "off"];

pub(super) static SECTION: Section = Section {
    name: "tui",
    help: "The terminal UI, which `windlass` starts when run without arguments.",
    keys: &[
        Key {
            name: "tui.theme",
            kind: Kind::Choice {
                words: || THEMES.to_vec(),
                default: None,
                set: |s, _, v| s.agent.screen.theme = Some(v.to_owned()),
            },
            help: "Color theme: the terminal's own colors, colors for a dark or a light background, or none.",
            effect: "If unset, the last choice made with `/theme` applies, or the terminal's own colors. \
                     `NO_COLOR` takes precedence.",
            example: "\"dark\"",
            project_ok: false,
        },
        Key {
            name: "tui.full_screen",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.agent.screen.full_screen = v,
            },
            help: "Whether the terminal UI starts in full-screen mode.",
            effect: "Otherwise the conversation is part of the terminal's own scrollback, where selection \
                     and search work as usual.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "tui.vim",
            kind: Kind::Switch {
                default: None,
                set: |s, _, v| s.agent.screen.vim = Some(v),
            },
            help: "Whether the input uses vim keys.",
            effect: "If unset, the last choice made with `/vim` applies; off by default.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "tui.mouse",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.screen.mouse = Some(v),
            },
            help: "Whether the mouse wheel scrolls the conversation in full-screen mode.",
            effect: "If on, hold shift to select text in full screen. Outside full screen the terminal always has \
                     the mouse.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "tui.title",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.screen.title = Some(v),
            },
            help: "Whether the terminal's title shows the folder and whether a turn runs.",
            effect: "The previous title is restored at the end, where the terminal supports that.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "tui.notify",
            kind: Kind::Choice {
                words: || NOTIFY.to_vec(),
                default: Some("auto"),
                set: |s, _, v| s.agent.screen.notify = Some(v.to_owned()),
            },
            help: "Notification when a turn ends or a question waits while the terminal is not focused.",
            effect: "`auto` uses the desktop notification that the terminal is known to support, otherwise the \
                     bell.",
            example: "\"bell\"",
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
            help: "Key for an action; `/keys` lists the actions and their keys.",
            effect: "Replaces the default key of the action. A key bound to two actions is rejected.",
            example: "\"ctrl+t\"",
            project_ok: false,
        },
    ],
};
