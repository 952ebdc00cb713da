//! Keys of permissions and the sandbox.

use windlass_core::permission::Rule;
use windlass_shell::BLOCKED_COMMANDS;

use crate::settings::keys::{Key, Section};
use crate::settings::kind::Kind;

pub(super) static SECTION: Section = Section {
    name: "security",
    help: "Which calls run, which ask for approval, and which never run.",
    keys: &[
        Key {
            name: "security.mode",
            kind: Kind::Mode {
                set: |s, _, v| s.security.mode = v,
            },
            help: "Permission mode: which calls run without approval when no rule matches.",
            effect: "`plan` allows only reads; `ask` asks before every write; `edits` runs file edits, and asks \
                     before commands that write; `auto` runs reads and writes in the working directory, and \
                     asks before deleting, the network and other folders; `full` asks only where a rule says \
                     so; `unattended` runs reads and the calls in `security.allow`, and never asks. The names \
                     `default` (`auto`) and `accept-edits` (`edits`) of earlier versions still work.",
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
            help: "Calls that run without asking, such as `bash(git *)`, `bash(npm *, network)` or \
                   `write_file(src/**)`.",
            effect: "A command line runs only if every command in it is allowed. Access to the network or \
                     outside the workspace is allowed only by rules that name it. `deny` takes precedence \
                     over `ask`, and `ask` over `allow`.",
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
            help: "Calls that always ask for approval.",
            effect: "In a non-interactive run, the call is denied and the turn ends. The rules of a trusted \
                     project are added to yours.",
            example: "[\"bash(git push *)\"]",
            project_ok: true,
        },
        Key {
            name: "security.deny",
            kind: Kind::List {
                default: &[],
                check: rule,
                set: |s, _, v| s.security.deny = v,
            },
            help: "Calls that never run.",
            effect: "The model learns which rule denied the call, and continues. The rules of a trusted \
                     project are added to yours.",
            example: "[\"read_file(secrets/**)\"]",
            project_ok: true,
        },
        Key {
            name: "security.blocked_commands",
            kind: Kind::List {
                default: BLOCKED_COMMANDS,
                check: command,
                set: |s, _, v| s.security.blocked_commands = v,
            },
            help: "Commands that never run on their own, anywhere in a command line: a program, or a program with \
                   arguments.",
            effect: "Such a command asks each time, and no rule allows it. Where nobody can answer, and where it \
                     aims outside the working directory, it is refused, and the model learns which entry \
                     blocked it. Mode `full` runs `rm` in the working directory. This prevents accidents; it \
                     is not a security boundary.",
            example: "[\"rm\", \"chmod 777\"]",
            project_ok: false,
        },
        Key {
            name: "security.auto_approve_writes",
            kind: Kind::Switch {
                default: Some(true),
                set: |s, _, v| s.security.auto_approve_writes = v,
            },
            help: "Whether tools that write run without approval.",
            effect: "With `false`, every such call waits for approval.",
            example: "false",
            project_ok: false,
        },
        Key {
            name: "security.network",
            kind: Kind::Network {
                set: |s, _, v| s.security.network = v,
            },
            help: "Whether commands and `fetch` may use the network, or the hosts that commands may reach.",
            effect: "With `false`, a command that needs the network and a page of `fetch` ask for approval. With a \
                     list, these hosts do not ask; commands reach them through a proxy that lets nothing else \
                     through; `*.example.org` stands for every name below.",
            example: "[\"registry.npmjs.org\"]",
            project_ok: false,
        },
        Key {
            name: "security.allowed_paths",
            kind: Kind::List {
                default: &[".", "$TMPDIR"],
                check: path,
                set: |s, _, v| s.security.allowed_paths = v,
            },
            help: "Folders the agent may use: `.` is the folder Windlass runs in, `$TMPDIR` the temporary \
                   folder.",
            effect: "File tools work only in these folders. Commands write only there, and may read \
                     everything that is not denied.",
            example: "[\".\", \"$TMPDIR\", \"~/notes\"]",
            project_ok: false,
        },
        Key {
            name: "security.denied_paths",
            kind: Kind::List {
                default: DENIED,
                check: path,
                set: |s, _, v| s.security.denied_paths = v,
            },
            help: "Files, folders and name patterns such as `.env*` that neither file tools nor commands may \
                   access. The default: keys, credentials of cloud tools and package managers, shell histories, \
                   browser profiles.",
            effect: "Takes precedence over `allowed_paths`. `.env.example`, `.env.sample` and \
                     `.env.template` match no pattern. Windlass's own files are always denied.",
            example: "[\"~/.ssh\", \"~/.aws\", \".env*\"]",
            project_ok: false,
        },
        Key {
            name: "security.allow_home",
            kind: Kind::Switch {
                default: Some(false),
                set: |s, _, v| s.security.allow_home = v,
            },
            help: "Work in your home folder, or in a folder above it, without asking first.",
            effect: "Everything in it can be changed then. Without it `windlass exec` refuses such a folder.",
            example: "true",
            project_ok: false,
        },
        Key {
            name: "security.max_memory_mb",
            kind: Kind::Integer {
                min: 50,
                max: None,
                default: None,
                set: |s, _, v| s.security.limits.memory = Some(v.saturating_mul(1_000_000)),
            },
            help: "Maximum memory of a command with everything it started, in megabytes. Unset: three quarters of the \
                   machine's memory, or of the memory that its control group may use.",
            effect: "A command that uses more is killed with all its processes, and its result says so.",
            example: "8000",
            project_ok: false,
        },
        Key {
            name: "security.max_processes",
            kind: Kind::Integer {
                min: 100,
                max: None,
                default: Some(8192),
                set: |s, _, v| s.security.limits.processes = Some(v),
            },
            help: "Maximum number of processes and threads of the commands that share a sandbox.",
            effect: "Beyond it, no process can be started. For root this needs Linux 6.14, which allows up to 300 more.",
            example: "1000",
            project_ok: false,
        },
    ],
};

