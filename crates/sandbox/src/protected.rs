//! The protected paths: files that other programs run by themselves. Whoever writes one of them runs code later,
//! outside the sandbox and unseen.
//!
//! This is the only list. The file tools ask [`ProtectedPaths::reason`] about every path that they change, and the
//! sandbox makes [`ProtectedPaths::in_workspace`] and [`ProtectedPaths::of_user`] read-only, whether they exist or
//! not.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

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
    (".exrc", "vim"),
    (".nvimrc", "vim"),
    (".nvim.lua", "vim"),
    (".dir-locals.el", "Emacs"),
    (".claude", "Claude Code"),
    (".claude.json", "Claude Code"),
    (".codex", "Codex"),
    (".gemini", "Gemini CLI"),
    (".opencode", "opencode"),
    (".continue", "Continue"),
    (".roo", "Roo Code"),
    (".aider.conf.yml", "aider"),
    (".mcp.json", "an agent"),
    (".envrc", "direnv"),
    (".husky", "git"),
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

/// Entries of a repository's folder that git runs, or that name programs for it to run. All of them are held when
/// absent.
const GIT: &[&str] = &["hooks", "config", "config.worktree", "info/attributes"];

/// Entries that redirect git to other settings. They are protected if they exist. Git does not accept a placeholder, so
/// a sandbox removes the first of them if it appears.
const GIT_REDIRECTS: &[&str] = &["commondir", "gitdir"];

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
    (".local/bin/", SHELL),
    ("bin/", SHELL),
    (".cargo/bin/", SHELL),
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

/// Maximum depth below `.git/modules`, and maximum number of folders that are looked at there.
const MODULE_DEPTH: usize = 12;
const MAX_MODULES: usize = 20_000;

/// Maximum size of a repository's settings that are searched for the folder of its hooks.
const MAX_CONFIG: u64 = 256 << 10;

/// The protected paths of a session: names in every folder, and the start-up files of the user and the machine.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPaths {
    root: PathBuf,
    home: Option<PathBuf>,
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
        }
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
        let hooks = hooks_folder(&self.root.join(".git"));
        if hooks.is_some_and(|hooks| path.starts_with(hooks)) || in_bare_repository(path) {
            return Some((below.display().to_string(), "git"));
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

    /// Returns the protected paths at the top of the workspace, for the sandbox. Those that do not exist are
    /// included if they get a placeholder.
    pub fn in_workspace(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.root.join(".git")];
        for (name, _) in NAMES {
            let path = self.root.join(name);
            if HELD.contains(name) || path.symlink_metadata().is_ok() {
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

/// Returns the protected paths of a repository, given its `.git`, which may be a folder, a pointer to one, or absent.
/// Any other path stands for itself.
pub(crate) fn in_git(git: &Path) -> Vec<PathBuf> {
    if !git.ends_with(".git") {
        return vec![git.to_owned()];
    }
    let mut paths = Vec::new();
    let Ok(found) = fs::symlink_metadata(git) else {
        return vec![git.to_owned()];
    };
    if !found.is_dir() {
        paths.push(git.to_owned());
    } else if !is_repository(git) {
        // Empty, or a placeholder: git does not use it yet.
        return vec![git.to_owned()];
    }
    if let Some(folder) = git_folder(git) {
        paths.extend(in_git_folder(&folder));
        paths.extend(hooks_folder(git));
        let mut left = MAX_MODULES;
        modules(&folder.join("modules"), MODULE_DEPTH, &mut left, &mut paths);
        for worktree in folders_in(&folder.join("worktrees")) {
            let entries = GIT_REDIRECTS.iter().chain(&["config.worktree"]);
            paths.extend(
                entries
                    .map(|name| worktree.join(name))
                    .filter(|path| exists(path)),
            );
        }
    }
    paths
}

/// Returns the file that would redirect git to other settings, if there is none, given the hooks of a repository.
pub(crate) fn absent_redirect(hooks: &Path) -> Option<PathBuf> {
    let folder = hooks.parent().filter(|_| hooks.ends_with("hooks"))?;
    let redirect = folder.join(GIT_REDIRECTS.first()?);
    (is_repository(folder) && !exists(&redirect)).then_some(redirect)
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
        if let Some((_, program)) = found {
            return Some((shown.display().to_string(), program));
        }
    }
    None
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

/// Returns true if a folder looks like the folder of a repository.
pub fn is_repository(folder: &Path) -> bool {
    exists(&folder.join("HEAD")) || exists(&folder.join("commondir"))
}

/// Returns the folder that a `.git` names: itself, or the one that a pointer leads to.
fn git_folder(git: &Path) -> Option<PathBuf> {
    let found = fs::metadata(git).ok()?;
    if found.is_dir() {
        return Some(git.to_owned());
    }
    let text = read_short(git)?;
    let target = text.trim_end().strip_prefix("gitdir:")?.trim_start();
    let folder = fs::canonicalize(git.parent()?.join(target)).ok()?;
    is_repository(&folder).then_some(folder)
}

fn in_git_folder(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = GIT.iter().map(|name| folder.join(name)).collect();
    let redirects = GIT_REDIRECTS.iter().map(|name| folder.join(name));
    paths.extend(redirects.filter(|path| exists(path)));
    paths
}

/// Adds the protected paths of submodules, whose folders can be nested.
fn modules(folder: &Path, depth: usize, left: &mut usize, paths: &mut Vec<PathBuf>) {
    for inner in folders_in(folder) {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        if is_repository(&inner) {
            paths.extend(in_git_folder(&inner));
            if let Some(depth) = depth.checked_sub(1) {
                modules(&inner.join("modules"), depth, left, paths);
            }
        } else if let Some(depth) = depth.checked_sub(1) {
            modules(&inner, depth, left, paths);
        }
    }
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    folders
}

/// Returns the folder of hooks that the settings of a repository name, if it is among the repository's files.
fn hooks_folder(git: &Path) -> Option<PathBuf> {
    let root = git.parent()?;
    let text = read_short(&git_folder(git)?.join("config"))?;
    let value = text.lines().rev().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim()
            .eq_ignore_ascii_case("hookspath")
            .then(|| value.trim().trim_matches('"'))
    })?;
    let path: PathBuf = root.join(value).components().collect();
    let inside = path.starts_with(root) && path != root;
    let plain = path.components().all(|part| part != Component::ParentDir);
    (inside && plain).then_some(path)
}

fn read_short(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    let is_short = found.is_file() && found.len() <= MAX_CONFIG;
    is_short.then(|| fs::read_to_string(path).ok()).flatten()
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
#[path = "protected_tests.rs"]
mod tests;
