//! Merging a worktree into the folder it was made from.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tokio_util::sync::CancellationToken;
use windlass_worktree::{ConflictReason, MergeOutcome, OnConflict, Worktree};

use crate::lab::{Lab, contents, make_executable, write};

/// A state of the file `f`: absent, a text, `x:` a program, `l:` a link.
fn set(folder: &Path, state: Option<&str>) {
    let file = folder.join("f");
    let _ = fs::remove_file(&file);
    match state.map(|state| (state, state.split_once(':'))) {
        None => {}
        Some((_, Some(("l", target)))) => symlink(target, file).unwrap(),
        Some((_, Some(("x", text)))) => {
            fs::write(&file, text).unwrap();
            make_executable(&file);
        }
        Some((text, _)) => fs::write(file, text).unwrap(),
    }
}

fn get(folder: &Path) -> Option<String> {
    let file = folder.join("f");
    let data = fs::symlink_metadata(&file).ok()?;
    Some(match data.is_symlink() {
        true => format!("l:{}", fs::read_link(&file).unwrap().display()),
        false if data.permissions().mode() & 0o111 != 0 => {
            format!("x:{}", fs::read_to_string(&file).unwrap())
        }
        false => fs::read_to_string(&file).unwrap(),
    })
}

/// States of the base, the folder and the worktree, and the result of a merge.
type Case = (
    Option<&'static str>,
    Option<&'static str>,
    Option<&'static str>,
    Result<Option<&'static str>, ConflictReason>,
);

#[test]
fn files_are_merged_three_way() {
    use ConflictReason::*;
    const NO: Option<&str> = None;
    let cases: &[Case] = &[
        // base, folder, worktree, result
        (Some("a\n"), Some("a\n"), Some("b\n"), Ok(Some("b\n"))),
        (Some("a\n"), Some("b\n"), Some("b\n"), Ok(Some("b\n"))),
        (Some("a\n"), Some("a\n"), NO, Ok(NO)),
        (Some("a\n"), NO, NO, Ok(NO)),
        (NO, NO, Some("x:a\n"), Ok(Some("x:a\n"))),
        (NO, Some("a\n"), Some("a\n"), Ok(Some("a\n"))),
        (
            Some("a\nb\nc\n"),
            Some("A\nb\nc\n"),
            Some("a\nb\nC\n"),
            Ok(Some("A\nb\nC\n")),
        ),
        (Some("a\n"), Some("a\n"), Some("x:a\n"), Ok(Some("x:a\n"))),
        (Some("a\n"), Some("x:a\n"), Some("b\n"), Ok(Some("x:b\n"))),
        (Some("a\n"), Some("b\n"), Some("x:a\n"), Ok(Some("x:b\n"))),
        (
            Some("x:a\nb\nc\n"),
            Some("x:A\nb\nc\n"),
            Some("a\nb\nC\n"),
            Ok(Some("A\nb\nC\n")),
        ),
        (Some("\0a"), Some("x:\0a"), Some("\0b"), Ok(Some("x:\0b"))),
        (
            Some("l:a"),
            Some("l:a"),
            Some("l:/etc/passwd"),
            Ok(Some("l:/etc/passwd")),
        ),
        (Some("l:a"), Some("l:a"), Some("b\n"), Ok(Some("b\n"))),
        (Some("a\n"), Some("a\n"), Some("l:b"), Ok(Some("l:b"))),
        (Some("a\n"), Some("b\n"), Some("c\n"), Err(Lines)),
        (NO, Some("b\n"), Some("c\n"), Err(Lines)),
        (Some("a\n"), NO, Some("c\n"), Err(DeletedInFolder)),
        (Some("a\n"), Some("b\n"), NO, Err(DeletedInWorktree)),
        (Some("\0a"), Some("\0b"), Some("\0c"), Err(Content)),
        (Some("l:a"), Some("l:b"), Some("l:c"), Err(Content)),
        (Some("a\n"), Some("b\n"), Some("l:c"), Err(Kind)),
    ];
    for (base, ours, theirs, expected) in cases {
        for lab in [Lab::plain(), Lab::committed(&[("other", "one\n")])] {
            set(&lab.project, *base);
            let worktree = lab.create();
            set(&lab.project, *ours);
            set(worktree.folder(), *theirs);
            let case = format!("{base:?} {ours:?} {theirs:?}");
            let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
            let reasons: Vec<_> = plan.conflicts.iter().map(|conflict| conflict.reason).collect();
            let outcome = plan.apply(OnConflict::Keep, &lab.cancel).unwrap();
            assert_eq!(outcome.left, [], "{case}");
            match expected {
                Ok(state) => {
                    assert_eq!(get(&lab.project).as_deref(), *state, "{case}");
                    assert_eq!(reasons, [], "{case}");
                }
                Err(reason) => {
                    assert_eq!(reasons, [*reason], "{case}");
                    assert_eq!(outcome, MergeOutcome::default(), "{case}");
                    assert_eq!(get(&lab.project).as_deref(), *ours, "{case}");
                }
            }
            // Whatever was merged is not merged again.
            let again = worktree.merge(&lab.project, &lab.cancel).unwrap();
            assert_eq!(again.conflicts.len(), reasons.len(), "{case}");
            assert!(again.paths(OnConflict::Keep).is_empty(), "{case}");
        }
    }
}

