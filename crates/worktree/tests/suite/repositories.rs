//! Repositories of every shape.

use std::fs;
use std::path::Path;

use windlass_worktree::{OnConflict, WorktreeError};

use crate::lab::{Lab, SESSION, contents, write};

#[test]
fn a_subfolder_maps_to_the_same_subfolder() {
    let lab = Lab::committed(&[("top.txt", "one\n"), ("crates/a/lib.rs", "one\n")]);
    lab.write("crates/a/new.rs", "new\n");
    lab.write("other/new.rs", "new\n");
    let source = lab.project.join("crates/a");
    let worktree = lab.worktrees.create(&source, SESSION, &lab.cancel).unwrap();
    assert!(worktree.folder().ends_with("project/crates/a"));
    assert_eq!(worktree.source(), source);
    assert_eq!(contents(worktree.root()), contents(&lab.project));
    fs::write(worktree.folder().join("lib.rs"), "child\n").unwrap();
    fs::write(worktree.root().join("top.txt"), "child\n").unwrap();

    let error = worktree.merge(&lab.project, &lab.cancel).unwrap_err();
    assert!(matches!(error, WorktreeError::Elsewhere { .. }), "{error}");
    let plan = worktree.merge(&source, &lab.cancel).unwrap();
    let paths = [Path::new("crates/a/lib.rs"), Path::new("top.txt")];
    assert_eq!(plan.paths(OnConflict::Keep), paths);
    assert_eq!(plan.apply(OnConflict::Keep, &lab.cancel).unwrap().changed, paths);
    assert_eq!(
        (lab.read("crates/a/lib.rs"), lab.read("top.txt")),
        ("child\n".into(), "child\n".into())
    );
}

#[test]
fn a_subfolder_of_ignored_files_exists() {
    let lab = Lab::committed(&[("a", "one\n"), (".gitignore", "build/\n")]);
    lab.write("build/x", "ignored\n");
    let source = lab.project.join("build");
    let worktree = lab.worktrees.create(&source, SESSION, &lab.cancel).unwrap();
    assert_eq!(contents(worktree.folder()).len(), 0);
}

