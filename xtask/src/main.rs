//! Development tasks of Windlass: `cargo xtask <task>`.
//!
//! - `test` runs everything that must hold before a change is merged; it is what CI runs.
//! - `tidy` checks the shape of the code: the rules of `CONTRIBUTING.md`, as a program.
//! - `conformance` joins the requirements with the tests that show them and writes `docs/conformance.md`.
//! - `bench` builds the release binary and runs the benchmarks in `bench/`.
//! - `fuzz` runs the fuzz targets in `fuzz/`, each for a while.
//! - `pictures` draws the pictures of the terminal in `docs/`.
//!
//! It is a tool for people at a terminal, so it prints and it uses `anyhow`. It does not ship.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod child;
mod conformance;
mod fuzz;
mod pictures;
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
  conformance [--check]                                 write, or check, docs/conformance.md
  bench [arguments of the benchmarks]                   run the benchmarks in bench/
  fuzz [--seconds <n>] [--target <name>]...             run the fuzz targets in fuzz/
  pictures                                              draw the pictures of the terminal in docs/";

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
        "pictures" => pictures::command(&root),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        unknown => bail!("no task is called `{unknown}`\n\n{USAGE}"),
    }
}
