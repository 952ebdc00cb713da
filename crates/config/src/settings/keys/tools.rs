//! Keys of tools.

use crate::settings::keys::{DAY, Key, Section, size};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::Word;
use windlass_core::dispatch::Execution;

pub(super) static SECTION: Section = Section {
    name: "tools",
    help: "How tools run and how much of their output is kept.",
    keys: &[
        Key {
            name: "tools.execution",
            kind: Kind::Choice {
                words: words::<Execution>,
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
        Key {
            name: "tools.taco.enabled",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.context.taco.enabled = v,
            },
            help: "Whether long outputs are compressed by a model before the conversation gets them.",
            effect: "The whole output stays readable with `tool_output`. Results of calls you were asked about are left as they are.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "tools.taco.taco_threshold",
            kind: Kind::Integer {
                min: 100,
                max: None,
                default: Some(2_000),
                set: |s, _, v| s.context.taco.threshold = v,
            },
            help: "Tokens over which an output is compressed.",
            effect: "Shorter outputs are left alone.",
            example: "4000",
            project_ok: false,
        },
        Key {
            name: "tools.taco.target_tokens",
            kind: Kind::Integer {
                min: 50,
                max: None,
                default: Some(500),
                set: |s, _, v| s.context.taco.target = v,
            },
            help: "Tokens that a compressed output is to have.",
            effect: "The model is asked for fewer, and cut at twice as many.",
            example: "800",
            project_ok: false,
        },
        Key {
            name: "tools.taco.taco_provider",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.context.taco.provider = Some(v),
            },
            help: "Who compresses: a provider, or `provider/model`.",
            effect: "Unset, the session's own model does.",
            example: "\"anthropic/claude-haiku-4-5\"",
            project_ok: false,
        },
        Key {
            name: "tools.taco.compressible_tools",
            kind: Kind::List {
                default: &["shell", "web_scrape", "read"],
                check: not_empty,
                set: |s, _, v| s.context.taco.tools = v,
            },
            help: "The tools whose outputs are compressed, by name; `shell` is `bash`, `web_scrape` is `fetch`, `read` is `read_file`.",
            effect: "Outputs of other tools are left alone.",
            example: "[\"shell\"]",
            project_ok: false,
        },
    ],
};

fn not_empty(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("expected the name of a tool, found an empty string".to_owned());
    }
    Ok(())
}
