//! The parts of a git repository that git runs, or that name programs for it to run.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::exists;
use super::git_settings::{NamedFiles, read_short};
use super::gitlinks::gitlinks;

/// Entries of a repository's folder that git runs, or that name programs for it to run. All of them are held when
/// absent.
pub(super) const GIT: &[&str] = &["hooks", "config", "config.worktree", "info/attributes"];

/// Entries that redirect git to other settings. They are protected if they exist. Git does not accept a placeholder, so
/// a sandbox removes the first of them if it appears.
pub(super) const GIT_REDIRECTS: &[&str] = &["commondir", "gitdir"];

/// Maximum depth below `.git/modules`, and maximum number of folders that are looked at there.
pub(super) const MODULE_DEPTH: usize = 12;
const MAX_MODULES: usize = 20_000;
/// Maximum number of submodules that are looked at.
const MAX_SUBMODULES: usize = 200;

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
        paths.extend(run_by_git(git, None));
        paths.extend(absent_submodules(git, &folder));
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

/// Returns the folder of hooks, the programs and the further settings that the settings of a repository name, and those
/// of its user, if they are among the repository's files. Folders need not exist.
pub(super) fn run_by_git(git: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(root) = git.parent() else {
        return Vec::new();
    };
    let named = NamedFiles::of(settings(git, home), root, home);
    let files = named.files.into_iter().filter(|path| exists(path));
    named.hooks.into_iter().chain(files).collect()
}

/// Returns the files with settings for a repository.
fn settings(git: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let folder = git_folder(git);
    let own = folder.iter().flat_map(|folder| {
        let common = read_short(&folder.join("commondir")).map(|text| folder.join(text.trim_end()));
        let common = common.unwrap_or_else(|| folder.clone());
        [common.join("config"), folder.join("config.worktree")]
    });
    let of_user = home
        .iter()
        .flat_map(|home| [".gitconfig", ".config/git/config"].map(|name| home.join(name)));
    own.chain(of_user).collect()
}

/// Returns the repositories of submodules that are not checked out. The placeholder of another sandbox may be there.
fn absent_submodules(git: &Path, folder: &Path) -> Vec<PathBuf> {
    let Some(root) = git.parent() else {
        return Vec::new();
    };
    let is_sha256 = NamedFiles::of(vec![folder.join("config")], root, None).is_sha256;
    // A command may have written the index.
    let is_plain = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
    let inner = gitlinks(folder, is_sha256).into_iter().filter(is_plain);
    let paths = inner
        .take(MAX_SUBMODULES)
        .map(|path| root.join(path).join(".git"));
    let is_placeholder =
        |path: &PathBuf| rustix::fs::lstat(path).is_ok_and(|found| crate::is_placeholder(&found));
    paths
        .filter(|path| !exists(path) || is_placeholder(path))
        .collect()
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
