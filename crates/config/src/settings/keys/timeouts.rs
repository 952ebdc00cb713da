//! Keys of connections.

use crate::settings::keys::{DAY, Key, Section};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "timeouts",
    help: "How long a silent connection is waited for.",
    keys: &[
        Key {
            name: "timeouts.context_prep_timeout_secs",
            kind: Kind::Seconds {
                min: 0.1,
                max: 3600.0,
                default: 30,
                set: |s, _, v| s.context.prep_timeout = v,
            },
            help: "How long a conversation may take to be made smaller.",
            effect: "After that the turn goes on with what there is, or with a summary that needs no model.",
            example: "60",
            project_ok: false,
        },
        Key {
            name: "timeouts.stream_idle_secs",
            kind: Kind::Seconds {
                min: 0.1,
                max: DAY,
                default: 120,
                set: |s, _, v| s.timeouts.stream_idle = v,
            },
            help: "How long a reply may be silent.",
            effect: "A stream without a byte for so long counts as dropped and the request is sent again.",
            example: "300",
            project_ok: false,
        },
        Key {
            name: "timeouts.connect_secs",
            kind: Kind::Seconds {
                min: 0.1,
                max: 600.0,
                default: 10,
                set: |s, _, v| s.timeouts.connect = v,
            },
            help: "How long making a connection may take.",
            effect: "A connection that takes longer counts as failed and is tried again.",
            example: "30",
            project_ok: false,
        },
        Key {
            name: "timeouts.no_providers_backoff_secs",
            kind: Kind::Seconds {
                min: 0.0,
                max: 600.0,
                default: 2,
                set: |s, _, v| s.timeouts.no_providers_backoff = v,
            },
            help: "How long no turn is tried after the provider could not be reached.",
            effect: "A turn inside that time fails at once with the same reason; 0 tries every time.",
            example: "5",
            project_ok: false,
        },
    ],
};
