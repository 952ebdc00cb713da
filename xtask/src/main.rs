//! Development tasks of Windlass: `cargo xtask <task>`.
//!
//! - `test` runs every check that must pass before a change is merged. CI runs it too.
//! - `tidy` checks the shape of the code against the rules in `CONTRIBUTING.md`.
//! - `conformance` joins the requirements with the tests that prove them and writes `docs/conformance.md`.
//! - `bench` builds the release binary and runs the benchmarks in `bench/`.
//! - `fuzz` runs the fuzz targets in `fuzz/`, each for a limited time.
//! - `nightly` runs the tests with random inputs for longer, and the fuzz targets for ten minutes each.
//! - `cluster` runs servers of a cluster through faults.
//! - `real` runs `windlass exec` against a small real model.
//! - `order` lists the functions that a start runs, for the linker.
//! - `pictures` renders the terminal pictures in `docs/`.
//!
//! The tasks are for people at a terminal, so they print and use `anyhow`. This package does not ship.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod child;
mod conformance;
mod fuzz;
mod nightly;
mod order;
mod pictures;
mod real;
mod repo;
mod rust_file;
mod suite;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::repo::Root;

const USAGE: &str = "\
cargo xtask <task>

  test [--only <step>]... [--skip <step>]... [--list]   run all checks and tests
  tidy [--verbose]                                      check the shape of the code
  tidy --write-architecture                             write the list of crates in ARCHITECTURE.md
  conformance [--check]                                 write, or check, docs/conformance.md
  bench [arguments of the benchmarks]                   run the benchmarks in bench/
  fuzz [--seconds <n>] [--target <name>]...             run the fuzz targets in fuzz/
  nightly                                               run the long tests, and fuzz for ten minutes each
  cluster [--long | --seconds <n>]                       run servers of a cluster through faults, on a real Postgres
  real                                                  run `windlass exec` against a small real model
  order                                                 list the functions that a start runs, for the linker
  pictures                                              render the terminal pictures in docs/";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let Some((task, rest)) = arguments.split_first() else {
        bail!("no task given\n\n{USAGE}");
    };
    let root = Root::find()?;
    match task.as_str() {
        "test" => suite::command(&root, rest),
        "tidy" => tidy::command(&root, rest),
        "conformance" => conformance::command(&root, rest),
        "bench" => bench::command(&root, rest),
        "fuzz" => fuzz::command(&root, rest),
        "nightly" => nightly::command(&root, rest),
        "cluster" => suite::cluster::command(&root, rest),
        "real" => real::command(&root),
        "order" => order::command(&root),
        "pictures" => pictures::command(&root),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => bail!("unknown task `{unknown}`\n\n{USAGE}"),
    }
}
