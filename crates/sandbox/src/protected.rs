//! The protected paths: files that other programs run by themselves. Whoever writes one of them runs code later,
//! outside the sandbox and unseen.
//!
//! This is the only list. The file tools ask [`ProtectedPaths::reason`] about every path that they change, and the
//! sandbox makes [`ProtectedPaths::in_workspace`] and [`ProtectedPaths::of_user`] read-only, whether they exist or
//! not.

mod git_settings;
mod gitlinks;
mod repository;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::temp::SHARED;

pub use self::repository::is_repository;
use self::repository::{GIT, GIT_REDIRECTS, MODULE_DEPTH, run_by_git};
#[cfg(all(target_os = "linux", not(windlass_portable)))]
pub(crate) use self::repository::{absent_redirect, in_git};

/// Names that are protected in every folder, and the program that runs what they contain.
const NAMES: &[(&str, &str)] = &[
    (".windlass", "Windlass"),
    (".vscode", "the editor"),
    (".idea", "the editor"),
    (".fleet", "the editor"),
    (".zed", "the editor"),
    (".cursor", "the editor"),
    (".windsurf", "the editor"),
    (".kiro", "the editor"),
    (".devcontainer", "the editor"),
    (".devcontainer.json", "the editor"),
    (".trae", "the editor"),
    (".vs", "the editor"),
    (".helix", "Helix"),
    (".exrc", "vim"),
    (".nvimrc", "vim"),
    (".nvim.lua", "vim"),
    (".lazy.lua", "vim"),
    (".vimrc", "vim"),
    (".lvimrc", "vim"),
    (".vim", "vim"),
    (".dir-locals.el", "Emacs"),
    (".dir-locals-2.el", "Emacs"),
    (".claude", "Claude Code"),
    (".claude.json", "Claude Code"),
    (".codex", "Codex"),
    (".gemini", "Gemini CLI"),
    (".opencode", "opencode"),
    ("opencode.json", "opencode"),
    ("opencode.jsonc", "opencode"),
    (".crush", "Crush"),
    (".crush.json", "Crush"),
    ("crush.json", "Crush"),
    (".qwen", "Qwen Code"),
    (".amazonq", "Amazon Q"),
    (".kilocode", "Kilo Code"),
    (".factory", "Factory"),
    (".junie", "Junie"),
    (".continue", "Continue"),
    (".roo", "Roo Code"),
    (".aider.conf.yml", "aider"),
    (".mcp.json", "an agent"),
    (".envrc", "direnv"),
    (".mise", "mise"),
    (".mise.toml", "mise"),
    (".mise.local.toml", "mise"),
    ("mise.toml", "mise"),
    ("mise.local.toml", "mise"),
    (".autoenv", "the shell"),
    (".autoenv.zsh", "the shell"),
    (".Rprofile", "R"),
    (".irbrc", "irb"),
    (".pryrc", "pry"),
    (".pdbrc", "pdb"),
    (".gdbinit", "gdb"),
    (".lldbinit", "lldb"),
    (".iex.exs", "iex"),
    (".ghci", "GHCi"),
    (".ocamlinit", "OCaml"),
    (".octaverc", "Octave"),
    (".husky", "git"),
    (".pre-commit-config.yaml", "git"),
    ("hgrc", "Mercurial"),
    (".overcommit.yml", "git"),
];

/// Names that get a placeholder in the workspace if they do not exist, beside `.git`. Few, because each is an empty
/// folder that the user sees.
const HELD: &[&str] = &[
    ".windlass",
    ".vscode",
    ".idea",
    ".zed",
    ".cursor",
    ".devcontainer",
    ".claude",
    ".codex",
    ".gemini",
    ".mcp.json",
];

