//! The environment variables of child processes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::warden_mark;

/// Variables that are passed on. All others may contain secrets.
const HANDED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TERM",
    "SHELL",
    "TMPDIR",
    "TZ",
    "TRACEPARENT",
];

/// Variables that keep programs from prompting or paging.
const UNATTENDED: &[(&str, &str)] = &[
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Settings of git, for commands that only read: no program that a setting names is started, and no other
/// machine is contacted.
const GIT_READING: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.askPass", "true"),
    ("core.sshCommand", "false"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("diff.ignoreSubmodules", "dirty"),
    ("protocol.allow", "never"),
];

/// Variables for commands that only read.
const READING: &[(&str, &str)] = &[
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("LESSSECURE", "1"),
    ("MANPAGER", "cat"),
    ("BAT_PAGER", ""),
];

/// Search path if the inherited one has no usable entry.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the environment of a child process: an allowlist of `parent`, variables that identify Windlass,
/// and variables that keep programs from waiting for a user. Empty and relative entries of the search path
/// are removed, and so are entries inside the workspace, so that a file there is never run instead of a
/// system program.
///
/// ```
/// let parent = [("PATH", "/usr/bin:.:/home/ann/project/bin"), ("API_KEY", "secret")];
/// let parent = parent.map(|(name, value)| (name.to_owned(), value.to_owned()));
/// let env = windlass_sandbox::child_environment(parent.into_iter(), "/home/ann/project".as_ref(), "s1");
/// assert_eq!(env["PATH"], "/usr/bin");
/// assert_eq!(env["WINDLASS_SESSION"], "s1");
/// assert!(!env.contains_key("API_KEY"));
/// ```
pub fn child_environment(
    parent: impl Iterator<Item = (String, String)>,
    workspace: &Path,
    session: &str,
) -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> = parent
        .filter(|(name, _)| HANDED_ON.contains(&name.as_str()))
        .collect();
    let path = clean_path(env.get("PATH").map_or("", String::as_str), workspace);
    let mut set = |name: &str, value: &str| env.insert(name.to_owned(), value.to_owned());
    set("PATH", &path);
    set("AGENT", "windlass");
    set("AI_AGENT", concat!("windlass@", env!("CARGO_PKG_VERSION")));
    set("WINDLASS_SESSION", session);
    for (name, value) in UNATTENDED {
        set(name, value);
    }
    if let Some((name, value)) = warden_mark() {
        set(name, value);
    }
    env
}

/// Adds the variables of a command that only reads to the environment of a child process: git refreshes no
/// index, and starts no hook, monitor or pager that the settings of a repository name.
///
/// ```
/// let mut env = std::collections::BTreeMap::new();
/// windlass_sandbox::reading_environment(&mut env);
/// assert_eq!(env["GIT_CONFIG_KEY_0"], "core.fsmonitor");
/// assert_eq!(env["GIT_CONFIG_VALUE_0"], "false");
/// ```
pub fn reading_environment(env: &mut BTreeMap<String, String>) {
    for (name, value) in READING {
        env.insert((*name).to_owned(), (*value).to_owned());
    }
    env.insert("GIT_CONFIG_COUNT".to_owned(), GIT_READING.len().to_string());
    for (index, (key, value)) in GIT_READING.iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{index}"), (*key).to_owned());
        env.insert(format!("GIT_CONFIG_VALUE_{index}"), (*value).to_owned());
    }
}

fn clean_path(path: &str, workspace: &Path) -> String {
    let real_workspace = workspace.canonicalize().ok();
    let is_inside = |folder: &Path| {
        let real = folder.canonicalize().ok();
        let through_links = real
            .zip(real_workspace.as_ref())
            .is_some_and(|(real, inside)| real.starts_with(inside));
        folder.starts_with(workspace) || through_links
    };
    let is_usable = |entry: &&str| {
        let folder = Path::new(entry);
        folder.is_absolute() && !is_inside(folder)
    };
    let entries: Vec<&str> = path.split(':').filter(is_usable).collect();
    if entries.is_empty() {
        DEFAULT_PATH.to_owned()
    } else {
        entries.join(":")
    }
}
