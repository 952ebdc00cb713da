//! All text files: no paths of one machine, no trailing whitespace.

use super::finding::{Finding, Rule};
use super::tree::Tree;
use crate::repo::TextFile;

/// Top-level folders that exist on one machine only.
const MACHINE_FOLDERS: &[&str] = &["work", "root", "farm"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(file).collect()
}

fn file(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let visible = file.path.ends_with(".rs") || file.path.ends_with(".md");
    for (index, line) in file.text.lines().enumerate() {
        let at = |rule, message: String| Finding::new(rule, &file.path, index + 1, message);
        let folder = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder));
        if let (Some(folder), true) = (folder, file.path != "Cargo.lock") {
            let message =
                format!("a path below `{folder}` exists on one machine only; use a relative or made-up path");
            findings.push(at(Rule::MachinePath, message).about(*folder));
        }
        if visible && line.trim_end() != line {
            findings.push(at(
                Rule::TrailingSpace,
                "trailing whitespace; remove it".to_owned(),
            ));
        }
    }
    findings
}

/// Returns true if the line contains an absolute path that starts with this folder.
fn names_folder(line: &str, folder: &str) -> bool {
    let path = format!("/{folder}/");
    line.match_indices(&path).any(|(index, _)| {
        let before = line.split_at(index).0.chars().next_back();
        !before.is_some_and(|letter| letter.is_alphanumeric() || "._-~*}>)".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| format!("{} {}", finding.line, finding.rule))
            .collect()
    }

    #[test]
    fn machine_paths_are_found_in_any_file() {
        for folder in MACHINE_FOLDERS {
            let text = format!("one\ncd /{folder}/project\n");
            assert_eq!(findings("docs/build.sh", &text), ["2 machine-path"]);
            assert_eq!(findings("Cargo.lock", &text), [""; 0]);
            assert_eq!(
                findings("docs/build.sh", &format!("see src/{folder}/x and ~/{folder}/y")),
                [""; 0]
            );
        }
    }

    #[test]
    fn lines_end_where_they_seem_to() {
        assert_eq!(findings("README.md", "one\ntwo \n"), ["2 trailing-space"]);
        assert_eq!(findings("README.md", "one\n\ntwo\n"), [""; 0]);
        assert_eq!(findings("tests/screen.txt", "two \n"), [""; 0]);
    }
}