/// Start-up files in a home folder, and the program that runs them. Folders end with a slash.
const HOME: &[(&str, &str)] = &[
    (".bashrc", SHELL),
    (".bash_profile", SHELL),
    (".bash_login", SHELL),
    (".bash_logout", SHELL),
    (".bash_aliases", SHELL),
    (".profile", SHELL),
    (".zshrc", SHELL),
    (".zshenv", SHELL),
    (".zprofile", SHELL),
    (".zlogin", SHELL),
    (".zlogout", SHELL),
    (".oh-my-zsh/", SHELL),
    (".kshrc", SHELL),
    (".mkshrc", SHELL),
    (".cshrc", SHELL),
    (".tcshrc", SHELL),
    (".login", SHELL),
    (".inputrc", SHELL),
    (".config/fish/", SHELL),
    (".config/zsh/", SHELL),
    (".config/nushell/", SHELL),
    (".config/environment.d/", SHELL),
    (".config/mise/", SHELL),
    (".config/starship.toml", SHELL),
    (".config/xonsh/", SHELL),
    (".config/powershell/", SHELL),
    (".bash_completion", SHELL),
    (".local/share/bash-completion/", SHELL),
    (".local/bin/", SHELL),
    ("bin/", SHELL),
    (".cargo/bin/", SHELL),
    ("go/bin/", SHELL),
    (".bun/bin/", SHELL),
    (".deno/bin/", SHELL),
    (".volta/bin/", SHELL),
    (".cargo/env", SHELL),
    (".cargo/config", "cargo"),
    (".cargo/config.toml", "cargo"),
    (".gitconfig", "git"),
    (".config/git/", "git"),
    (".ssh/", "ssh"),
    (".gnupg/", "gpg"),
    (".xinitrc", DESKTOP),
    (".xprofile", DESKTOP),
    (".xsession", DESKTOP),
    (".xsessionrc", DESKTOP),
    (".pam_environment", DESKTOP),
    (".config/autostart/", DESKTOP),
    (".config/autostart-scripts/", DESKTOP),
    (".config/plasma-workspace/", DESKTOP),
    (".config/i3/", DESKTOP),
    (".config/sway/", DESKTOP),
    (".config/hypr/", DESKTOP),
    (".local/share/applications/", DESKTOP),
    (".local/share/dbus-1/", DESKTOP),
    (".config/openbox/", DESKTOP),
    (".config/systemd/", "systemd"),
    (".local/share/systemd/", "systemd"),
    (".config/cron/", "cron"),
    ("Library/LaunchAgents/", "launchd"),
    (".vimrc", "vim"),
    (".vim/", "vim"),
    (".config/nvim/", "vim"),
    (".emacs", "Emacs"),
    (".emacs.d/", "Emacs"),
    (".config/emacs/", "Emacs"),
    (".tmux.conf", "tmux"),
    (".config/tmux/", "tmux"),
    (".screenrc", "screen"),
    (".gdbinit", "gdb"),
    (".config/direnv/", "direnv"),
    (".config/Code/", "the editor"),
    (".config/Cursor/", "the editor"),
    (".config/zed/", "the editor"),
    (".config/VSCodium/", "the editor"),
    (".config/helix/", "Helix"),
    (".local/share/nvim/", "vim"),
    (".config/kitty/", "the terminal"),
    (".config/wezterm/", "the terminal"),
    (".config/zellij/", "zellij"),
    (".lldbinit", "lldb"),
    (".config/gdb/", "gdb"),
    (".pdbrc", "pdb"),
    (".irbrc", "irb"),
    (".Rprofile", "R"),
    (".local/lib/", "Python"),
    (".ipython/", "IPython"),
    (".config/pip/", "pip"),
    (".gradle/init.gradle", "Gradle"),
    (".gradle/init.d/", "Gradle"),
    (".m2/settings.xml", "Maven"),
    (".yarnrc", "yarn"),
    (".yarnrc.yml", "yarn"),
    (".docker/cli-plugins/", "Docker"),
    (".config/containers/", "Podman"),
    (".hgrc", "Mercurial"),
    (".config/jj/", "jj"),
    (".config/lazygit/", "lazygit"),
    (".config/opencode/", "opencode"),
    (".lessfilter", "less"),
    (".forward", "the mail server"),
    (".npmrc", "npm"),
    (".curlrc", "curl"),
    (".wgetrc", "wget"),
];

/// Start-up files of the machine, and the program that runs them.
const MACHINE: &[(&str, &str)] = &[
    ("/etc/profile", SHELL),
    ("/etc/profile.d", SHELL),
    ("/etc/bash.bashrc", SHELL),
    ("/etc/bashrc", SHELL),
    ("/etc/zsh", SHELL),
    ("/etc/zshenv", SHELL),
    ("/etc/environment", SHELL),
    ("/etc/gitconfig", "git"),
    ("/etc/ssh", "ssh"),
    ("/etc/xdg/autostart", DESKTOP),
    ("/etc/systemd", "systemd"),
    ("/usr/lib/systemd", "systemd"),
    ("/lib/systemd", "systemd"),
    ("/etc/init.d", "the system"),
    ("/etc/rc.local", "the system"),
    ("/etc/ld.so.preload", "the system"),
    ("/etc/sudoers", "sudo"),
    ("/etc/sudoers.d", "sudo"),
    ("/etc/pam.d", "the system"),
    ("/etc/udev", "the system"),
    ("/etc/crontab", "cron"),
    ("/etc/cron.d", "cron"),
    ("/etc/cron.hourly", "cron"),
    ("/etc/cron.daily", "cron"),
    ("/etc/cron.weekly", "cron"),
    ("/etc/cron.monthly", "cron"),
    ("/var/spool/cron", "cron"),
];

