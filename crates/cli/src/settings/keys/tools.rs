//! Keys of tools.

use crate::settings::keys::{DAY, Key, Section, size};
use crate::settings::kind::{Kind, words};
use crate::settings::typed::{ToolExecution, Word};

pub(super) static SECTION: Section = Section {
    name: "tools",
    help: "How tools run and how much of their output is kept.",
    keys: &[
        Key {
            name: "tools.execution",
            kind: Kind::Choice {
                words: words::<ToolExecution>,
                default: Some("auto"),
                set: |s, _, v| s.tools.execution = Word::from_word(v),
            },
            help: "How several tool calls of one reply run.",
            effect: "`auto` runs neighbouring calls that only read together and all others alone; `parallel` and `sequential` force either. Results keep the order of the calls.",
            example: "\"sequential\"",
            project_ok: true,
        },
        Key {
            name: "tools.timeout_secs",
            kind: Kind::Seconds {
                min: 0.1,
                max: DAY,
                default: 120,
                set: |s, _, v| s.tools.timeout = v,
            },
            help: "How long a tool call may take.",
            effect: "A call that takes longer is killed with all its processes; the model gets the output so far.",
            example: "600",
            project_ok: true,
        },
        Key {
            name: "tools.max_tool_result_chars",
            kind: Kind::Integer {
                min: 100,
                max: None,
                default: Some(40_000),
                set: |s, _, v| s.tools.max_tool_result_chars = size(v),
            },
            help: "The most characters of a tool result that the model sees.",
            effect: "A longer result is cut and says so; the whole stays readable.",
            example: "20000",
            project_ok: true,
        },
        Key {
            name: "tools.max_output_bytes",
            kind: Kind::Integer {
                min: 1_000,
                max: None,
                default: Some(200_000),
                set: |s, _, v| s.tools.max_output_bytes = size(v),
            },
            help: "The most bytes of a command's output that are kept.",
            effect: "Of a longer output the head and the tail are kept; the whole goes to a file that `tool_output` reads.",
            example: "1000000",
            project_ok: false,
        },
        Key {
            name: "tools.retry_transient",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.tools.retry_transient = v,
            },
            help: "Whether a call that only reads is tried once more when it fails in a way that may pass.",
            effect: "The second try comes after 200 ms, and its result counts. Calls that change something are never tried again.",
            example: "false",
            project_ok: false,
        },
    ],
};