/// SAFE-3: the paths that are denied by default.
const DENIED: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/passwd",
    ".env*",
    // Keys.
    "~/.ssh",
    "~/.gnupg",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.vault-token",
    "~/.config/op",
    "~/.config/sops",
    "~/Library/Keychains",
    // Credentials of tools.
    "~/.aws",
    "~/.azure",
    "~/.config/gcloud",
    "~/.oci",
    "~/.boto",
    "~/.s3cfg",
    "~/.config/rclone",
    "~/.config/doctl",
    "~/.config/hcloud",
    "~/.fly",
    "~/.kube",
    "~/.docker/config.json",
    "~/.config/containers/auth.json",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.terraformrc",
    "~/.config/gh",
    "~/.config/hub",
    "~/.config/glab-cli",
    "~/.netrc",
    "~/.git-credentials",
    "~/.config/git/credentials",
    "~/.npmrc",
    "~/.yarnrc",
    "~/.yarnrc.yml",
    "~/.pypirc",
    "~/.config/pip/pip.conf",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.gem/credentials",
    "~/.composer/auth.json",
    "~/.config/composer/auth.json",
    "~/.m2/settings.xml",
    "~/.gradle/gradle.properties",
    "~/.nuget/NuGet/NuGet.Config",
    "~/.pgpass",
    "~/.my.cnf",
    "~/.mylogin.cnf",
    "~/.claude/.credentials.json",
    "~/.codex/auth.json",
    "~/.gemini/oauth_creds.json",
    "~/.local/share/opencode/auth.json",
    // Histories.
    "~/.bash_history",
    "~/.zsh_history",
    "~/.zhistory",
    "~/.history",
    "~/.sh_history",
    "~/.ksh_history",
    "~/.local/share/fish/fish_history",
    "~/.config/nushell/history.txt",
    "~/.local/share/atuin",
    "~/.python_history",
    "~/.node_repl_history",
    "~/.irb_history",
    "~/.psql_history",
    "~/.mysql_history",
    "~/.sqlite_history",
    "~/.rediscli_history",
    "~/.lesshst",
    "~/.viminfo",
    // Browsers and mail.
    "~/.mozilla",
    "~/.thunderbird",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.config/BraveSoftware",
    "~/.config/microsoft-edge",
    "~/.config/vivaldi",
    "~/.config/opera",
    "~/snap/firefox",
    "~/snap/chromium",
    "~/.var/app/org.mozilla.firefox",
    "~/Library/Application Support/Google/Chrome",
    "~/Library/Application Support/Firefox",
    "~/Library/Cookies",
];

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
