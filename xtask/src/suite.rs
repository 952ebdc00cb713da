//! `cargo xtask test`: runs every check and test, the fastest first.

mod browser;
pub(crate) mod cluster;
mod mcp_client;
mod mcp_serve;
mod nats;
mod node;
pub(crate) mod postgres;
mod prerequisites;
mod retry;
pub(crate) mod sdk;
mod voice;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::repo::Root;
use crate::tidy::{self, Notes};
use crate::{child, conformance};

/// One step: its name for `--only` and `--skip`, a description, and its function.
struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Root) -> Result<Ended>,
}

/// End of a step that did not fail.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    /// Tests of the step failed and passed when they ran once more, alone.
    PassedAlone(Vec<String>),
    /// Some tests could not run on this machine: their names, with the reasons.
    Partly {
        alone: Vec<String>,
        left_out: Vec<String>,
    },
    /// The step could not run on this machine, for this reason.
    LeftOut(String),
}

impl Ended {
    /// The end of tests, with those that passed only alone.
    fn of(alone: Vec<String>) -> Self {
        match alone.is_empty() {
            true => Self::Passed,
            false => Self::PassedAlone(alone),
        }
    }
}

/// Builds the binary with the features it has in the tests, so that nothing is compiled twice.
const BUILD: [&str; 3] = ["build", "--workspace", "--all-targets"];

/// All steps. They call cargo with the same flags, so that each crate is compiled once per kind of build.
const STEPS: &[Step] = &[
    Step {
        name: "prerequisites",
        what: "git, Python and the components of the toolchain",
        run: |root| passed(prerequisites::provide(root)),
    },
    Step {
        name: "fmt",
        what: "cargo fmt --all --check",
        run: |root| passed(cargo(root, &["fmt", "--all", "--check"])),
    },
    Step {
        name: "clippy",
        what: "cargo clippy --workspace --all-targets -- -D warnings",
        run: |root| passed(clippy(root)),
    },
    Step {
        name: "tidy",
        what: "the shape of the code",
        run: |root| passed(tidy::run(root, Notes::Hide)),
    },
    Step {
        name: "conformance",
        what: "every requirement that is done has a test",
        run: |root| passed(conformance::check_page(root)),
    },
    Step {
        name: "test",
        what: "cargo test --workspace",
        run: |root| retry::test(root).map(Ended::of),
    },
    Step {
        name: "browser",
        what: "the web page in Chromium",
        run: browser::test,
    },
    Step {
        name: "postgres",
        what: "the store, and the binary with it, on a real Postgres",
        run: postgres::test,
    },
    Step {
        name: "nats",
        what: "servers of a cluster with NATS between them, on a real Postgres",
        run: nats::test,
    },
    Step {
        name: "cluster",
        what: "three servers over a real Postgres, and faults: the short form of `cargo xtask cluster`",
        run: cluster::test,
    },
    Step {
        name: "portable",
        what: "the crates with a portable backend, and the binary with it",
        run: |root| passed(portable(root)),
    },
    Step {
        name: "sdk",
        what: "the official SDKs against the binary",
        run: |root| passed(sdk::test(root)),
    },
    Step {
        name: "mcp-serve",
        what: "the inspector and the conformance suite against `windlass mcp serve`",
        run: |root| passed(mcp_serve::test(root)),
    },
    Step {
        name: "mcp-client",
        what: "the MCP client against the conformance suite and well-known servers",
        run: |root| passed(mcp_client::test(root)),
    },
    Step {
        name: "voice",
        what: "a synthesized voice and a real recognizer against the binary",
        run: |root| passed(voice::test(root)),
    },
    Step {
        name: "docs",
        what: "cargo doc --workspace --no-deps, without warnings",
        run: |root| passed(docs(root)),
    },
];

fn passed(result: Result<()>) -> Result<Ended> {
    result.map(|()| Ended::Passed)
}

/// Selects the portable backends, also on Linux.
const PORTABLE: &str = "--cfg windlass_portable";

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    match Choice::parse(arguments)? {
        Choice::List => {
            for Step { name, what, .. } in STEPS {
                println!("{name:<14} {what}");
            }
            Ok(())
        }
        Choice::Run(steps) => run(root, &steps),
    }
}

enum Choice {
    List,
    Run(Vec<&'static Step>),
}

impl Choice {
    fn parse(arguments: &[String]) -> Result<Self> {
        let (mut only, mut skip) = (Vec::new(), Vec::new());
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let names = match option.as_str() {
                "--list" => return Ok(Self::List),
                "--only" => &mut only,
                "--skip" => &mut skip,
                unknown => bail!("unknown option `{unknown}`; the options are --only, --skip and --list"),
            };
            let name = arguments
                .next()
                .with_context(|| format!("{option} needs the name of a step"))?;
            if !STEPS.iter().any(|step| step.name == name) {
                bail!("unknown step `{name}`; `cargo xtask test --list` shows the steps");
            }
            names.push(name.as_str());
        }
        let chosen =
            |step: &&Step| (only.is_empty() || only.contains(&step.name)) && !skip.contains(&step.name);
        Ok(Self::Run(STEPS.iter().filter(chosen).collect()))
    }
}

