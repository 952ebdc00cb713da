//! Keys of retries.

use crate::settings::keys::{Key, Section, small};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "retry",
    help: "How requests that failed are sent again.",
    keys: &[
        Key {
            name: "retry.max_retries",
            kind: Kind::Integer {
                min: 0,
                max: Some(20),
                default: Some(8),
                set: |s, _, v| s.retry.max_retries = small(v),
            },
            help: "How often a request is sent again after a passing failure, such as a rate limit or a dropped connection.",
            effect: "0 shows the first failure.",
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
            help: "The longest wait between two attempts.",
            effect: "Waits double from 2 seconds up to this. A wait that the provider asks for may be longer.",
            example: "20",
            project_ok: false,
        },
    ],
};
