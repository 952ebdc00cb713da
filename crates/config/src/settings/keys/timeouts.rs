//! Keys of connections.

use crate::settings::keys::{DAY, Key, Section};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "timeouts",
    help: "Timeouts of requests and connections.",
    keys: &[
        Key {
            name: "timeouts.context_prep_timeout_secs",
            kind: Kind::Seconds {
                min: 0.1,
                max: 3600.0,
                default: 30,
                set: |s, _, v| s.context.prep_timeout = v,
            },
            help: "Maximum time for compacting a conversation.",
            effect: "After that, the turn continues with the conversation as it is, or with a summary made \
                     without a model.",
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
            help: "Maximum time without data while a reply is streaming.",
            effect: "After that, the connection counts as dropped and the request is retried. Data that is no part of the reply, \
                     such as keep-alives, extends this to ten times as long.",
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
            help: "Maximum time for establishing a connection.",
            effect: "A connection that takes longer counts as failed and is retried.",
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
            help: "Pause before the next attempt after the provider could not be reached.",
            effect: "A turn started during the pause fails immediately with the same error; 0 always tries.",
            example: "5",
            project_ok: false,
        },
    ],
};
