//! Commands that only read, and commands that look like it.

use super::*;

/// Asserts the category of every command: `r`ead, `w`rite, `a`dmin, `x` for refused; or several of them.
pub(super) fn all(expected: &str, commands: &[&str]) {
    let mut wrong = Vec::new();
    for command in commands {
        let analysis = analyse(command, &Blocklist::default());
        let verdict = match (&analysis.refusal, analysis.category) {
            (Some(_), _) => 'x',
            (None, Category::Read) => 'r',
            (None, Category::Write) => 'w',
            (None, Category::Admin) => 'a',
        };
        if !expected.contains(verdict) {
            let message = analysis.refusal.map(|refusal| refusal.message);
            wrong.push(format!("{verdict} instead of {expected}: {command}  {message:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Asserts the category of every line of a table.
pub(super) fn lines(expected: &str, table: &str) {
    all(expected, &table.lines().collect::<Vec<_>>());
}

/// SAFE-5: what developers type to look around is a read, so that nobody is asked about it.
#[test]
fn ordinary_reading_stays_a_read() {
    lines("r", include_str!("cases/ordinary_reading_stays_a_read.txt"));
}

/// SAFE-5: a shortened or unknown option of a program that reads is not a read.
#[test]
fn unknown_options_are_not_reads() {
    lines("wax", include_str!("cases/unknown_options_are_not_reads.txt"));
}

/// SAFE-5: scripts are read wherever they are attached.
#[test]
fn scripts_with_effects_are_not_reads() {
    lines(
        "wax",
        include_str!("cases/scripts_with_effects_are_not_reads.txt"),
    );
    all(
        "wax",
        &["sed '{w x\n}' f", "sed 'a\\\nfoo\nw x' f", "sed '#n\nw x' f"],
    );
}

/// SAFE-5: built-ins that run commands, or change how later ones run, are not reads.
#[test]
fn builtins_that_run_are_not_reads() {
    lines("wax", include_str!("cases/builtins_that_run_are_not_reads.txt"));
}

/// SAFE-5: the user's terminals and other devices are neither read nor written in a read.
#[test]
fn devices_are_not_files() {
    lines("ax", include_str!("cases/devices_are_not_files.txt"));
}

/// SAFE-5: forms of git that write, run, or take settings from the command line.
#[test]
fn git_forms_that_are_not_reads() {
    lines("wax", include_str!("cases/git_forms_that_are_not_reads.txt"));
}

/// SAFE-5: `git -C folder` is judged like `cd folder`.
#[test]
fn git_in_a_folder_is_judged_like_cd() {
    for folder in [
        "src",
        "./src/a",
        "src/",
        "..",
        "/etc",
        "~",
        "../x",
        "\"$x\"",
        "a/../../b",
    ] {
        let git = analyse(
            &format!("touch a && git -C {folder} add x"),
            &Blocklist::default(),
        );
        let cd = analyse(
            &format!("touch a && (cd {folder} && git add x)"),
            &Blocklist::default(),
        );
        assert_eq!(git.category, cd.category, "{folder}");
    }
    all(
        "w",
        &[
            "touch a && git -C src status",
            "git -C src add x",
            "git -C src commit -m x",
            "git -C . add x",
            "git -C src -C sub add x",
            "cd src && touch a",
            "env -C src touch a",
        ],
    );
    all(
        "a",
        &[
            "git -C .. add x",
            "touch a && git -C /etc status",
            "git -C src -C ../.. add x",
            "env -C / touch a",
        ],
    );
}

/// SAFE-5: the folders whose repositories a command reads are known, or the command is not a read.
#[test]
fn repositories_are_known() {
    let cases: &[(&str, &[&str])] = &[
        ("git status", &[""]),
        ("ls", &[]),
        ("git add x", &[]),
        ("cd sub; git log", &["", "sub"]),
        ("git -C a diff && git -C /b log", &["", "/b", "a"]),
        ("cd a && git -C b log", &["", "a", "a/b", "b"]),
        ("bash -c 'cd a; git log'", &["", "a"]),
    ];
    for (command, expected) in cases {
        let analysis = analyse(command, &Blocklist::default());
        for folder in *expected {
            let found = analysis.repositories();
            assert!(
                found.iter().any(|one| one == folder),
                "{command}: no {folder:?} in {found:?}"
            );
        }
        assert_eq!(
            analysis.repositories().is_empty(),
            expected.is_empty(),
            "{command}"
        );
    }
    all(
        "w",
        &[
            "cd \"$x\" && git log",
            "cd - && git log",
            "popd; git status",
            "cd ~ && git log",
            "cd a*; git log",
        ],
    );
}
