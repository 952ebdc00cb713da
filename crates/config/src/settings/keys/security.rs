//! Keys of approvals.

use windlass_core::permission::Mode;
use windlass_core::permission::Rule;
use windlass_shell::BLOCKED_COMMANDS;

use crate::settings::keys::{Key, Section};
use crate::settings::kind::{Kind, words};
use crate::settings::typed::Word;

pub(super) static SECTION: Section = Section {
    name: "security",
    help: "What is allowed, what asks, and what never runs.",
    keys: &[
        Key {
            name: "security.mode",
            kind: Kind::Choice {
                words: words::<Mode>,
                default: Some("default"),
                set: |s, _, v| s.security.mode = Mode::from_word(v),
            },
            help: "How far the agent may go when no rule says otherwise.",
            effect: "`plan` reads only; `default` reads and writes, and asks before what destroys or reaches outside; \
                     `accept-edits` asks before every write that is not a file edit; `unattended` \
                     reads, and runs what `security.allow` lists; `full` asks only where a rule says so.",
            example: "\"plan\"",
            project_ok: false,
        },
        Key {
            name: "security.allow",
            kind: Kind::List {
                default: &[],
                check: rule,
                set: |s, _, v| s.security.allow = v,
            },
            help: "Calls that run without asking, such as `bash(git *)` or `write_file(src/**)`.",
            effect: "A command line needs every command in it allowed. Deny beats ask beats allow.",
            example: "[\"bash(git *)\"]",
            project_ok: false,
        },
        Key {
            name: "security.ask",
            kind: Kind::List {
                default: &[],
                check: rule,
                set: |s, _, v| s.security.ask = v,
            },
            help: "Calls that always ask first.",
            effect: "Where nobody is there to ask, the call is refused and the turn ends.",
            example: "[\"bash(git push *)\"]",
            project_ok: false,
        },
        Key {
            name: "security.deny",
            kind: Kind::List {
                default: &[],
                check: rule,
                set: |s, _, v| s.security.deny = v,
            },
            help: "Calls that never run.",
            effect: "The model is told which rule forbids it, and goes on.",
            example: "[\"read_file(secrets/**)\"]",
            project_ok: false,
        },
        Key {
            name: "security.blocked_commands",
            kind: Kind::List {
                default: BLOCKED_COMMANDS,
                check: command,
                set: |s, _, v| s.security.blocked_commands = v,
            },
            help: "Commands that `bash` refuses, wherever they stand in a command line: a program, or a program with arguments.",
            effect: "The model is told which entry forbids it. This keeps accidents away; it is no wall.",
            example: "[\"rm\", \"chmod 777\"]",
            project_ok: false,
        },
        Key {
            name: "security.auto_approve_writes",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.security.auto_approve_writes = v,
            },
            help: "Whether tools that write run without asking.",
            effect: "With `false`, every such call waits for approval.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "security.network",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.security.network = v,
            },
            help: "Whether commands and `fetch` may reach other machines.",
            effect: "With `false`, a command that needs the network asks first, and `fetch` is not offered.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "security.allowed_paths",
            kind: Kind::List {
                default: &[".", "$TMPDIR"],
                check: path,
                set: |s, _, v| s.security.allowed_paths = v,
            },
            help: "Folders in which files may be used: `.` is the folder Windlass runs in, `$TMPDIR` the temporary folder.",
            effect: "File tools work only there. Commands write only there, and read everywhere but in what is denied.",
            example: "[\".\", \"$TMPDIR\", \"~/notes\"]",
            project_ok: false,
        },
        Key {
            name: "security.denied_paths",
            kind: Kind::List {
                default: &["~/.ssh", "~/.gnupg", "/etc/shadow", "/etc/passwd", ".env*"],
                check: path,
                set: |s, _, v| s.security.denied_paths = v,
            },
            help: "What neither file tools nor commands may reach: files, folders, and patterns for names such as `.env*`.",
            effect: "Wins over `allowed_paths`. `.env.example`, `.env.sample` and `.env.template` match no pattern. Windlass's \
                     own files are always denied.",
            example: "[\"~/.ssh\", \"~/.aws\", \".env*\"]",
            project_ok: false,
        },
    ],
};

fn path(text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains('\0') {
        return Err("expected a path".to_owned());
    }
    Ok(())
}

fn command(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("expected the name of a program, found an empty string".to_owned());
    }
    Ok(())
}

fn rule(text: &str) -> Result<(), String> {
    text.parse::<Rule>()
        .map(|_| ())
        .map_err(|error| error.to_string())
}
