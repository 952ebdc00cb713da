//! Commands that the analysis takes for reads, run for real.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windlass_sandbox::{Sandbox, SandboxPolicy, child_environment, reading_environment};
use windlass_shell::fuzzing::read_commands;

use crate::sandbox::{helper, run_with};

/// Number of commands that are run, unless `WINDLASS_READ_COMMANDS` names another.
const COMMANDS: usize = 300;
const FILES: &[&str] = &["a.txt", "b.txt", "sub", "sub/c.txt", "-n"];

/// Everything in a folder that a command could change: type, mode, time of the last change, and content.
fn state(folder: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let facts = fs::symlink_metadata(&path).expect("metadata");
        let mut content = Vec::new();
        if facts.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
        } else if facts.is_file() {
            content = fs::read(&path).expect("a file");
        }
        found.insert(path, (facts.mode(), facts.mtime(), facts.mtime_nsec(), content));
    }
    found
}

/// SAFE-5: a command that is classed as a read changes no file, mode or time, though the sandbox would let it.
#[test]
fn reads_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().join("work");
    fs::create_dir_all(work.join("sub")).expect("folders");
    for name in ["a.txt", "b.txt", "sub/c.txt", "-n"] {
        fs::write(work.join(name), "a 1\nb 2\nc/d 3\n").expect("a file");
    }
    let policy = SandboxPolicy::for_workspace(&work, folder.path(), &[]);
    let sandbox = Sandbox::with_helper(policy, &helper()).expect("a sandbox");
    let mut env = child_environment(std::env::vars(), &work, "s1");
    env.insert("HOME".to_owned(), work.display().to_string());
    let run = |command: &str, env: &BTreeMap<String, String>| {
        let words = ["-k", "1", "2", "/bin/bash", "-c", command];
        run_with(&sandbox, "/usr/bin/timeout", &words, &work, env);
    };
    run(
        "git init -q . && git add . && git -c user.name=a -c user.email=b commit -qm one && git branch list",
        &env,
    );
    reading_environment(&mut env);
    let mut before = state(&work);
    assert!(
        before.contains_key(&work.join(".git/refs/heads/list")),
        "git is missing"
    );
    let mut changed = Vec::new();
    let count =
        std::env::var("WINDLASS_READ_COMMANDS").map_or(COMMANDS, |value| value.parse().expect("a number"));
    let commands = read_commands(1, count, FILES);
    assert_eq!(commands.len(), count, "too few commands");
    for command in commands {
        run(&command, &env);
        let after = state(&work);
        if after != before {
            let differing = after.iter().filter(|(path, now)| before.get(*path) != Some(*now));
            let paths: Vec<_> = differing.map(|(path, _)| path.clone()).collect();
            changed.push(format!("{command}\n  {paths:?}"));
            before = after;
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}
