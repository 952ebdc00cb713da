//! Keys of retries.

use crate::settings::keys::{DAY, Key, Section, small};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "retry",
    help: "Retries of failed requests.",
    keys: &[
        Key {
            name: "retry.max_retries",
            kind: Kind::Integer {
                min: 0,
                max: Some(20),
                default: Some(8),
                set: |s, _, v| s.retry.max_retries = small(v),
            },
            help: "Maximum number of retries after a transient failure, such as a rate limit or a dropped \
                   connection.",
            effect: "0 disables retries.",
            example: "3",
            project_ok: false,
        },
        Key {
            name: "retry.max_delay_secs",
            kind: Kind::Seconds {
                min: 0.0,
                max: 3_600.0,
                default: 60,
                set: |s, _, v| s.retry.max_delay = v,
            },
            help: "Longest wait between two attempts.",
            effect: "The wait starts at 2 seconds and doubles up to this value. A wait requested by the \
                     provider may be longer.",
            example: "20",
            project_ok: false,
        },
        Key {
            name: "retry.fallback_secs",
            kind: Kind::Seconds {
                min: 0.0,
                max: DAY,
                default: 300,
                set: |s, _, v| s.retry.fallback_pause = v,
            },
            help: "Time that a model of `fallback` is used before the first one is tried again.",
            effect: "0 tries the first one at every request.",
            example: "60",
            project_ok: false,
        },
    ],
};
