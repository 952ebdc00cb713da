//! SUB-6: a worktree is the folder as it is now, and the folder does not notice.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use windlass_worktree::WorktreeError;

use crate::lab::{Lab, SESSION, contents, make_executable};

/// Changes of every kind in a project, some of them staged.
fn change(lab: &Lab) {
    lab.write("changed.txt", "two\n");
    lab.write("staged.txt", "two\n");
    lab.git(&["add", "staged.txt"]);
    lab.write("staged.txt", "three\n");
    lab.git(&["rm", "--quiet", "--cached", "untracked-now.txt"]);
    fs::remove_file(lab.project.join("deleted.txt")).unwrap();
    fs::remove_dir_all(lab.project.join("gone")).unwrap();
    make_executable(&lab.project.join("run.sh"));
    fs::remove_file(lab.project.join("becomes-link")).unwrap();
    symlink("changed.txt", lab.project.join("becomes-link")).unwrap();
    fs::remove_file(lab.project.join("becomes-folder")).unwrap();
    lab.write("becomes-folder/new.txt", "new\n");
    lab.write("new/deep/file.txt", "new\n");
    lab.write("new line\n.txt", "new\n");
    lab.write("\"quoted\".txt", "new\n");
    lab.write("return\r", "new\n");
    let odd = lab.project.join(OsStr::from_bytes(b"odd-\xff.txt"));
    fs::write(odd, [0, 1, 2, 255]).unwrap();
    lab.write("read-only.txt", "new\n");
    let read_only = lab.project.join("read-only.txt");
    fs::set_permissions(read_only, fs::Permissions::from_mode(0o444)).unwrap();
    fs::write(lab.project.join("large.bin"), vec![7; 3 << 20]).unwrap();
    symlink("/nowhere/at all", lab.project.join("dangling")).unwrap();
    symlink("/etc", lab.project.join("outside")).unwrap();
    fs::create_dir_all(lab.project.join("empty/inner")).unwrap();
}

fn project() -> Lab {
    let lab = Lab::committed(&[
        ("same.txt", "one\n"),
        ("sub/same.txt", "one\n"),
        ("changed.txt", "one\n"),
        ("staged.txt", "one\n"),
        ("untracked-now.txt", "one\n"),
        ("deleted.txt", "one\n"),
        ("gone/file.txt", "one\n"),
        ("run.sh", "one\n"),
        ("becomes-link", "one\n"),
        ("becomes-folder", "one\n"),
        (".gitignore", "ignored/\n*.log\n"),
    ]);
    lab.write("ignored/file.txt", "ignored\n");
    lab.write("a.log", "ignored\n");
    lab.write("forced.log", "tracked although ignored\n");
    lab.git(&["add", "--force", "forced.log"]);
    lab.git(&["commit", "--quiet", "--message", "two"]);
    change(&lab);
    lab
}

#[test]
fn a_worktree_is_the_folder_as_it_is_now() {
    let lab = project();
    let before = lab.repository_state();
    let worktree = lab.create();
    assert_eq!(lab.repository_state(), before);

    let mut expected = contents(&lab.project);
    expected.retain(|path, _| !path.starts_with("ignored") && !path.ends_with("a.log"));
    assert_eq!(contents(worktree.folder()), expected);
    assert_eq!(worktree.folder().file_name(), lab.project.file_name());
    assert_eq!(worktree.source(), lab.project);
    assert!(worktree.is_unchanged(&lab.cancel).unwrap());
}

#[test]
fn a_worktree_has_its_own_branch_at_the_copied_state() {
    let lab = project();
    let worktree = lab.create();
    let git = |arguments: &[&str]| lab.git_in(worktree.folder(), arguments);
    assert_eq!(worktree.branch(), Some("windlass/0190a1b2-child"));
    assert_eq!(
        git(&["symbolic-ref", "HEAD"]),
        "refs/heads/windlass/0190a1b2-child"
    );
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(git(&["rev-parse", "HEAD"]), worktree.base().unwrap());
    assert_eq!(git(&["rev-parse", "HEAD^"]), lab.git(&["rev-parse", "HEAD"]));
    assert_eq!(git(&["show", "HEAD:becomes-folder/new.txt"]), "new");
    assert_eq!(git(&["fsck", "--no-dangling"]), "");
    // The index knows the files, so that nothing is read again.
    assert_eq!(git(&["diff-files"]), "");
}

#[test]
fn a_clean_repository_needs_no_commit() {
    let lab = Lab::committed(&[("a", "one\n")]);
    let worktree = lab.create();
    assert_eq!(worktree.base(), Some(&*lab.git(&["rev-parse", "HEAD"])));
}

#[test]
fn a_folder_without_commits_is_copied() {
    for lab in [Lab::plain(), Lab::unborn()] {
        lab.write("a.txt", "one\n");
        lab.write("sub/b.txt", "one\n");
        lab.write("target/big.o", "one\n");
        lab.write(".gitignore", "target/\n");
        symlink("a.txt", lab.project.join("link")).unwrap();
        make_executable(&lab.project.join("a.txt"));
        let worktree = lab.create();
        let mut expected = contents(&lab.project);
        expected.retain(|path, _| !path.starts_with("target"));
        assert_eq!(contents(worktree.folder()), expected);
        assert_eq!((worktree.branch(), worktree.base()), (None, None));
        assert!(!worktree.folder().join(".git").exists());
        assert!(worktree.is_unchanged(&lab.cancel).unwrap());
        worktree.remove(&lab.cancel).unwrap();
        lab.assert_clean();
    }
}