#[test]
fn a_worktree_of_a_worktree() {
    let lab = Lab::committed(&[("a.txt", "one\n")]);
    let linked = lab.outside().join("linked");
    lab.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "feature",
        &linked.display().to_string(),
    ]);
    write(&linked, "a.txt", "two\n");
    write(&linked, "b.txt", "two\n");
    let worktree = lab.worktrees.create(&linked, SESSION, &lab.cancel).unwrap();
    assert_eq!(contents(worktree.folder()), contents(&linked));
    assert_eq!(
        lab.git_in(&linked, &["status", "--porcelain"]),
        " M a.txt\n?? b.txt"
    );
    assert_eq!(lab.git_in(worktree.folder(), &["status", "--porcelain"]), "");

    // And the worktree of a sub-agent is a folder like any other.
    let inner = lab
        .worktrees
        .create(worktree.folder(), "grandchild", &lab.cancel)
        .unwrap();
    write(inner.folder(), "c.txt", "three\n");
    let plan = inner.merge(worktree.folder(), &lab.cancel).unwrap();
    plan.apply(OnConflict::Keep, &lab.cancel).unwrap();
    let changed = worktree.changed_paths(&lab.cancel).unwrap();
    assert_eq!(changed, [Path::new("c.txt")]);
    inner.remove(&lab.cancel).unwrap();
    worktree.remove(&lab.cancel).unwrap();
    assert_eq!(lab.git(&["branch", "--list", "windlass/*"]), "");
    assert_eq!(lab.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn submodules_are_copied_as_files() {
    let lab = Lab::committed(&[("a.txt", "one\n")]);
    let library = lab.outside().join("library");
    fs::create_dir(&library).unwrap();
    lab.git_in(&library, &["init", "--quiet"]);
    write(&library, "lib.c", "one\n");
    lab.git_in(&library, &["add", "--all"]);
    lab.git_in(&library, &["commit", "--quiet", "--message", "one"]);
    lab.git(&[
        "submodule",
        "--quiet",
        "add",
        &library.display().to_string(),
        "vendor/lib",
    ]);
    lab.git(&["commit", "--quiet", "--message", "two"]);
    lab.write("vendor/lib/local.c", "two\n");
    // A repository that is not a submodule.
    lab.git_in(&lab.outside(), &["clone", "--quiet", "library", "project/nested"]);
    let before = lab.repository_state();

    let worktree = lab.create();
    assert_eq!(lab.repository_state(), before);
    assert_eq!(contents(worktree.folder()), contents(&lab.project));
    assert!(worktree.is_unchanged(&lab.cancel).unwrap());
    write(worktree.folder(), "vendor/lib/lib.c", "child\n");
    write(worktree.folder(), "nested/lib.c", "child\n");
    lab.write("vendor/lib/lib.c", "one\nparent\n");
    let changes = worktree.changes(&lab.cancel).unwrap();
    assert_eq!(changes.lines(), (2, 2));
    let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
    let conflicts: Vec<_> = plan.conflicts.iter().map(|conflict| &conflict.path).collect();
    assert_eq!(conflicts, [Path::new("vendor/lib/lib.c")]);
    plan.apply(OnConflict::Keep, &lab.cancel).unwrap();
    assert_eq!(lab.read("nested/lib.c"), "child\n");
    assert_eq!(lab.read("vendor/lib/lib.c"), "one\nparent\n");
}

#[test]
fn files_outside_of_a_sparse_checkout_stay_outside() {
    let lab = Lab::committed(&[("in/a.txt", "one\n"), ("out/b.txt", "one\n"), ("c.txt", "one\n")]);
    lab.git(&["sparse-checkout", "set", "in"]);
    lab.write("in/a.txt", "two\n");
    assert!(!lab.project.join("out").exists());
    let before = lab.repository_state();
    let worktree = lab.create();
    assert_eq!(lab.repository_state(), before);
    assert_eq!(contents(worktree.folder()), contents(&lab.project));
    assert_eq!(lab.git_in(worktree.folder(), &["status", "--porcelain"]), "");
    assert_eq!(lab.git_in(worktree.folder(), &["show", "HEAD:out/b.txt"]), "one");
    assert!(worktree.is_unchanged(&lab.cancel).unwrap());
    assert!(worktree.merge(&lab.project, &lab.cancel).unwrap().is_empty());
}

#[test]
fn repositories_with_longer_digests() {
    let lab = Lab::plain();
    lab.git(&["init", "--quiet", "--object-format=sha256"]);
    lab.write("a.txt", "one\n");
    lab.commit();
    lab.write("a.txt", "two\n");
    let worktree = lab.create();
    assert_eq!(lab.git_in(worktree.folder(), &["status", "--porcelain"]), "");
    write(worktree.folder(), "a.txt", "two\nchild\n");
    assert_eq!(worktree.changes(&lab.cancel).unwrap().lines(), (1, 0));
}

#[test]
fn converted_files_are_copied_as_they_are() {
    let lab = Lab::committed(&[(".gitattributes", "*.txt text eol=crlf\n"), ("a.txt", "one\n")]);
    fs::remove_file(lab.project.join("a.txt")).unwrap();
    lab.git(&["checkout", "--quiet", "a.txt"]);
    // Not in the same tick as the index, or git could not know that the file is unchanged.
    let earlier = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let file = fs::File::options()
        .write(true)
        .open(lab.project.join("a.txt"))
        .unwrap();
    file.set_modified(earlier).unwrap();
    lab.git(&["update-index", "--refresh"]);
    assert_eq!(lab.read("a.txt"), "one\r\n");
    let worktree = lab.create();
    assert_eq!(
        fs::read_to_string(worktree.folder().join("a.txt")).unwrap(),
        "one\r\n"
    );
    // The object stays the converted one, so that the branch shows no change.
    assert_eq!(worktree.base(), Some(&*lab.git(&["rev-parse", "HEAD"])));
    assert_eq!(lab.git_in(worktree.folder(), &["status", "--porcelain"]), "");
    write(worktree.folder(), "a.txt", "one\r\nchild\r\n");
    lab.write("a.txt", "parent\r\none\r\n");
    assert_eq!(worktree.changes(&lab.cancel).unwrap().lines(), (1, 0));
    let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
    assert_eq!(plan.conflicts, []);
    plan.apply(OnConflict::Keep, &lab.cancel).unwrap();
    assert_eq!(lab.read("a.txt"), "parent\r\none\r\nchild\r\n");
}

#[test]
fn a_merge_in_progress_is_copied_with_its_markers() {
    let lab = Lab::committed(&[("a.txt", "one\n")]);
    lab.git(&["checkout", "--quiet", "-b", "other"]);
    lab.write("a.txt", "two\n");
    lab.commit();
    lab.git(&["checkout", "--quiet", "main"]);
    lab.write("a.txt", "three\n");
    lab.commit();
    let merged = std::process::Command::new("git")
        .args(["merge", "other"])
        .current_dir(&lab.project)
        .output();
    assert!(!merged.unwrap().status.success());
    let before = lab.repository_state();
    let worktree = lab.create();
    assert_eq!(lab.repository_state(), before);
    assert_eq!(contents(worktree.folder()), contents(&lab.project));
    assert_eq!(lab.git_in(worktree.folder(), &["status", "--porcelain"]), "");
}