const SHELL: &str = "the shell";
const DESKTOP: &str = "the desktop";

/// Names in a home folder that hide another start-up file as soon as they exist, even if they are empty, so that no
/// placeholder may take their place.
const SHADOWING: &[&str] = &[".bash_profile", ".bash_login", ".vimrc", ".config/emacs"];

/// The protected paths of a session: names in every folder, and the start-up files of the user and the machine.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPaths {
    root: PathBuf,
    home: Option<PathBuf>,
    /// Files that Windlass itself runs with other rights than a command has.
    run_here: Vec<PathBuf>,
}

/// The thing that keeps the place of an absent protected path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// An empty folder, which version control does not see.
    Folder,
    /// An empty file, because a program reads a file there.
    File,
    /// Nothing: a placeholder would change what other programs do.
    Nothing,
}

impl ProtectedPaths {
    /// Creates the list for a workspace, whose path must be real, and a home folder.
    pub fn new(root: &Path, home: Option<&Path>) -> Self {
        let real = |home: &Path| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        Self {
            root: root.to_owned(),
            home: home.filter(|home| home.is_absolute()).map(real),
            run_here: Vec::new(),
        }
    }

    /// Adds files of the project that Windlass runs with other rights than a command has: scripts of hooks, tools and
    /// servers.
    #[must_use]
    pub fn with_run_here(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        self.run_here = files.into_iter().flat_map(both_names).collect();
        self
    }

    /// Returns the reason to ask before a call changes this path, which must be absolute and without `..`: "it
    /// changes .git/hooks, which git runs automatically". `None` if the path is not protected.
    pub fn reason(&self, path: &Path) -> Option<String> {
        let (what, program) = self.find(path)?;
        Some(format!("it changes {what}, which {program} runs automatically"))
    }