/// Runs the steps until one fails, and prints the time of each, the steps that were left out, and the tests that passed only
/// alone.
fn run(root: &Root, steps: &[&Step]) -> Result<()> {
    let mut times = Vec::new();
    let mut notes = Vec::new();
    let mut failure = None;
    for Step { name, what, run } in steps {
        println!("\n==> {name}: {what}");
        let start = Instant::now();
        let result = run(root);
        let time = start.elapsed();
        let verdict = match &result {
            Ok(Ended::Passed | Ended::PassedAlone(_)) => "ok",
            Ok(Ended::Partly { .. }) => "partly",
            Ok(Ended::LeftOut(_)) => "left out",
            Err(_) => "FAILED",
        };
        println!("    {name}: {verdict} after {:.1} s", time.as_secs_f64());
        times.push((*name, verdict, time));
        match result {
            Ok(Ended::Passed) => {}
            Ok(Ended::PassedAlone(alone)) => notes.extend(passed_alone(&alone)),
            Ok(Ended::Partly { alone, left_out }) => {
                notes.extend(passed_alone(&alone));
                notes.extend(left_out.iter().map(|why| format!("left out: {name}: {why}")));
            }
            Ok(Ended::LeftOut(why)) => notes.push(format!("left out: {name}: {why}")),
            Err(error) => {
                failure = Some(error.context(format!("step `{name}` failed")));
                break;
            }
        }
    }
    println!("\n{}", summary(&times));
    notes.iter().for_each(|line| println!("{line}"));
    failure.map_or(Ok(()), Err)
}

fn passed_alone(tests: &[String]) -> impl Iterator<Item = String> {
    tests
        .iter()
        .map(|test| format!("failed once, passed alone: {test}"))
}

fn summary(times: &[(&str, &str, Duration)]) -> String {
    let total = times.iter().map(|(_, _, time)| *time).sum::<Duration>();
    let has = |wanted: &str| times.iter().any(|(_, verdict, _)| *verdict == wanted);
    let verdict = match (has("FAILED"), has("left out") || has("partly")) {
        (true, _) => "FAILED",
        (false, true) => "partly",
        (false, false) => "ok",
    };
    let rows = times.iter().copied().chain([("total", verdict, total)]);
    let lines =
        rows.map(|(name, verdict, time)| format!("{name:<14} {verdict:<8} {:>8.1} s", time.as_secs_f64()));
    lines.collect::<Vec<_>>().join("\n")
}

/// The tests with a browser or a database server are not among all targets, because not every machine can run them.
fn clippy(root: &Root) -> Result<()> {
    for targets in [
        &["--workspace", "--all-targets"][..],
        &[
            "--workspace",
            "--test",
            "browser",
            "--test",
            "postgres",
            "--test",
            "nats",
            "--test",
            "cluster",
        ],
    ] {
        cargo(root, &[&["clippy"], targets, &["--", "-D", "warnings"]].concat())?;
    }
    Ok(())
}

fn cargo(root: &Root, arguments: &[&str]) -> Result<()> {
    child::run(child::cargo(root).args(arguments))
}

/// Tests the crates with a backend of their own as other systems get them, without Linux, and checks that the
/// binary compiles with it.
///
/// The cfg is part of every crate's flags, so this build has its own folder and leaves the others alone.
fn portable(root: &Root) -> Result<()> {
    for arguments in [
        &[
            "test",
            "--package",
            "windlass-sandbox",
            "--package",
            "windlass-checkpoint",
            "--package",
            "windlass-store",
        ][..],
        &["check", "--package", "windlass"],
    ] {
        child::run(
            child::cargo(root)
                .args(arguments)
                .env("RUSTFLAGS", PORTABLE)
                .env("RUSTDOCFLAGS", PORTABLE)
                .env("CARGO_TARGET_DIR", root.path().join("target/portable")),
        )?;
    }
    Ok(())
}

fn docs(root: &Root) -> Result<()> {
    child::run(
        child::cargo(root)
            .args(["doc", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(arguments: &[&str]) -> Result<Vec<&'static str>> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        match Choice::parse(&arguments)? {
            Choice::List => Ok(vec!["list"]),
            Choice::Run(steps) => Ok(steps.iter().map(|step| step.name).collect()),
        }
    }

    #[test]
    fn steps_are_chosen_by_name() {
        let all = [
            "prerequisites",
            "fmt",
            "clippy",
            "tidy",
            "conformance",
            "test",
            "browser",
            "postgres",
            "nats",
            "cluster",
            "portable",
            "sdk",
            "mcp-serve",
            "mcp-client",
            "voice",
            "docs",
        ];
        assert_eq!(chosen(&[]).expect("no options"), all);
        assert_eq!(
            chosen(&["--only", "tidy", "--only", "fmt"]).expect("two steps"),
            ["fmt", "tidy"]
        );
        assert_eq!(
            chosen(&["--skip", "sdk"]).expect("all but one").len(),
            all.len() - 1
        );
        assert_eq!(chosen(&["--list"]).expect("the list"), ["list"]);
    }

    #[test]
    fn a_wrong_option_is_an_error() {
        for arguments in [&["--only"][..], &["--only", "tests"], &["tidy"]] {
            assert!(chosen(arguments).is_err(), "{arguments:?}");
        }
    }

    #[test]
    fn the_summary_adds_up() {
        let times = [
            ("fmt", "ok", Duration::from_millis(1500)),
            ("tidy", "FAILED", Duration::from_millis(600)),
        ];
        let expected = "fmt            ok            1.5 s\ntidy           FAILED        0.6 s\n\
                        total          FAILED        2.1 s";
        assert_eq!(summary(&times), expected);
    }

    #[test]
    fn a_step_that_was_left_out_is_not_passed_over() {
        let times = [
            ("fmt", "ok", Duration::from_millis(1500)),
            ("browser", "left out", Duration::ZERO),
        ];
        let expected = "fmt            ok            1.5 s\nbrowser        left out      0.0 s\n\
                        total          partly        1.5 s";
        assert_eq!(summary(&times), expected);
    }
}
