//! Keys of the HTTP server.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, TextRule};

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
    ],
};

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
