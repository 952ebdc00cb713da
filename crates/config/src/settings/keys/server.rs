//! Keys of the HTTP server.

use crate::settings::Settings;
use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule, words};
use crate::settings::typed::{AuditScope, DailyLimits, Word};

pub(super) static SECTION: Section = Section {
    name: "server",
    help: "The HTTP server, `windlass serve`. `docs/server.md` explains it. Options of the command take precedence.",
    keys: &[
        Key {
            name: "server.listen",
            kind: Kind::Text {
                rule: TextRule::Socket,
                set: |s, _, v| s.agent.session.server.listen = v.parse().ok(),
            },
            help: "Address and port of the server.",
            effect: "If unset, `127.0.0.1:4747`. With an address that is not loopback, other machines can connect.",
            example: "\"0.0.0.0:4747\"",
            project_ok: false,
        },
        Key {
            name: "server.names",
            kind: Kind::List {
                default: &[],
                check: |text| match text.trim().is_empty() || text.contains(['/', ' ']) {
                    true => Err("expected a host name such as \"box.lan\", without `http://`".to_owned()),
                    false => Ok(()),
                },
                set: |s, _, v| s.agent.session.server.names = v,
            },
            help: "Host names under which the server is reached, besides loopback and the names in its certificate.",
            effect: "Requests under other names are refused.",
            example: "[\"box.lan\"]",
            project_ok: false,
        },
        Key {
            name: "server.cluster_address",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.server.cluster.address = Some(v),
            },
            help: "With `--cluster`: address and port at which other servers reach this one.",
            effect: "If unset, a free port of loopback, for servers of one machine. `docs/cluster.md` explains clusters.",
            example: "\"10.0.0.5:7450\"",
            project_ok: false,
        },
        Key {
            name: "server.cluster_secret_file",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.server.cluster.secret_file = Some(v.into()),
            },
            help: "With `--cluster`: file with the secret that all servers share.",
            effect: "WINDLASS_CLUSTER_SECRET takes precedence. If both are unset, the servers keep a random secret in the store.",
            example: "\"/etc/windlass/cluster.secret\"",
            project_ok: false,
        },
        Key {
            name: "server.cluster_carrier",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.server.cluster.carrier = Some(v),
            },
            help: "With `--cluster`: NATS servers that carry live events and questions between servers, separated by commas.",
            effect: "If unset, servers reach each other directly. `nats://HOST:4222`, or `tls://` for TLS; USER:PASSWORD@ or TOKEN@ before the host.",
            example: "\"tls://nats.example.org:4222\"",
            project_ok: false,
        },
        Key {
            name: "server.cluster_carrier_credentials_file",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.server.cluster.carrier_credentials_file = Some(v.into()),
            },
            help: "File with USER:PASSWORD or a token for the NATS servers.",
            effect: "Used instead of what `server.cluster_carrier` contains.",
            example: "\"/etc/windlass/nats.credentials\"",
            project_ok: false,
        },
        Key {
            name: "server.places",
            kind: Kind::List {
                default: &[],
                check: |text| match text == "any"
                    || text
                        .strip_prefix("host:")
                        .or(text.strip_prefix("volume:"))
                        .is_some_and(|name| !name.trim().is_empty())
                {
                    true => Ok(()),
                    false => Err("expected `host:NAME`, `volume:NAME` or `any`".to_owned()),
                },
                set: |s, _, v| s.agent.session.server.cluster.places = v,
            },
            help: "With `--cluster`: places that this server has, the first for its new sessions.",
            effect: "Only a server with the place of a session takes it over. If unset, `host:` and the name of the machine.",
            example: "[\"volume:work\"]",
            project_ok: false,
        },
        Key {
            name: "server.tls_cert",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.server.tls_cert = Some(v.into()),
            },
            help: "PEM file with the server's certificate, followed by those of its issuers.",
            effect: "With it and `server.tls_key`, the server speaks HTTPS only. A file that is replaced is read again.",
            example: "\"/etc/ssl/box.pem\"",
            project_ok: false,
        },
        Key {
            name: "server.tls_key",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.server.tls_key = Some(v.into()),
            },
            help: "PEM file with the private key of the certificate, unencrypted.",
            effect: "Must belong to `server.tls_cert`.",
            example: "\"/etc/ssl/private/box.key\"",
            project_ok: false,
        },
        Key {
            name: "server.trust_proxy",
            kind: Kind::Text {
                rule: TextRule::Ip,
                set: |s, _, v| s.agent.session.server.trust_proxy = v.parse().ok(),
            },
            help: "Address of a proxy that signs people in and names them in `server.identity_header`.",
            effect: "The header is believed in connections from this address, and removed from all others.",
            example: "\"10.0.0.2\"",
            project_ok: false,
        },
        Key {
            name: "server.identity_header",
            kind: Kind::Text {
                rule: TextRule::HeaderName,
                set: |s, _, v| s.agent.session.server.identity_header = Some(v),
            },
            help: "Header in which the proxy names the user.",
            effect: "The proxy must overwrite it in the requests that it passes on.",
            example: "\"X-Forwarded-User\"",
            project_ok: false,
        },
        Key {
            name: "server.identities",
            kind: Kind::List {
                default: &[],
                check: |text| match text.split_once('=').map_or(text, |(user, _)| user).trim() {
                    "" => Err("expected a user, as in \"ann@example.com\" or \"bob=read,write\"".to_owned()),
                    _ => Ok(()),
                },
                set: |s, _, v| s.agent.session.server.identities = v,
            },
            help: "Users that the proxy may name: `USER` for everything, `USER=SCOPE,…` for less, `*` for anybody it names.",
            effect: "Other users are refused.",
            example: "[\"ann@example.com\", \"bob@example.com=read,write\"]",
            project_ok: false,
        },
        Key {
            name: "server.max_cost_per_day",
            kind: Kind::Number {
                min: 0.0,
                max: None,
                default: None,
                set: |s, _, v| s.agent.session.server.limits.default.cost_usd = Some(v),
            },
            help: "Maximum cost per day of each named user, in US dollars, over all sessions.",
            effect: "At the limit turns end with the cost limit, until the next day. Calls of models without known prices cost nothing.",
            example: "20.0",
            project_ok: false,
        },
        Key {
            name: "server.max_tokens_per_day",
            kind: Kind::Integer {
                min: 0,
                max: None,
                default: None,
                set: |s, _, v| s.agent.session.server.limits.default.tokens = Some(v),
            },
            help: "Maximum number of tokens per day of each named user.",
            effect: "As `server.max_cost_per_day`.",
            example: "5000000",
            project_ok: false,
        },
        Key {
            name: "server.max_turns_per_day",
            kind: Kind::Integer {
                min: 0,
                max: None,
                default: None,
                set: |s, _, v| s.agent.session.server.limits.default.turns = Some(v),
            },
            help: "Maximum number of requests per day that turns of a named user make, sub-agents included.",
            effect: "As `server.max_cost_per_day`.",
            example: "2000",
            project_ok: false,
        },
        Key {
            name: "server.time_zone",
            kind: Kind::Text {
                rule: TextRule::Name,
                set: |s, _, v| s.agent.session.server.limits.zone = Some(v),
            },
            help: "Time zone in which the days of these limits start.",
            effect: "If unset, UTC.",
            example: "\"Europe/Berlin\"",
            project_ok: false,
        },
        Key {
            name: "server.audit",
            kind: Kind::Choice {
                words: words::<AuditScope>,
                default: Some("users"),
                set: |s, _, v| s.agent.session.server.audit.scope = Word::from_word(v),
            },
            help: "Sessions whose approvals and effects the audit log records: those of named users, or all.",
            effect: "Sign-ins, tokens and refusals are recorded in any case.",
            example: "\"all\"",
            project_ok: false,
        },
        Key {
            name: "server.audit_days",
            kind: Kind::Integer {
                min: 0,
                max: None,
                default: Some(365),
                set: |s, _, v| s.agent.session.server.audit.days = Some(v).filter(|days| *days > 0),
            },
            help: "Days after which rows of the audit log are removed.",
            effect: "The server removes them when it starts; 0 keeps them.",
            example: "90",
            project_ok: false,
        },
        Key {
            name: "server.push_private",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.agent.session.server.push_private = v,
            },
            help: "Whether push services for notifications may have private addresses.",
            effect: "With `true`, a browser that is signed in can make the server send requests into your network.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "server.users.<name>.max_cost_per_day",
            kind: Kind::Number {
                min: 0.0,
                max: None,
                default: None,
                set: |s, p, v| user(s, p).cost_usd = Some(v),
            },
            help: "Maximum cost per day of this user; `local` is the user who runs the server.",
            effect: "Used instead of `server.max_cost_per_day`.",
            example: "50.0",
            project_ok: false,
        },
        Key {
            name: "server.users.<name>.max_tokens_per_day",
            kind: Kind::Integer {
                min: 0,
                max: None,
                default: None,
                set: |s, p, v| user(s, p).tokens = Some(v),
            },
            help: "Maximum number of tokens per day of this user.",
            effect: "Used instead of `server.max_tokens_per_day`.",
            example: "20000000",
            project_ok: false,
        },
        Key {
            name: "server.users.<name>.max_turns_per_day",
            kind: Kind::Integer {
                min: 0,
                max: None,
                default: None,
                set: |s, p, v| user(s, p).turns = Some(v),
            },
            help: "Maximum number of requests per day that turns of this user make.",
            effect: "Used instead of `server.max_turns_per_day`.",
            example: "5000",
            project_ok: false,
        },
    ],
};

/// Returns the limits of the user that a key names.
fn user<'a>(settings: &'a mut Settings, path: &[String]) -> &'a mut DailyLimits {
    let name = path.get(2).cloned().unwrap_or_default();
    settings
        .agent
        .session
        .server
        .limits
        .users
        .entry(name)
        .or_default()
}

pub(super) static CHANNEL: Section = Section {
    name: "channel",
    help: "Channels to people who write from elsewhere. `docs/channels.md` explains them.",
    keys: &[Key {
        name: "channel.approvers",
        kind: Kind::List {
            default: &[],
            check: |text| match text.trim().is_empty() {
                true => Err("expected the name of a sender, as the bridge gives it".to_owned()),
                false => Ok(()),
            },
            set: |s, _, v| s.agent.session.approvers = v,
        },
        help: "People who may answer permission requests in channels and use commands there, as the bridge names them.",
        effect: "If empty, whoever sent the message that is being answered may answer its requests.",
        example: "[\"ann\"]",
        project_ok: false,
    }],
};
