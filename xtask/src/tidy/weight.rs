//! Number of crates in the binary. Each crate costs compile time and is another author to trust.

use std::collections::BTreeSet;

use anyhow::Result;

use super::finding::{Finding, Rule};
use crate::child;
use crate::repo::Root;

const LIMIT: usize = 460;

pub(crate) fn check(root: &Root) -> Result<Vec<Finding>> {
    let tree = ["tree", "-p", "windlass", "-e", "normal,build", "--prefix", "none"];
    let tree = child::output(child::cargo(root).args(tree))?;
    Ok(judge(count(&tree)))
}

/// Counts distinct crates. Cargo prints a repeated crate with a star and without its dependencies.
fn count(tree: &str) -> usize {
    let lines = tree.lines().map(|line| line.strip_suffix(" (*)").unwrap_or(line));
    lines
        .filter(|line| !line.is_empty())
        .collect::<BTreeSet<_>>()
        .len()
}

fn judge(crates: usize) -> Vec<Finding> {
    if crates < LIMIT {
        return Vec::new();
    }
    let message = format!("the binary is built from {crates} crates; stay below {LIMIT}");
    vec![Finding::new(Rule::DependencyCount, "Cargo.lock", 1, message).sized(crates)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_crates_count_once() {
        assert_eq!(count("a v1\nb v1\na v1 (*)\n\nb v2\n"), 3);
    }

    #[test]
    fn the_limit_is_not_allowed_any_more() {
        assert_eq!(judge(LIMIT - 1), []);
        assert_eq!(judge(LIMIT).len(), 1);
    }
}
