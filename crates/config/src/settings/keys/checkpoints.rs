//! Keys of what is kept for taking files back.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "checkpoints",
    help: "What is kept of a workspace so that `/undo` can take files back.",
    keys: &[
        Key {
            name: "checkpoints.enabled",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.session.checkpoints.enabled = v,
            },
            help: "Whether what calls change is kept.",
            effect: "With `false`, nothing can be undone, and no copies of files are made.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "checkpoints.max_file_mb",
            kind: Kind::Integer {
                min: 1,
                max: Some(4_000),
                default: Some(50),
                set: |s, _, v| s.agent.session.checkpoints.max_file_mb = v,
            },
            help: "The largest file whose content is kept, in megabytes.",
            effect: "Changes to larger files cannot be undone; that is said when it matters.",
            example: "200",
            project_ok: false,
        },
        Key {
            name: "checkpoints.max_ignored_mb",
            kind: Kind::Integer {
                min: 0,
                max: Some(100_000),
                default: Some(200),
                set: |s, _, v| s.agent.session.checkpoints.max_ignored_mb = v,
            },
            help: "How much is kept of what version control ignores, in megabytes.",
            effect: "An ignored folder that does not fit, such as a build folder, is left out as a whole.",
            example: "1000",
            project_ok: false,
        },
        Key {
            name: "checkpoints.max_total_mb",
            kind: Kind::Integer {
                min: 1,
                max: Some(1_000_000),
                default: Some(2_048),
                set: |s, _, v| s.agent.session.checkpoints.max_total_mb = v,
            },
            help: "How much is kept of a workspace, in megabytes.",
            effect: "Files that do not fit are not kept.",
            example: "8000",
            project_ok: false,
        },
    ],
};