#[test]
fn an_empty_folder_has_an_empty_worktree() {
    for lab in [Lab::plain(), Lab::unborn(), Lab::committed(&[])] {
        let worktree = lab.create();
        assert_eq!(contents(worktree.folder()).len(), 0);
        assert!(worktree.changes(&lab.cancel).unwrap().is_empty());
        assert!(worktree.merge(&lab.project, &lab.cancel).unwrap().is_empty());
        worktree.remove(&lab.cancel).unwrap();
        lab.assert_clean();
    }
}

#[test]
fn a_failure_leaves_nothing() {
    let lab = project();
    let branch = format!("windlass/{SESSION}");
    lab.git(&["branch", &branch]);
    let error = lab
        .worktrees
        .create(&lab.project, SESSION, &lab.cancel)
        .unwrap_err();
    assert!(error.to_string().contains(&branch), "{error}");
    // The branch was there before, so it stays.
    lab.git(&["rev-parse", "--verify", &branch]);
    lab.git(&["branch", "--quiet", "-D", &branch]);
    lab.assert_clean();

    lab.cancel.cancel();
    let error = lab
        .worktrees
        .create(&lab.project, SESSION, &lab.cancel)
        .unwrap_err();
    assert!(matches!(error, WorktreeError::Canceled), "{error}");
    lab.assert_clean();
}

#[test]
fn a_damaged_repository_is_an_error_with_a_reason() {
    let lab = Lab::plain();
    lab.write(".git", "gitdir: /nowhere\n");
    let error = lab
        .worktrees
        .create(&lab.project, SESSION, &lab.cancel)
        .unwrap_err();
    assert!(error.to_string().contains("/nowhere"), "{error}");
    lab.assert_clean();

    // The branch cannot be created, after the folder was.
    let lab = Lab::committed(&[("a", "one\n")]);
    lab.git(&["branch", "windlass"]);
    let error = lab
        .worktrees
        .create(&lab.project, SESSION, &lab.cancel)
        .unwrap_err();
    assert!(error.to_string().contains("windlass"), "{error}");
    lab.assert_clean();
}

#[test]
fn bad_names_and_repeated_names_are_refused() {
    let lab = Lab::plain();
    for name in ["", "..", "a/b", "-x", "a b", &"x".repeat(101)] {
        let error = lab.worktrees.create(&lab.project, name, &lab.cancel).unwrap_err();
        assert!(matches!(error, WorktreeError::Name(_)), "{name}: {error}");
    }
    lab.create();
    let error = lab
        .worktrees
        .create(&lab.project, SESSION, &lab.cancel)
        .unwrap_err();
    assert!(matches!(error, WorktreeError::Exists(_)), "{error}");
    let missing = lab.project.join("missing");
    let error = lab.worktrees.create(&missing, "other", &lab.cancel).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn the_state_folder_is_not_copied_into_itself() {
    let lab = Lab::plain();
    lab.write("a", "one\n");
    lab.write("secret/key", "one\n");
    let env = std::collections::BTreeMap::new();
    let worktrees = windlass_worktree::Worktrees::new(&lab.project.join("state"), &env)
        .hiding(vec![lab.project.join("secret")]);
    let worktree = worktrees.create(&lab.project, SESSION, &lab.cancel).unwrap();
    let found: Vec<_> = contents(worktree.folder()).into_keys().collect();
    assert_eq!(found, [std::path::Path::new("a")]);
}

#[test]
fn worktrees_are_found_again_and_removed() {
    let lab = project();
    assert_eq!(lab.worktrees.list().unwrap().len(), 0);
    let worktree = lab.create();
    fs::write(worktree.folder().join("same.txt"), "child\n").unwrap();
    fs::create_dir_all(lab.outside().join("state/unfinished/tree/x/closed/inner")).unwrap();
    let closed = lab.outside().join("state/unfinished/tree/x/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();

    let found = lab.worktrees.list().unwrap();
    let shown: Vec<_> = found
        .iter()
        .map(|found| (found.session.as_str(), found.worktree.is_some()))
        .collect();
    assert_eq!(shown, [(SESSION, true), ("unfinished", false)]);
    let opened = lab.worktrees.open(SESSION).unwrap();
    assert_eq!(
        opened.changed_paths(&lab.cancel).unwrap(),
        [std::path::Path::new("same.txt")]
    );
    let error = lab.worktrees.open("unfinished").unwrap_err();
    assert!(matches!(error, WorktreeError::Missing(_)), "{error}");

    lab.worktrees.remove("unfinished", &lab.cancel).unwrap();
    lab.worktrees.remove("never", &lab.cancel).unwrap();
    // Whatever the sub-agent did to the link to the repository.
    fs::write(opened.folder().join(".git"), "gitdir: /nowhere\n").unwrap();
    opened.remove(&lab.cancel).unwrap();
    lab.assert_clean();
    lab.create();
}
