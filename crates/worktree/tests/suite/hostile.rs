//! SAFE-1: the settings of a repository start no program.

use std::fs;

use windlass_worktree::OnConflict;

use crate::lab::{Lab, make_executable, write};

#[test]
fn nothing_that_a_repository_names_is_run() {
    let lab = Lab::committed(&[("a.txt", "one\n"), ("b.bin", "one\n"), ("c.txt", "one\n")]);
    let marker = lab.outside().join("marker");
    let evil = lab.outside().join("evil.sh");
    fs::write(
        &evil,
        format!("#!/bin/sh\necho \"$0 $@\" >> {}\ncat\n", marker.display()),
    )
    .unwrap();
    make_executable(&evil);
    let evil = evil.display().to_string();

    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-commit",
        "post-commit",
    ] {
        fs::copy(&evil, lab.project.join(".git/hooks").join(hook)).unwrap();
        make_executable(&lab.project.join(".git/hooks").join(hook));
    }
    lab.write("c.txt", "two\n");
    let attributes = "* filter=evil diff=evil merge=evil text eol=crlf\n";
    lab.write(".gitattributes", attributes);
    write(&lab.project, ".git/info/attributes", attributes);
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {evil}\n\tpager = {evil}\n\teditor = {evil}\n\
         \tsshCommand = {evil}\n\taskPass = {evil}\n\thooksPath = .git/hooks\n\tworktree = /\n\
         \talternateRefsCommand = {evil}\n\
         [filter \"evil\"]\n\tclean = {evil}\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired = true\n\
         [diff]\n\texternal = {evil}\n[diff \"evil\"]\n\ttextconv = {evil}\n\tcommand = {evil}\n\
         [merge \"evil\"]\n\tdriver = {evil}\n[alias]\n\tls-files = !{evil}\n[gpg]\n\tprogram = {evil}\n\
         [commit]\n\tgpgSign = true\n[credential]\n\thelper = {evil}\n[trace2]\n\tnormalTarget = {evil}\n"
    );
    fs::write(lab.project.join(".git/config"), config).unwrap();
    // The index is older than every file, so that git would compare contents.
    fs::write(lab.project.join("a.txt"), "one\n").unwrap();

    let worktree = lab.create();
    assert_eq!(
        fs::read_to_string(worktree.folder().join("c.txt")).unwrap(),
        "two\n"
    );
    fs::write(worktree.folder().join("a.txt"), "child\n").unwrap();
    fs::write(worktree.folder().join(".git"), "gitdir: ../../evil\n").unwrap();
    lab.write("a.txt", "parent\n");
    assert_eq!(worktree.changes(&lab.cancel).unwrap().files.len(), 1);
    let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
    assert_eq!(plan.conflicts.len(), 1);
    plan.apply(OnConflict::Mark, &lab.cancel).unwrap();
    worktree.remove(&lab.cancel).unwrap();
    assert!(!marker.exists(), "{}", fs::read_to_string(&marker).unwrap());
}

#[test]
fn a_program_in_the_folder_is_not_run_as_git() {
    let lab = Lab::committed(&[("a.txt", "one\n")]);
    let marker = lab.outside().join("marker");
    lab.write("bin/git", &format!("#!/bin/sh\ntouch {}\n", marker.display()));
    make_executable(&lab.project.join("bin/git"));
    let path = format!(
        "{}:.:/usr/local/bin:/usr/bin:/bin",
        lab.project.join("bin").display()
    );
    let env = std::collections::BTreeMap::from([("PATH".to_owned(), path)]);
    let worktrees = windlass_worktree::Worktrees::new(&lab.outside().join("state"), &env);
    let worktree = worktrees.create(&lab.project, "s1", &lab.cancel).unwrap();
    assert!(worktree.branch().is_some());
    assert!(!marker.exists());
}