#[test]
fn conflicts_can_be_marked() {
    let lab = Lab::committed(&[("a.txt", "one\ntwo\nthree\n"), ("b.txt", "one\n")]);
    let worktree = lab.create();
    lab.write("a.txt", "one\nparent\nthree\n");
    make_executable(&lab.project.join("a.txt"));
    write(worktree.folder(), "a.txt", "one\nchild\nthree\n");
    write(worktree.folder(), "b.txt", "child\n");
    let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
    let marked = "one\n<<<<<<< folder\nparent\n=======\nchild\n>>>>>>> windlass/0190a1b2-child\nthree\n";
    assert_eq!(plan.conflicts[0].marked.as_deref(), Some(marked));
    assert_eq!(plan.paths(OnConflict::Keep), [Path::new("b.txt")]);
    let both = [Path::new("a.txt"), Path::new("b.txt")];
    assert_eq!(plan.paths(OnConflict::Mark), both);
    assert_eq!(plan.apply(OnConflict::Mark, &lab.cancel).unwrap().changed, both);
    assert_eq!(lab.read("a.txt"), marked);
    let mode = fs::metadata(lab.project.join("a.txt"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
}

fn merge(lab: &Lab, worktree: &Worktree) -> (Vec<String>, MergeOutcome) {
    let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
    let conflicts = plan
        .conflicts
        .iter()
        .map(|conflict| format!("{} {:?}", conflict.path.display(), conflict.reason))
        .collect();
    (conflicts, plan.apply(OnConflict::Keep, &lab.cancel).unwrap())
}

#[test]
fn files_become_folders_and_folders_files() {
    for lab in [Lab::plain(), Lab::committed(&[])] {
        lab.write("file", "one\n");
        lab.write("folder/a/b.txt", "one\n");
        lab.write("folder/c.txt", "one\n");
        fs::create_dir_all(lab.project.join("folder/empty/inner")).unwrap();
        let worktree = lab.create();
        fs::remove_file(worktree.folder().join("file")).unwrap();
        write(worktree.folder(), "file/inside/new.txt", "child\n");
        fs::remove_dir_all(worktree.folder().join("folder")).unwrap();
        write(worktree.folder(), "folder", "child\n");
        let (conflicts, outcome) = merge(&lab, &worktree);
        assert_eq!(
            (conflicts.len(), outcome.left.len()),
            (0, 0),
            "{conflicts:?} {outcome:?}"
        );
        assert_eq!(contents(&lab.project), contents(worktree.folder()));
    }
}

#[test]
fn new_files_of_the_folder_are_not_in_the_way_of_being_kept() {
    let lab = Lab::committed(&[("folder/a.txt", "one\n"), ("file", "one\n")]);
    let worktree = lab.create();
    lab.write("folder/parent.txt", "parent\n");
    lab.write("file", "parent\n");
    lab.write("taken", "parent\n");
    fs::remove_dir_all(worktree.folder().join("folder")).unwrap();
    write(worktree.folder(), "folder", "child\n");
    fs::remove_file(worktree.folder().join("file")).unwrap();
    write(worktree.folder(), "file/new.txt", "child\n");
    write(worktree.folder(), "taken/new.txt", "child\n");
    let (conflicts, outcome) = merge(&lab, &worktree);
    assert_eq!(
        conflicts,
        [
            "file DeletedInWorktree",
            "file/new.txt InTheWay",
            "folder InTheWay",
            "taken/new.txt InTheWay"
        ]
    );
    assert_eq!(outcome.changed, [Path::new("folder/a.txt")]);
    assert_eq!(lab.read("folder/parent.txt"), "parent\n");
    assert_eq!(lab.read("file"), "parent\n");
}

#[test]
fn links_are_not_followed_out_of_the_folder() {
    let lab = Lab::committed(&[("sub/a.txt", "one\n"), ("b.txt", "one\n")]);
    let worktree = lab.create();
    let outside = lab.outside().join("outside");
    write(&outside, "a.txt", "one\n");
    write(&outside, "b.txt", "one\n");
    fs::remove_dir_all(lab.project.join("sub")).unwrap();
    symlink(&outside, lab.project.join("sub")).unwrap();
    fs::remove_file(lab.project.join("b.txt")).unwrap();
    symlink(outside.join("b.txt"), lab.project.join("b.txt")).unwrap();
    write(worktree.folder(), "sub/a.txt", "child\n");
    write(worktree.folder(), "sub/new.txt", "child\n");
    write(worktree.folder(), "b.txt", "child\n");
    let before = contents(&outside);
    let (conflicts, outcome) = merge(&lab, &worktree);
    assert_eq!(
        conflicts,
        ["b.txt Kind", "sub/a.txt DeletedInFolder", "sub/new.txt InTheWay"]
    );
    assert_eq!(outcome, MergeOutcome::default());
    assert_eq!(contents(&outside), before);
}

#[test]
fn links_in_the_worktree_are_not_followed_either() {
    let lab = Lab::committed(&[("sub/a.txt", "one\n")]);
    let worktree = lab.create();
    let outside = lab.outside().join("outside");
    write(&outside, "secret.txt", "secret\n");
    fs::remove_dir_all(worktree.folder().join("sub")).unwrap();
    symlink(&outside, worktree.folder().join("sub")).unwrap();
    let (conflicts, outcome) = merge(&lab, &worktree);
    assert_eq!(conflicts, [""; 0]);
    assert_eq!(outcome.changed, [Path::new("sub"), Path::new("sub/a.txt")]);
    assert_eq!(fs::read_link(lab.project.join("sub")).unwrap(), outside);
    assert_eq!(
        fs::read_to_string(outside.join("secret.txt")).unwrap(),
        "secret\n"
    );
}

#[test]
fn what_changes_after_the_plan_is_left_alone() {
    let lab = Lab::committed(&[("a", "one\n"), ("b", "one\n"), ("c", "one\n"), ("d", "one\n")]);
    let worktree = lab.create();
    for name in ["a", "b", "c", "new"] {
        write(worktree.folder(), name, "child\n");
    }
    fs::remove_file(worktree.folder().join("d")).unwrap();
    let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
    lab.write("a", "parent\n");
    write(worktree.folder(), "b", "later\n");
    lab.write("new", "parent\n");
    lab.write("d", "parent\n");
    let outcome = plan.apply(OnConflict::Keep, &lab.cancel).unwrap();
    assert_eq!(outcome.changed, [Path::new("c")]);
    let left: Vec<_> = outcome.left.iter().map(|(path, _)| path.as_path()).collect();
    assert_eq!(left, ["a", "b", "d", "new"].map(Path::new));
    let states = ["a", "b", "c", "d", "new"].map(|name| lab.read(name));
    assert_eq!(states, ["parent\n", "one\n", "child\n", "parent\n", "parent\n"]);
    assert!(!lab.project.join(".windlass-merge").exists());
}

#[test]
fn a_canceled_merge_says_what_it_did_not_do() {
    let lab = Lab::plain();
    let worktree = lab.create();
    write(worktree.folder(), "a", "child\n");
    let canceled = CancellationToken::new();
    canceled.cancel();
    let plan = worktree.merge(&lab.project, &lab.cancel).unwrap();
    let outcome = plan.apply(OnConflict::Keep, &canceled).unwrap();
    assert_eq!(outcome.left, [("a".into(), "canceled".to_owned())]);
    assert!(!lab.project.join("a").exists());
    worktree.merge(&lab.project, &canceled).unwrap_err();
}
