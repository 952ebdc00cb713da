//! `cargo xtask nightly`: the long forms of tests that take random inputs or kill the program at random moments.
//!
//! Every step runs, also after one failed.

use anyhow::{Result, bail};

use crate::child;
use crate::fuzz;
use crate::repo::Root;

/// Seconds for each fuzz target.
const FUZZ_SECONDS: &str = "600";

/// Tests of one package, and the variables that make them long.
struct Long {
    name: &'static str,
    package: &'static str,
    /// Parts of test names.
    tests: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

const LONG: &[Long] = &[
    Long {
        name: "commands that were judged to read change nothing",
        package: "windlass-sandbox",
        tests: &["reading::"],
        variables: &[("WINDLASS_READ_COMMANDS", "5000")],
    },
    Long {
        name: "commands run nothing that was not predicted",
        package: "windlass-sandbox",
        tests: &["whatever_runs_was_predicted"],
        variables: &[("WINDLASS_SHELL_CASES", "5000")],
    },
    Long {
        name: "kills at random moments",
        package: "windlass",
        tests: &["crash::", "a_killed_undo_is_finished"],
        variables: &[("WINDLASS_CRASH_RUNS", "2000"), ("WINDLASS_UNDO_KILLS", "200")],
    },
    Long {
        name: "kills during scheduled jobs",
        package: "windlass",
        tests: &["a_killed_daemon_runs_nothing_twice"],
        variables: &[("WINDLASS_CRASH_RUNS", "1000")],
    },
    Long {
        name: "trees of agents, killed at random moments",
        package: "windlass",
        tests: &["agent_crashes::"],
        variables: &[("WINDLASS_CRASH_RUNS", "1000")],
    },
    Long {
        name: "random sessions, replayed",
        package: "windlass",
        tests: &["generated_sessions_come_out_the_same"],
        variables: &[("WINDLASS_REPLAY_SESSIONS", "1000")],
    },
    Long {
        name: "random histories, compacted",
        package: "windlass-core",
        tests: &["compact::"],
        variables: &[("PROPTEST_CASES", "20000")],
    },
];

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    if let Some(unknown) = arguments.first() {
        bail!("unknown option `{unknown}`; `nightly` has none");
    }
    let mut failed = Vec::new();
    for Long {
        name,
        package,
        tests,
        variables,
    } in LONG
    {
        println!("\n==> {name}");
        let mut command = child::cargo(root);
        command.args(["test", "--package", package, "--"]).args(*tests);
        if let Err(error) = child::run(command.envs(variables.iter().copied())) {
            eprintln!("{error}");
            failed.push(*name);
        }
    }
    if let Err(error) = fuzz::command(root, &["--seconds".to_owned(), FUZZ_SECONDS.to_owned()]) {
        eprintln!("{error}");
        failed.push("fuzzing");
    }
    if !failed.is_empty() {
        bail!("nightly: {} failed; see above", failed.join(", "));
    }
    println!("\nnightly: no failures");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every variable is read by a test, and every name is the name of one.
    #[test]
    fn the_names_are_current() {
        let root = Root::find().expect("the workspace");
        let mut texts = String::new();
        for folder in [
            "crates/cli/tests/suite",
            "crates/sandbox/tests",
            "crates/sandbox/tests/suite",
            "crates/core/src/compact",
        ] {
            for entry in std::fs::read_dir(root.join(folder)).expect("a folder").flatten() {
                texts.push_str(&entry.file_name().to_string_lossy().replace(".rs", "::"));
                texts.push_str(&std::fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
        let variables = LONG.iter().flat_map(|long| long.variables).map(|(name, _)| name);
        let tests = LONG.iter().flat_map(|long| long.tests);
        for name in tests.filter(|name| **name != "compact::").chain(variables) {
            assert!(texts.contains(name), "{name}");
        }
    }
}
