//! The pictures of the documents: the real binary on a terminal, with the simulated model, and the screen as
//! SVG.
//!
//! `cargo xtask pictures` builds the binary and runs this with the folder to write to. Every run gives the
//! same bytes: values that differ between runs, such as durations, are replaced.

mod scenes;
mod svg;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return failed("usage: pictures FOLDER");
    };
    let Some(binary) = binary() else {
        return failed("windlass is not built; `cargo xtask pictures` builds it first");
    };
    let pictures = [
        ("tui.svg", scenes::conversation(&binary)),
        ("tui-approval.svg", scenes::approval(&binary)),
    ];
    for (name, picture) in pictures {
        if let Err(error) = std::fs::write(folder.join(name), picture) {
            return failed(&format!("{name}: {error}"));
        }
    }
    ExitCode::SUCCESS
}

/// Finds the binary built with this example: cargo puts examples into a folder below it.
fn binary() -> Option<PathBuf> {
    let us = std::env::current_exe().ok()?;
    let binary = us.parent()?.parent()?.join("windlass");
    binary.exists().then_some(binary)
}

#[allow(clippy::print_stderr)]
fn failed(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}
