//! `cargo xtask tidy`: what the code promises about its shape, checked.
//!
//! Each check is a function from the [`Tree`] to its [`Finding`]s and touches nothing else, so the tests
//! feed it small made-up trees. Findings that are listed in `xtask/tidy-exceptions.toml` are dropped; an
//! entry nobody needs any more is a finding itself, so the list only shrinks.

mod edges;
mod exceptions;
mod finding;
mod manifests;
mod names;
mod nesting;
mod ports;
mod shape;
mod source;
mod test_code;
mod text;
mod tree;
mod weight;

use anyhow::{Result, bail};

use self::finding::Finding;
use self::tree::Tree;
use crate::repo::{self, Root};

/// All checks. A new one is a module here and a rule in `finding.rs`.
const CHECKS: &[fn(&Tree) -> Vec<Finding>] = &[
    edges::check,
    manifests::check,
    shape::check,
    names::check,
    source::check,
    ports::check,
    test_code::check,
    text::check,
];

pub(crate) fn command(root: &Root, arguments: &[String]) -> Result<()> {
    let notes = match arguments {
        [] => Notes::Hide,
        [verbose] if verbose == "--verbose" => Notes::Show,
        _ => bail!("usage: cargo xtask tidy [--verbose]"),
    };
    run(root, notes)
}

/// Whether to mention what is allowed and still worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notes {
    Show,
    Hide,
}

/// Runs all checks and prints what they find. Any finding is a failure.
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
            "tidy found {}: see CONTRIBUTING.md for the rules",
            counted(findings.len())
        );
    }
    println!("tidy: {} files, nothing to say", tree.files.len());
    Ok(())
}

fn counted(findings: usize) -> String {
    if findings == 1 {
        "1 violation".to_owned()
    } else {
        format!("{findings} violations")
    }
}
