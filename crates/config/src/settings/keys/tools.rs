//! Keys of tools.

use crate::settings::keys::{DAY, Key, Section, size};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::{SearchEngine, Word};
use windlass_core::dispatch::Execution;

pub(super) static SECTION: Section = Section {
    name: "tools",
    help: "How tools run, and how much of their output is stored.",
    keys: &[
        Key {
            name: "tools.execution",
            kind: Kind::Choice {
                words: words::<Execution>,
                default: Some("auto"),
                set: |s, _, v| s.tools.execution = Word::from_word(v),
            },
            help: "How multiple tool calls in one reply run.",
            effect: "`auto` runs adjacent read-only calls in parallel and all others one at a time; \
                     `parallel` and `sequential` apply to every call. Results keep the order of the calls.",
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
            help: "Maximum duration of a tool call.",
            effect: "A call that takes longer is killed with all its processes; the model gets the output so \
                     far.",
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
            help: "Maximum number of characters of a tool result that the model sees.",
            effect: "A longer result is truncated with a notice; the model can still read the full result.",
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
            help: "Maximum number of bytes of a command's output to keep.",
            effect: "Longer output is reduced to its head and tail; the full output goes to a file that \
                     `tool_output` reads.",
            example: "1000000",
            project_ok: false,
        },
        Key {
            name: "tools.retry_transient",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.tools.retry_transient = v,
            },
            help: "Whether a read-only call is retried once after a transient error.",
            effect: "The retry comes after 200 ms, and its result counts. Calls that change something are \
                     never retried.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "tools.done",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.tools.done = v,
            },
            help: "Whether the `done` tool, which ends a turn, is offered in every session.",
            effect: "`windlass exec --require-done` and sub-agents have it in any case.",
            example: "true",
            project_ok: true,
        },
        Key {
            name: "tools.taco.enabled",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.context.taco.enabled = v,
            },
            help: "Whether a model compresses long outputs before they are added to the conversation.",
            effect: "The full output stays readable with `tool_output`. Results of calls that asked for \
                     approval are not compressed.",
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
            help: "Size in tokens above which an output is compressed.",
            effect: "Shorter outputs are left unchanged.",
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
            help: "Target size of a compressed output, in tokens.",
            effect: "The model is asked to stay below it, and its reply is cut off at twice the target.",
            example: "800",
            project_ok: false,
        },
        Key {
            name: "tools.taco.taco_provider",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.context.taco.provider = Some(v),
            },
            help: "Provider that compresses outputs: a provider, or `provider/model`.",
            effect: "If unset, the session's own model compresses them.",
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
            help: "Names of the tools whose outputs are compressed; `shell` is `bash`, `web_scrape` is \
                   `fetch`, `read` is `read_file`.",
            effect: "Outputs of other tools are left unchanged.",
            example: "[\"shell\"]",
            project_ok: false,
        },
        Key {
            name: "tools.web_search.engine",
            kind: Kind::Choice {
                words: words::<Option<SearchEngine>>,
                default: Some("off"),
                set: |s, _, v| s.tools.web_search.engine = Word::from_word(v),
            },
            help: "Search engine behind the `web_search` tool.",
            effect: "`off` does not offer the tool. `searxng` needs `tools.web_search.url`; `brave` reads its key from \
                     `BRAVE_API_KEY`, `tavily` from `TAVILY_API_KEY`. Queries go to this engine without asking.",
            example: "\"searxng\"",
            project_ok: false,
        },
        Key {
            name: "tools.web_search.url",
            kind: Kind::Text {
                rule: TextRule::Url,
                set: |s, _, v| s.tools.web_search.url = Some(v),
            },
            help: "Address of the search engine.",
            effect: "For SearXNG, an instance whose `search.formats` include `json`. Brave and Tavily have their own.",
            example: "\"http://localhost:8888\"",
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
