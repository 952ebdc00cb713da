//! Keys of checkpoints, which make undo possible.

use crate::settings::keys::{Key, Section};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "checkpoints",
    help: "Copies of workspace files, so that `/undo` can restore them.",
    keys: &[
        Key {
            name: "checkpoints.enabled",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.session.checkpoints.enabled = v,
            },
            help: "Whether Windlass stores checkpoints of the files that tool calls change.",
            effect: "With `false`, no files are copied and nothing can be undone.",
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
            help: "Size of the largest file that is copied, in megabytes.",
            effect: "Changes to larger files cannot be undone; Windlass reports this when it applies.",
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
            help: "Maximum total size of copied files that version control ignores, in megabytes.",
            effect: "An ignored folder that does not fit, such as a build folder, is skipped entirely.",
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
            help: "Maximum total size of the copies of a workspace, in megabytes.",
            effect: "Files that do not fit are not copied.",
            example: "8000",
            project_ok: false,
        },
        Key {
            name: "checkpoints.share",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.agent.session.checkpoints.share = v,
            },
            help: "Whether the copies also go to a Postgres store, from which another server can rebuild the folder.",
            effect: "With `false`, a session whose server is lost waits for its place and cannot be moved.",
            example: "false",
            project_ok: false,
        },
    ],
};
