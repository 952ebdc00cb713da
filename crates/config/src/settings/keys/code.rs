//! Keys of the code index.

use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::{Kind, TextRule};

pub(super) static SECTION: Section = Section {
    name: "code",
    help: "The index of a workspace's files and definitions, for `code_search`. `docs/code-index.md` describes it.",
    keys: &[
        Key {
            name: "code.index",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.tools.code.index = v,
            },
            help: "Whether sessions index the files of their workspace.",
            effect: "With `false`, there is no `code_search` tool and no map of matching files.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "code.max_files",
            kind: Kind::Integer {
                min: 1,
                max: Some(1_000_000),
                default: Some(20_000),
                set: |s, _, v| s.tools.code.max_files = size(v),
            },
            help: "Maximum number of files in the index of a workspace.",
            effect: "In a larger workspace some files cannot be found; Windlass reports this once.",
            example: "50000",
            project_ok: false,
        },
        Key {
            name: "code.map_tokens",
            kind: Kind::Integer {
                min: 0,
                max: Some(20_000),
                default: Some(1_500),
                set: |s, _, v| s.tools.code.map_tokens = size(v),
            },
            help: "Maximum size of the map of matching files that is added before a turn, in tokens.",
            effect: "0 adds no map.",
            example: "3000",
            project_ok: false,
        },
        Key {
            name: "code.map_min_files",
            kind: Kind::Integer {
                min: 0,
                max: Some(1_000_000),
                default: Some(200),
                set: |s, _, v| s.tools.code.map_min_files = size(v),
            },
            help: "Number of files from which a workspace is indexed without a search, and gets a map before a turn.",
            effect: "Workspaces up to this size get no map, and are indexed when `code_search` is first called.",
            example: "1000",
            project_ok: false,
        },
        Key {
            name: "code.map_wait_ms",
            kind: Kind::Integer {
                min: 1,
                max: Some(60_000),
                default: Some(50),
                set: |s, _, v| s.tools.code.map_wait_ms = v,
            },
            help: "Longest wait for the map before a turn, in milliseconds.",
            effect: "A turn whose map takes longer starts without one.",
            example: "200",
            project_ok: false,
        },
        Key {
            name: "code.sourcegraph_url",
            kind: Kind::Text {
                rule: TextRule::Url,
                set: |s, _, v| s.tools.code.sourcegraph_url = Some(v),
            },
            help: "Address of a Sourcegraph-compatible server, as a second source of `code_search`.",
            effect: "If unset, or if `security.network` does not allow its host, only the workspace is searched.",
            example: "\"https://sourcegraph.example.com\"",
            project_ok: false,
        },
        Key {
            name: "code.sourcegraph_key_env",
            kind: Kind::Text {
                rule: TextRule::Variable,
                set: |s, _, v| s.tools.code.sourcegraph_key_env = Some(v),
            },
            help: "Name of the environment variable that holds the access token of that server.",
            effect: "If unset, `SRC_ACCESS_TOKEN` is used; without a token, requests carry none.",
            example: "\"MY_SOURCEGRAPH_TOKEN\"",
            project_ok: false,
        },
    ],
};
