//! Cost of knowing the state of a workspace, compared with `git status` on the same tree.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::tools::{compare, plant};
use super::{milliseconds, told};
use crate::lab::Lab;
use crate::process::{self, Memory};
use crate::report::{Figure, Target};

pub(super) fn measure(lab: &Lab) -> Result<Vec<Figure>> {
    let (folders, rounds) = if lab.quick { (20, 3) } else { (500, 21) };
    let tree = lab.path("repository");
    plant(&tree, folders)?;
    let files = folders * 100;
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
    let added = time(&mut git(&["add", "--all", "--force"]))?;
    time(&mut git(&["commit", "--quiet", "--message", "all"]))?;
    let data = lab.path("kept");
    fs::create_dir_all(&data)?;
    let survey = || {
        let mut survey = lab.own(&tree);
        survey.arg("survey").arg("--workspace").arg(&tree);
        survey.arg("--data").arg(&data);
        survey
    };
    let looked = time(&mut survey())?;
    let first = Figure {
        name: format!("first look at {files} files, contents kept (floor: git add)"),
        agent: told(looked),
        floor: told(added),
        value: looked / added,
        unit: "×",
        target: Target::None,
    };
    let name = format!("state of {files} files before a command (floor: git status)");
    let mut steady = compare(rounds, name, survey, || git(&["status", "--porcelain"]))?;
    steady.target = Target::AtMost(1.5);
    Ok(vec![first, steady])
}
