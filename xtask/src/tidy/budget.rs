//! Size of a crate as a whole. Small files do not keep a crate from growing; a budget does.

use super::finding::{Finding, Rule};
use super::manifests::Manifest;
use super::tree::{Tree, fits};

/// Maximum number of production lines per crate folder. The first pattern that fits applies.
///
/// The table only shrinks: no number rises and no entry is added. A crate that outgrows its budget is split.
const BUDGETS: &[(&str, usize)] = &[("crates/tui", 14_000), ("*", 12_000)];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.manifests
        .iter()
        .filter_map(|manifest| over_budget(tree, manifest))
        .collect()
}

fn over_budget(tree: &Tree, manifest: &Manifest) -> Option<Finding> {
    let (_, budget) = BUDGETS
        .iter()
        .find(|(pattern, _)| fits(pattern, &manifest.folder))?;
    let inside = format!("{}/", manifest.folder);
    let files = tree.production().filter(|file| file.path.starts_with(&inside));
    let lines: usize = files.map(|file| file.production_lines()).sum();
    (lines > *budget).then(|| {
        let message =
            format!("the crate has {lines} lines of production code, at most {budget}; split it by purpose");
        Finding::new(Rule::CrateBudget, &manifest.path, 1, message).sized(lines)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Findings for a crate of two files with this many lines of code together, as `path size`.
    fn findings(folder: &str, lines: usize) -> Vec<String> {
        // A text of many lines is fast to parse, and each of its lines counts.
        let code = |lines: usize| format!("const C: &str = \"{}\";\n", "\n".repeat(lines - 1));
        let inline = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", code(1_000), code(9_000));
        let files = [
            (
                format!("{folder}/Cargo.toml"),
                "[package]\nname = \"a\"\n".to_owned(),
            ),
            (format!("{folder}/src/lib.rs"), inline),
            (format!("{folder}/src/turn.rs"), code(lines - 1_000)),
            (format!("{folder}/src/turn_tests.rs"), code(9_000)),
            (format!("{folder}/tests/suite.rs"), code(9_000)),
            (format!("{folder}-extra/src/lib.rs"), code(9_000)),
        ];
        let files = files
            .each_ref()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        check(&Tree::of(&files))
            .iter()
            .map(|finding| format!("{} {}", finding.path, finding.size.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn a_crate_has_a_budget_of_production_lines() {
        assert_eq!(findings("crates/core", 12_000), [""; 0]);
        assert_eq!(findings("crates/core", 12_001), ["crates/core/Cargo.toml 12001"]);
    }

    #[test]
    fn the_terminal_may_be_larger() {
        assert_eq!(findings("crates/tui", 14_000), [""; 0]);
        assert_eq!(findings("crates/tui", 14_001), ["crates/tui/Cargo.toml 14001"]);
    }
}
