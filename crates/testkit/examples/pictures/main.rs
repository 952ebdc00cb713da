//! The pictures of the documents: the real binary on a terminal, the simulated model behind it, and the screen as SVG.
//!
//! `cargo xtask pictures` builds the binary and runs this with the folder to write to. Every run gives the same bytes: what
//! differs from one to the next, such as how long a call took, is evened out.

mod scenes;
mod svg;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return failed("usage: pictures FOLDER");
    };
    let Some(binary) = binary() else {
        return failed("there is no windlass here: `cargo xtask pictures` builds it first");
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

/// The binary that was built with us: cargo puts examples into a folder below it.
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
