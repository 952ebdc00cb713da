//! The changes in a worktree since it was created.

use std::fs;
use std::os::unix::fs::symlink;

use crate::lab::{Lab, make_executable, write};

fn projects() -> [Lab; 2] {
    let files = [
        ("same.txt", "one\n"),
        ("text.txt", "one\ntwo\nthree\n"),
        ("deleted.txt", "one\ntwo\n"),
        ("run.sh", "one\n"),
        ("link-to-be", "one\n"),
        ("binary", "\0one"),
        (".gitignore", "target/\n"),
    ];
    let plain = Lab::plain();
    for (path, text) in files {
        plain.write(path, text);
    }
    [Lab::committed(&files), plain]
}

#[test]
fn every_kind_of_change_is_found() {
    for lab in projects() {
        symlink("same.txt", lab.project.join("link")).unwrap();
        let worktree = lab.create();
        let folder = worktree.folder();
        write(folder, "text.txt", "one\n2\nthree\nfour\n");
        write(folder, "new/file.txt", "new\n");
        write(folder, "target/ignored.o", "ignored");
        write(folder, "binary", "\0two");
        fs::remove_file(folder.join("deleted.txt")).unwrap();
        make_executable(&folder.join("run.sh"));
        fs::remove_file(folder.join("link-to-be")).unwrap();
        symlink("/etc/passwd", folder.join("link-to-be")).unwrap();
        fs::remove_file(folder.join("link")).unwrap();
        symlink("text.txt", folder.join("link")).unwrap();
        // Written again with the same content.
        write(folder, "same.txt", "one\n");
        // What happens to the original does not matter.
        lab.write("text.txt", "parent\n");
        fs::remove_file(lab.project.join("same.txt")).unwrap();

        let changes = worktree.changes(&lab.cancel).unwrap();
        let shown: Vec<String> = changes
            .files
            .iter()
            .map(|file| format!("{:?} {} {:?}", file.kind, file.path.display(), file.lines))
            .collect();
        assert_eq!(
            shown,
            [
                "Modified binary None",
                "Deleted deleted.txt Some((0, 2))",
                "Modified link Some((1, 1))",
                "Replaced link-to-be Some((1, 1))",
                "Added new/file.txt Some((1, 0))",
                "Mode run.sh Some((0, 0))",
                "Modified text.txt Some((2, 1))",
            ]
        );
        assert_eq!(changes.lines(), (5, 5));
        assert!(
            changes.diff.contains(" one\n-two\n+2\n three\n+four\n"),
            "{}",
            changes.diff
        );
        assert!(!worktree.is_unchanged(&lab.cancel).unwrap());
        assert_eq!(worktree.changed_paths(&lab.cancel).unwrap().len(), 7);
    }
}

#[test]
fn an_edit_of_the_same_size_right_after_the_copy_is_found() {
    for lab in projects() {
        let worktree = lab.create();
        let file = worktree.folder().join("same.txt");
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "ONE\n").unwrap();
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(time)
            .unwrap();
        assert_eq!(worktree.changed_paths(&lab.cancel).unwrap().len(), 1);
    }
}

#[test]
fn a_long_diff_is_cut_and_its_lines_are_counted() {
    let lab = Lab::plain();
    let worktree = lab.create();
    for number in 0..10 {
        write(
            worktree.folder(),
            &format!("{number}.txt"),
            &"a line of text\n".repeat(10_000),
        );
    }
    let changes = worktree.changes(&lab.cancel).unwrap();
    assert_eq!(changes.lines(), (100_000, 0));
    assert!(changes.diff.len() < 410_000, "{}", changes.diff.len());
    assert!(changes.diff.ends_with("[… diff cut …]\n"));
}

#[test]
fn commits_of_the_sub_agent_are_changes_too() {
    let [lab, _] = projects();
    let worktree = lab.create();
    write(worktree.folder(), "new.txt", "new\n");
    lab.git_in(worktree.folder(), &["add", "--all"]);
    lab.git_in(worktree.folder(), &["commit", "--quiet", "--message", "child"]);
    lab.git_in(worktree.folder(), &["reset", "--quiet", "--hard"]);
    assert_eq!(
        worktree.changed_paths(&lab.cancel).unwrap(),
        [std::path::Path::new("new.txt")]
    );
}