    fn find(&self, path: &Path) -> Option<(String, &'static str)> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        // A program that runs files in the folders above the workspace was started there by the user.
        if let Some(found) = in_repository(below).or_else(|| by_name(below)) {
            return Some(found);
        }
        let run = run_by_git(&self.root.join(".git"), self.home.as_deref());
        if run.iter().any(|run| path.starts_with(run)) || in_bare_repository(path) {
            return Some((below.display().to_string(), "git"));
        }
        if self.run_here.iter().any(|run| path.starts_with(run)) {
            return Some((below.display().to_string(), "Windlass"));
        }
        if let Some(rest) = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
            let found = HOME.iter().find(|(name, _)| starts_with(rest, Path::new(name)));
            if let Some((name, program)) = found {
                return Some((format!("~/{}", name.trim_end_matches('/')), program));
            }
        }
        let found = MACHINE.iter().find(|(name, _)| path.starts_with(name));
        found.map(|(name, program)| ((*name).to_owned(), *program))
    }

    /// Returns the protected paths in the workspace, for the sandbox. Those at its top that do not exist are included if
    /// they get a placeholder.
    pub fn in_workspace(&self) -> Vec<PathBuf> {
        let mut paths = self.at_top(&self.root);
        paths.extend(run_by_git(&self.root.join(".git"), self.home.as_deref()));
        paths.extend(self.run_here.iter().cloned());
        paths
    }

    /// Returns the protected paths at the top of another writable folder, whose path must be real, for the sandbox. In
    /// a folder that contains more than one project, nothing gets a placeholder.
    pub fn in_folder(&self, folder: &Path) -> Vec<PathBuf> {
        let is_above = |path: &Path| path.starts_with(folder);
        let is_wide =
            self.home.as_deref().is_some_and(is_above) || SHARED.map(Path::new).into_iter().any(is_above);
        let mut paths = self.at_top(folder);
        paths.retain(|path| !is_wide || exists(path));
        paths
    }

    fn at_top(&self, folder: &Path) -> Vec<PathBuf> {
        let mut paths = vec![folder.join(".git")];
        for (name, _) in NAMES {
            let path = folder.join(name);
            if HELD.contains(name) || exists(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// Returns the start-up files of the user and the machine, for the sandbox. They need not exist.
    pub fn of_user(&self) -> Vec<PathBuf> {
        let home = self.home.iter();
        let home = home.flat_map(|home| HOME.iter().map(|(name, _)| home.join(name.trim_end_matches('/'))));
        home.chain(MACHINE.iter().map(|(name, _)| PathBuf::from(name)))
            .collect()
    }

    /// Returns every entry of the list as it is shown to the user, with the program that runs it.
    pub fn listed() -> impl Iterator<Item = (String, &'static str)> {
        let git = GIT.iter().chain(GIT_REDIRECTS);
        let git = git.map(|name| (format!(".git/{name}"), "git"));
        let names = NAMES.iter().map(|(name, program)| ((*name).to_owned(), *program));
        let home = HOME.iter().map(|(name, program)| (format!("~/{name}"), *program));
        let machine = MACHINE
            .iter()
            .map(|(name, program)| ((*name).to_owned(), *program));
        git.chain(names).chain(home).chain(machine)
    }
}

/// Returns the thing that keeps the place of this path while it is absent.
pub(crate) fn placeholder(path: &Path) -> Placeholder {
    let parts: Vec<&OsStr> = path.iter().collect();
    let ends = |name: &str| path.ends_with(name);
    if SHADOWING.iter().any(|name| ends(name)) {
        return Placeholder::Nothing;
    }
    let in_git = parts
        .iter()
        .rev()
        .skip(1)
        .take(MODULE_DEPTH)
        .any(|part| *part == ".git");
    let git_file = in_git
        && ["config", "config.worktree", "attributes"]
            .iter()
            .any(|name| ends(name));
    let home_file = HOME.iter().any(|(name, _)| !name.ends_with('/') && ends(name));
    match git_file || home_file {
        true => Placeholder::File,
        false => Placeholder::Folder,
    }
}

/// Finds a path that belongs to a repository: everything below `.git`, and `.git` itself.
fn in_repository(path: &Path) -> Option<(String, &'static str)> {
    let mut parts = path.components();
    let mut shown = PathBuf::new();
    while let Some(part) = parts.next() {
        shown.push(part);
        if matches!(part, Component::Normal(name) if same_name(name, ".git")) {
            // The first names are enough to recognize the entry.
            shown.extend(parts.by_ref().take(1));
            return Some((shown.display().to_string(), "git"));
        }
    }
    None
}

fn by_name(path: &Path) -> Option<(String, &'static str)> {
    let mut shown = PathBuf::new();
    for part in path.components() {
        shown.push(part);
        let Component::Normal(name) = part else { continue };
        let found = NAMES.iter().find(|(protected, _)| same_name(name, protected));
        let program = found.map(|(_, program)| *program).or_else(|| by_pattern(&shown));
        if let Some(program) = program {
            return Some((shown.display().to_string(), program));
        }
    }
    None
}

/// Finds settings whose names have variants: `lefthook-local.yml`, `mise.production.toml`, `.config/mise/config.toml`.
fn by_pattern(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let stem = name.strip_prefix('.').unwrap_or(&name);
    let ends = |ends: &[&str]| ends.iter().any(|end| stem.ends_with(end));
    let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
    if (stem.starts_with("lefthook.") || stem.starts_with("lefthook-local."))
        && ends(&[".yml", ".yaml", ".toml", ".json", ".jsonc"])
    {
        return Some("git");
    }
    let is_mise = stem.starts_with("mise.") && stem.ends_with(".toml") || stem == "mise" && is_in(".config");
    is_mise.then_some("mise")
}

/// Returns true for the settings and hooks of a repository without files, or of one whose folder is elsewhere.
fn in_bare_repository(path: &Path) -> bool {
    let entries = || GIT.iter().chain(GIT_REDIRECTS);
    path.ancestors().skip(1).take(MODULE_DEPTH).any(|folder| {
        let below = path.strip_prefix(folder).unwrap_or(path);
        let is_entry = entries().any(|name| starts_with(below, Path::new(name)));
        is_entry && is_repository(folder) && exists(&folder.join("objects"))
    })
}

/// Compares names as file systems do that do not distinguish case, and that ignore invisible characters.
fn same_name(name: &OsStr, protected: &str) -> bool {
    if name.as_bytes().is_ascii() {
        return name.as_bytes().eq_ignore_ascii_case(protected.as_bytes());
    }
    let name = name.to_string_lossy();
    let visible = |letter: &char| !matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let plain: String = name.chars().filter(visible).collect();
    plain.to_lowercase() == protected.to_lowercase()
}

fn starts_with(path: &Path, start: &Path) -> bool {
    let mut parts = path.iter();
    start.iter().all(|wanted| {
        parts
            .next()
            .is_some_and(|part| same_name(part, &wanted.to_string_lossy()))
    })
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns a path as it is written, and with its links followed.
fn both_names(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    let real = fs::canonicalize(&path).ok().filter(|real| *real != path);
    std::iter::once(path).chain(real)
}

#[cfg(test)]
#[path = "protected_tests.rs"]
mod tests;
