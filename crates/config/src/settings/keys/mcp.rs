//! Keys of MCP servers.

use serde_json::Value;

use crate::settings::Settings;
use crate::settings::keys::{Key, Section, size};
use crate::settings::kind::{Kind, TextRule};

pub(super) static SECTION: Section = Section {
    name: "mcp",
    help: "The client for MCP servers. `docs/mcp.md` explains it.",
    keys: &[
        Key {
            name: "mcp.tool_budget_bytes",
            kind: Kind::Integer {
                min: 0,
                max: Some(10_000_000),
                default: Some(6_000),
                set: |s, _, v| s.tools.mcp.tool_budget = size(v),
            },
            help: "Maximum size of the servers' tools in a request.",
            effect: "If the tools of all servers take more, none is in the request, and the model finds them with \
                     `tool_search`.",
            example: "0",
            project_ok: false,
        },
        Key {
            name: "mcp.startup_wait_secs",
            kind: Kind::Seconds {
                min: 0.0,
                max: 600.0,
                default: 0,
                set: |s, _, v| s.tools.mcp.startup_wait = v,
            },
            help: "Time that the first turn waits for servers to start.",
            effect: "With 0, the tools of servers that are not ready yet are found with `tool_search` in the first \
                     turn, and are in the requests of later ones.",
            example: "5",
            project_ok: false,
        },
        Key {
            name: "mcp.oauth.browser",
            kind: Kind::Command {
                set: |s, _, v| s.tools.mcp.browser = Some(v),
            },
            help: "Command that opens a page in a browser for a login; the address is its last argument.",
            effect: "If unset, `windlass mcp login` prints the address, and tries `xdg-open`.",
            example: "[\"firefox\", \"--new-window\"]",
            project_ok: false,
        },
    ],
};

pub(super) static SERVERS: Section = Section {
    name: "mcp_servers",
    help: "MCP servers under names of your choice. A value may contain `${NAME}` for an environment variable.",
    keys: &[
        Key {
            name: "mcp_servers.<name>.command",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Program that is the server, talked to over its standard input and output.",
            effect: "It runs in a sandbox, with a home folder of its own.",
            example: "\"npx\"",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.args",
            kind: Kind::List {
                default: &[],
                check: |_| Ok(()),
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Arguments of the program.",
            effect: "They are passed as they are; no shell is involved.",
            example: "[\"-y\", \"@modelcontextprotocol/server-memory\"]",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.cwd",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Working directory of the program.",
            effect: "If unset, the folder of the session.",
            example: "\"/srv/data\"",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.url",
            kind: Kind::Text {
                rule: TextRule::Url,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Address of a server that is reached over HTTP.",
            effect: "A server has a command or an address.",
            example: "\"https://example.org/mcp\"",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.type",
            kind: Kind::Choice {
                words: || vec!["stdio", "http", "sse"],
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Transport.",
            effect: "If unset, it follows from `command` or `url`; `sse` is the transport of 2024.",
            example: "\"http\"",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.network",
            kind: Kind::Switch {
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Network access of the program.",
            effect: "If unset, it has network access. With `false`, it has none.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.devices",
            kind: Kind::List {
                default: &[],
                check: |text| match text {
                    "audio" => Ok(()),
                    _ => Err("expected \"audio\"".to_owned()),
                },
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Kinds of devices that the program may use.",
            effect: "`audio` gives it the sound devices and the sound server.",
            example: "[\"audio\"]",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.sandbox",
            kind: Kind::Choice {
                words: || vec!["on", "off"],
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Sandbox of the program.",
            effect: "With `off`, it can do whatever you can, and Windlass asks before it starts it.",
            example: "\"off\"",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.timeout",
            kind: Kind::Number {
                min: 0.1,
                max: Some(super::DAY),
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Maximum duration of a call, in seconds.",
            effect: "If unset, 300.",
            example: "60",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.startup_timeout",
            kind: Kind::Number {
                min: 0.1,
                max: Some(super::DAY),
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Maximum duration of the start, in seconds.",
            effect: "If unset, 60. Nothing waits for it.",
            example: "10",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.enabled",
            kind: Kind::Switch {
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Use of the server.",
            effect: "If unset, the server is used.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.enabled_tools",
            kind: Kind::List {
                default: &[],
                check: |_| Ok(()),
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "The only tools of the server that are offered, by its own names.",
            effect: "If unset or empty, all.",
            example: "[\"read_graph\"]",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.disabled_tools",
            kind: Kind::List {
                default: &[],
                check: |_| Ok(()),
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Tools of the server that are not offered, by its own names.",
            effect: "They cannot be called either.",
            example: "[\"delete_entities\"]",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.era",
            kind: Kind::Choice {
                words: || vec!["auto", "modern", "legacy"],
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Revision of the protocol: `modern` for 2026-07-28, `legacy` for the handshake of earlier ones.",
            effect: "If unset, `auto`: it is detected and remembered.",
            example: "\"legacy\"",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.roots",
            kind: Kind::Switch {
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Answer to a server that asks for the folder of the workspace.",
            effect: "If unset, the server is not told.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.sampling",
            kind: Kind::Switch {
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Answer to a server that asks your model for a completion during a call.",
            effect: "If unset, the server is refused. With `true`, each request is shown in full and sent if you \
                     approve; its cost counts for the turn and the session. If nobody can answer, it is refused.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.sampling_requests",
            kind: Kind::Integer {
                min: 1,
                max: Some(1_000),
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Maximum number of completions that the server may ask for in a turn.",
            effect: "If unset, 5. Further requests are refused without asking.",
            example: "1",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.sampling_tokens",
            kind: Kind::Integer {
                min: 1,
                max: Some(1_000_000),
                default: None,
                set: |s, p, v| put(s, p, v.into()),
            },
            help: "Maximum number of tokens of a completion for the server.",
            effect: "If unset, 4096.",
            example: "1000",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.env.<variable>",
            kind: Kind::Text {
                rule: TextRule::Free,
                set: put_below,
            },
            help: "Environment variable of the program.",
            effect: "The program gets these and a few harmless ones, and none of your other variables.",
            example: "\"${GITHUB_TOKEN}\"",
            project_ok: false,
        },
        Key {
            name: "mcp_servers.<name>.headers.<field>",
            kind: Kind::Text {
                rule: TextRule::Header,
                set: put_below,
            },
            help: "Header added to every request.",
            effect: "For a token, name an environment variable that holds it.",
            example: "\"Bearer ${EXAMPLE_TOKEN}\"",
            project_ok: false,
        },
    ],
};

fn put(settings: &mut Settings, path: &[String], value: Value) {
    if let [_, name, key] = path {
        let servers = &mut settings.tools.mcp.servers;
        servers
            .entry(name.clone())
            .or_default()
            .insert(key.clone(), value);
    }
}

fn put_below(settings: &mut Settings, path: &[String], value: String) {
    if let [_, name, table, key] = path {
        let server = settings.tools.mcp.servers.entry(name.clone()).or_default();
        let table = server
            .entry(table.clone())
            .or_insert_with(|| Value::Object(Default::default()));
        if let Value::Object(map) = table {
            map.insert(key.clone(), value.into());
        }
    }
}
