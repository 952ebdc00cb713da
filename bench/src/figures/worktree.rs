//! Creating the worktree of a sub-agent, compared with `git worktree add` and copying the changed files.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::tools::plant;
use super::{median, milliseconds, told};
use crate::clock::now;
use crate::lab::Lab;
use crate::process::{self, Memory};
use crate::report::{Figure, Target};

/// Changed files.
const CHANGED: usize = 50;

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let (folders, rounds) = if lab.quick { (100, 3) } else { (100, 15) };
    let (tree, copy, state) = (
        lab.path("worktree-source"),
        lab.path("worktree-copy"),
        lab.path("worktrees"),
    );
    plant(&tree, folders)?;
    let git = |arguments: &[&str]| {
        let mut git = lab.other(&tree, "git");
        git.args(["-c", "user.name=b", "-c", "user.email=b@b", "-c", "gc.auto=0"]);
        git.args(arguments);
        git
    };
    let time = |command: &mut Command| -> Result<f64> {
        let cost = process::run(command, Memory::Ignored)?;
        Ok(milliseconds(cost.begun, cost.ended))
    };
    time(&mut git(&["init", "--quiet"]))?;
    time(&mut git(&["add", "--all", "--force"]))?;
    time(&mut git(&["commit", "--quiet", "--message", "all"]))?;
    let changed: Vec<String> = (0..CHANGED)
        .map(|number| format!("part0/module{number}/file{number}_5.rs"))
        .collect();
    for path in &changed {
        fs::write(tree.join(path), "fn changed() {}\n")?;
    }
    let place = copy.display().to_string();
    let floor = || -> Result<f64> {
        let added = time(&mut git(&["worktree", "add", "--quiet", "-b", "floor", &place]))?;
        let begun = now();
        for path in &changed {
            fs::copy(tree.join(path), copy.join(path))?;
        }
        let copied = milliseconds(begun, now());
        time(&mut git(&["worktree", "remove", "--force", &place]))?;
        time(&mut git(&["branch", "--quiet", "-D", "floor"]))?;
        Ok(added + copied)
    };
    let own = |remove: bool| {
        let mut own = lab.own(&tree);
        own.args(["worktree", "--name", "child"]);
        own.arg("--source").arg(&tree).arg("--state").arg(&state);
        if remove {
            own.arg("--remove");
        }
        own
    };
    let agent = || -> Result<f64> {
        let created = time(&mut own(false))?;
        time(&mut own(true))?;
        Ok(created)
    };
    // The first pass over a tree measures the disk, not us.
    floor()?;
    agent()?;
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        pairs.push((floor()?, agent()?));
    }
    fs::remove_dir_all(&tree)?;
    Ok(vec![Figure {
        name: format!(
            "worktree of {} files, {CHANGED} changed (floor: git worktree add, copying those)",
            folders * 100
        ),
        agent: told(median(pairs.iter().map(|pair| pair.1).collect())),
        floor: told(median(pairs.iter().map(|pair| pair.0).collect())),
        value: median(pairs.iter().map(|(floor, agent)| agent / floor).collect()),
        unit: "×",
        target: Target::AtMost(1.2),
    }])
}
