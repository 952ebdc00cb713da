use std::os::unix::fs::symlink;

#[cfg(not(all(target_os = "linux", not(windlass_portable))))]
use super::repository::in_git;
use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = fs::canonicalize(folder.path()).expect("a folder");
    (folder, root)
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(path, text).expect("a file");
}

/// SAFE-10: what other programs run by themselves is protected in every folder and under every spelling of its name;
/// ordinary files next to it are not.
#[test]
fn names_are_protected_everywhere() {
    let (_folder, root) = folder();
    let paths = ProtectedPaths::new(&root, Some(Path::new("/home/ann")));
    for (name, shown) in [
        (".git/hooks/pre-commit", ".git/hooks"),
        (".git/config", ".git/config"),
        (".git/config.worktree", ".git/config.worktree"),
        (".git/info/attributes", ".git/info"),
        (".git/modules/x/hooks/update", ".git/modules"),
        (".git/commondir", ".git/commondir"),
        (".git", ".git"),
        (".GIT/config", ".GIT/config"),
        (".g\u{200c}it/config", ".g\u{200c}it/config"),
        ("a/b/.git/config", "a/b/.git/config"),
        (".windlass/tools.yaml", ".windlass"),
        (".VSCode/tasks.json", ".VSCode"),
        ("web/.claude/settings.json", "web/.claude"),
        (".mcp.json", ".mcp.json"),
        (".envrc", ".envrc"),
        ("lefthook.yml", "lefthook.yml"),
        ("web/.lefthook-local.yaml", "web/.lefthook-local.yaml"),
        ("mise.production.toml", "mise.production.toml"),
        (".config/mise/config.toml", ".config/mise"),
        (".hg/hgrc", ".hg/hgrc"),
    ] {
        let reason = paths.reason(&root.join(name)).unwrap_or_default();
        assert!(
            reason.starts_with(&format!("it changes {shown}, which ")),
            "{name}: {reason}"
        );
        assert!(reason.ends_with(" runs automatically"), "{name}: {reason}");
    }
    for name in [
        ".gitignore",
        ".github/workflows/ci.yml",
        "git/config",
        "vscode",
        ".env.example",
        "src/hooks/x",
        "lefthooks.md",
        "src/mise/a.toml",
    ] {
        assert_eq!(paths.reason(&root.join(name)), None, "{name}");
    }
}

/// SAFE-10: start-up files of the user and the machine are protected, wherever the workspace is.
#[test]
fn start_up_files_are_protected() {
    let (_folder, home) = folder();
    let paths = ProtectedPaths::new(&home.join("work"), Some(&home));
    for name in [
        ".bashrc",
        ".config/autostart/x.desktop",
        ".local/bin/ls",
        ".gitconfig",
        ".ssh/config",
        ".config/git/config",
    ] {
        assert!(paths.reason(&home.join(name)).is_some(), "{name}");
    }
    assert!(paths.reason(Path::new("/etc/cron.d/x")).is_some());
    assert!(paths.reason(Path::new("/etc/hosts")).is_none());
    assert!(paths.reason(&home.join("notes.txt")).is_none());
    // Also if the home folder is the workspace.
    assert!(
        ProtectedPaths::new(&home, Some(&home))
            .reason(&home.join(".bashrc"))
            .is_some()
    );
}

/// SAFE-10: a repository that is kept elsewhere, one without files, and the folder that its settings name for hooks
/// are protected.
#[test]
fn other_repositories_are_protected() {
    let (_folder, root) = folder();
    put(&root, ".git/HEAD", "ref: x");
    put(&root, ".git/config", "[core]\n\thooksPath = tools/hooks\n");
    put(&root, "bare/HEAD", "ref: x");
    fs::create_dir_all(root.join("bare/objects")).expect("a folder");
    let paths = ProtectedPaths::new(&root, None);
    for name in ["tools/hooks/pre-commit", "bare/hooks/update", "bare/config"] {
        assert!(paths.reason(&root.join(name)).is_some(), "{name}");
    }
    for name in ["tools/x", "bare/refs/heads/main"] {
        assert!(paths.reason(&root.join(name)).is_none(), "{name}");
    }
    assert!(in_git(&root.join(".git")).contains(&root.join("tools/hooks")));
}

/// SAFE-10: the sandbox gets the parts of a repository that git runs, those of its submodules and worktrees, and the
/// pointer to a repository elsewhere.
#[test]
fn repositories_are_taken_apart() {
    let (_folder, root) = folder();
    let git = root.join(".git");
    assert_eq!(in_git(&git), std::slice::from_ref(&git), "absent");
    fs::create_dir(&git).expect("a folder");
    assert_eq!(in_git(&git), std::slice::from_ref(&git), "empty");
    for name in [
        ".git/HEAD",
        ".git/modules/group/lib/HEAD",
        ".git/modules/group/lib/modules/inner/HEAD",
        ".git/worktrees/w/HEAD",
        ".git/worktrees/w/commondir",
    ] {
        put(&root, name, "");
    }
    let found = in_git(&git);
    for name in [
        "hooks",
        "config",
        "config.worktree",
        "info/attributes",
        "modules/group/lib/hooks",
        "modules/group/lib/config",
        "modules/group/lib/modules/inner/config",
        "worktrees/w/commondir",
    ] {
        assert!(found.contains(&git.join(name)), "{name}: {found:?}");
    }
    assert!(!found.contains(&git), "git itself must be able to commit");
    put(&root, "sub/.git", "gitdir: ../.git/modules/group/lib\n");
    let pointer = in_git(&root.join("sub/.git"));
    assert!(pointer.contains(&root.join("sub/.git")), "{pointer:?}");
    assert!(
        pointer.contains(&git.join("modules/group/lib/hooks")),
        "{pointer:?}"
    );
    symlink(&git, root.join("sub/link.git")).expect("a link");
    assert_eq!(in_git(&root.join("sub/x")), [root.join("sub/x")]);
}

#[test]
fn placeholders_fit_their_place() {
    for (path, kind) in [
        ("/w/.git", Placeholder::Folder),
        ("/w/.git/hooks", Placeholder::Folder),
        ("/w/.git/config.worktree", Placeholder::File),
        ("/w/.git/info/attributes", Placeholder::File),
        ("/w/.git/modules/x/config", Placeholder::File),
        ("/w/.mcp.json", Placeholder::Folder),
        ("/home/ann/.zshenv", Placeholder::File),
        ("/home/ann/.config/autostart", Placeholder::Folder),
        ("/home/ann/.bash_profile", Placeholder::Nothing),
    ] {
        assert_eq!(placeholder(Path::new(path)), kind, "{path}");
    }
}
