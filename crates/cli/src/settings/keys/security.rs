//! Keys of approvals.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "security",
    help: "What is allowed without asking.",
    keys: &[Key {
        name: "security.auto_approve_writes",
        kind: Kind::Switch {
            default: Some(true),
            set: |s, _, v| s.security.auto_approve_writes = v,
        },
        help: "Whether tools that write run without asking.",
        effect: "With `false`, every such call waits for approval.",
        example: "false",
        project_ok: false,
    }],
};
