//! `cargo xtask tidy`: checks the shape of the code.
//!
//! Each check is a function from the [`Tree`] to its [`Finding`]s and touches nothing else, so its tests run
//! on small made-up trees. Findings listed in `xtask/tidy-exceptions.toml` are dropped. An entry without a
//! matching finding is a finding too, so the list only shrinks.

mod budget;
mod clock;
mod doc_comments;
mod drawing;
mod edges;
mod exceptions;
mod finding;
mod manifests;
mod names;
mod nesting;
mod platform;
mod ports;
mod public_names;
mod shape;
mod source;
mod test_code;
mod text;
mod tree;
mod web;
mod weight;

use anyhow::{Result, bail};

use self::finding::Finding;
use self::tree::Tree;
use crate::repo::{self, Root};

/// All checks. A new check is a module here and a rule in `finding.rs`.
const CHECKS: &[fn(&Tree) -> Vec<Finding>] = &[
    edges::check,
    drawing::check,
    manifests::check,
    budget::check,
    shape::check,
    names::check,
    public_names::check,
    doc_comments::check,
    source::check,
    ports::check,
    platform::check,
    clock::check,
    test_code::check,
    text::check,
    web::check,
];

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    let notes = match arguments {
        [] => Notes::Hide,
        [verbose] if verbose == "--verbose" => Notes::Show,
        [write] if write == "--write-architecture" => return drawing::write(root),
        _ => bail!("usage: cargo xtask tidy [--verbose | --write-architecture]"),
    };
    run(root, notes)
}

/// Controls notes about code that is allowed but close to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notes {
    Show,
    Hide,
}

/// Runs all checks and prints their findings. Fails if there are any.
pub(crate) fn run(root: &Root, notes: Notes) -> Result<()> {
    let (tree, mut findings) = Tree::read(repo::text_files(root)?);
    findings.extend(CHECKS.iter().flat_map(|check| check(&tree)));
    findings.extend(weight::check(root)?);
    let mut findings = exceptions::apply(&tree, findings);
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    if notes == Notes::Show {
        for note in shape::long_files(&tree) {
            println!("note: {note}");
        }
    }
    if !findings.is_empty() {
        bail!(
            "tidy found {}; CONTRIBUTING.md explains the rules",
            counted(findings.len())
        );
    }
    println!("tidy: checked {} files, no violations", tree.files.len());
    Ok(())
}

fn counted(findings: usize) -> String {
    if findings == 1 {
        "1 violation".to_owned()
    } else {
        format!("{findings} violations")
    }
}
