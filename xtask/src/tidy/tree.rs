//! The files of the repository, parsed once for all checks.

use super::finding::{Finding, Rule};
use super::manifests::Manifest;
use crate::repo::TextFile;
use crate::rust_file::RustFile;

pub(crate) struct Tree {
    pub(crate) files: Vec<TextFile>,
    pub(crate) rust: Vec<RustFile>,
    /// Manifests of our packages, without the workspace's own manifest.
    pub(crate) manifests: Vec<Manifest>,
}

impl Tree {
    /// Parses the files. Returns a finding for each file that does not parse.
    pub(crate) fn read(files: Vec<TextFile>) -> (Self, Vec<Finding>) {
        let mut tree = Self {
            files: Vec::new(),
            rust: Vec::new(),
            manifests: Vec::new(),
        };
        let mut findings = Vec::new();
        for file in files {
            if file.path.ends_with(".rs") {
                match RustFile::parse(&file.path, &file.text) {
                    Ok(rust) => tree.rust.push(rust),
                    Err(error) => findings.push(unreadable(&file, error.span().start().line, &error)),
                }
            } else if file.path.ends_with("/Cargo.toml") {
                match Manifest::parse(&file.path, &file.text) {
                    Ok(manifest) => tree.manifests.push(manifest),
                    Err(error) => findings.push(unreadable(&file, 1, &error)),
                }
            }
            tree.files.push(file);
        }
        (tree, findings)
    }

    pub(crate) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Files with production code, possibly next to tests.
    pub(crate) fn production(&self) -> impl Iterator<Item = &RustFile> {
        self.rust.iter().filter(|file| !file.is_test())
    }

    /// Builds a made-up repository for a test of a check.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| TextFile {
            path: (*path).into(),
            text: (*text).into(),
        });
        let (tree, findings) = Self::read(files.collect());
        assert_eq!(findings, [], "the fixture can be parsed");
        tree
    }
}

fn unreadable(file: &TextFile, line: usize, error: &dyn std::fmt::Display) -> Finding {
    let message = format!("does not parse ({error}); fix the syntax");
    Finding::new(Rule::Syntax, &file.path, line, message)
}

/// Returns true if a path matches a pattern in which `*` matches anything, including slashes.
pub(crate) fn fits(pattern: &str, path: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == path;
    };
    let Some(path) = path.strip_prefix(start) else {
        return false;
    };
    let ends = path.char_indices().map(|(index, _)| index).chain([path.len()]);
    ends.into_iter().any(|index| fits(rest, path.split_at(index).1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(fits("crates/tools/src/bash*.rs", "crates/tools/src/bash.rs"));
        assert!(fits(
            "crates/tools/src/bash*.rs",
            "crates/tools/src/bash/output.rs"
        ));
        assert!(fits("crates/cli/*", "crates/cli/src/main.rs"));
        assert!(!fits("crates/cli/*", "crates/core/src/lib.rs"));
        assert!(!fits(
            "crates/core/src/clock.rs",
            "crates/core/src/clock_tests.rs"
        ));
    }

    #[test]
    fn what_does_not_parse_is_a_finding() {
        let file = TextFile {
            path: "crates/a/src/lib.rs".to_owned(),
            text: "fn a() {\n  let = 1;\n}".to_owned(),
        };
        let (_, findings) = Tree::read(vec![file]);
        assert_eq!(
            findings
                .iter()
                .map(|finding| (finding.rule, finding.line))
                .collect::<Vec<_>>(),
            [(Rule::Syntax, 2)]
        );
    }
}
