//! `cargo xtask fuzz`: runs the targets in `fuzz/`, each for a limited time.
//!
//! The fuzzer writes its corpus and its findings below the target folder and only reads the corpus in the
//! repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::child;
use crate::repo::Root;

/// Names of the targets in `fuzz/Cargo.toml`.
const TARGETS: &[&str] = &[
    "declared", "edit", "launcher", "patch", "paths", "shell", "stream",
];
const SECONDS: u32 = 60;
/// Time limit for one input.
const INPUT_SECONDS: u32 = 10;
const MEMORY_MB: u32 = 2048;

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    let plan = Plan::parse(arguments)?;
    if !child::succeeds(child::cargo(root).args(["fuzz", "--version"])) {
        bail!("cargo-fuzz is missing; install it with `cargo install cargo-fuzz --locked`");
    }
    let output = root.target_dir()?.join("fuzz");
    let mut failed = Vec::new();
    for target in &plan.targets {
        println!("\n==> {target}: {} s", plan.seconds);
        if let Err(error) = run(root, &output, target, plan.seconds) {
            // The fuzzer's own output has already explained the failure.
            eprintln!("{error}");
            failed.push(*target);
        }
    }
    if !failed.is_empty() {
        bail!("fuzzing failed: {}; see above", failed.join(", "));
    }
    println!("\nfuzz: {} targets, no failures", plan.targets.len());
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Plan {
    targets: Vec<&'static str>,
    seconds: u32,
}

impl Plan {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut plan = Self {
            targets: Vec::new(),
            seconds: SECONDS,
        };
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .with_context(|| format!("{option} needs a value"))
            };
            match option.as_str() {
                "--seconds" => {
                    let seconds = value()?;
                    let number = seconds.parse().ok().filter(|number| *number > 0);
                    plan.seconds =
                        number.with_context(|| format!("`{seconds}` is not a number of seconds"))?;
                }
                "--target" => {
                    let name = value()?;
                    let target = TARGETS.iter().find(|target| *target == name);
                    plan.targets.push(target.with_context(|| {
                        format!("unknown target `{name}`; the targets are {}", TARGETS.join(", "))
                    })?);
                }
                unknown => bail!("unknown option `{unknown}`; the options are --seconds and --target"),
            }
        }
        if plan.targets.is_empty() {
            plan.targets = TARGETS.to_vec();
        }
        Ok(plan)
    }
}

/// Fuzzes one target.
fn run(root: &Root, output: &Path, target: &str, seconds: u32) -> Result<()> {
    let learned = output.join("corpus").join(target);
    let found = output.join("artifacts").join(target);
    for folder in [&learned, &found] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let before = inputs(&found);
    let kept = ["corpus", "regressions"].map(|folder| root.join(&format!("fuzz/{folder}/{target}")));
    let words = root.join(&format!("fuzz/dictionaries/{target}.dict"));
    // The sanitizer is a nightly feature; this variable enables it on a stable compiler.
    let mut command = child::cargo(root);
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["fuzz", "run", "--fuzz-dir", "fuzz", "--target-dir"])
        .arg(output)
        .arg(target)
        .arg(&learned)
        .args(kept.iter().filter(|folder| folder.is_dir()))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB}"))
        .arg(format!("-artifact_prefix={}/", found.display()));
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    child::run(command.arg("-print_final_stats=1")).with_context(|| {
        let new: Vec<String> = inputs(&found)
            .difference(&before)
            .map(|path| format!("\n  {}", path.display()))
            .collect();
        match new.is_empty() {
            true => format!("{target} failed and left no input"),
            false => format!(
                "{target} failed with the input{}\nfix the bug and add the input to fuzz/regressions/{target}/",
                new.concat()
            ),
        }
    })
}

/// Lists the files of a folder. Empty if it cannot be read.
fn inputs(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(arguments: &[&str]) -> Result<Plan> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Plan::parse(&arguments)
    }

    #[test]
    fn targets_and_time_are_chosen() {
        let all = plan(&[]).expect("no options");
        assert_eq!((all.targets, all.seconds), (TARGETS.to_vec(), SECONDS));
        let one = plan(&["--seconds", "5", "--target", "shell"]).expect("two options");
        assert_eq!((one.targets, one.seconds), (vec!["shell"], 5));
        for wrong in [
            &["--seconds"][..],
            &["--seconds", "0"],
            &["--target", "no"],
            &["shell"],
        ] {
            assert!(plan(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_target_is_in_the_manifest() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("fuzz/Cargo.toml");
        let paths = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
        let names: Vec<&str> = paths.filter_map(|path| path.strip_suffix(".rs\"")).collect();
        assert_eq!(names, TARGETS);
    }
}
