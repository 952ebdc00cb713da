//! The web page: short modules, no HTML strings, and vendored files that are what they claim to be.

use ring::digest::{SHA256, digest};

use super::finding::{Finding, Rule};
use super::tree::Tree;
use crate::repo::TextFile;

/// Table of the vendored files.
const TABLE: &str = "web/vendor/README.md";
/// Most lines of a module.
const LINES: usize = 400;
/// Ways to turn a text into markup or code. The page builds every node itself.
const SINKS: &[&str] = &[
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "DOMParser",
    "createContextualFragment",
    "setHTMLUnsafe",
    "srcdoc",
    "new Function",
    "eval(",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let files = || tree.files.iter().filter(|file| file.path.starts_with("web/"));
    let vendored = |file: &&TextFile| file.path.starts_with("web/vendor/");
    let is_script = |file: &&TextFile| file.path.ends_with(".js");
    let own = files().filter(|file| !vendored(file) && is_script(file));
    let table = tree.file(TABLE).map_or("", |file| file.text.as_str());
    let taken = files().filter(vendored).filter(is_script);
    own.flat_map(module)
        .chain(taken.filter_map(|file| unlisted(file, table)))
        .collect()
}

fn module(file: &TextFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = file.text.lines().count();
    if lines > LINES {
        let message = format!("{lines} lines; split the module, {LINES} are allowed");
        findings.push(Finding::new(Rule::FileLength, &file.path, 1, message).sized(lines));
    }
    for (index, line) in file.text.lines().enumerate() {
        if let Some(sink) = SINKS.iter().find(|sink| line.contains(**sink)) {
            let message = format!("`{sink}` parses a text as markup or code; build nodes with `h`");
            findings.push(Finding::new(Rule::HtmlString, &file.path, index + 1, message).about(*sink));
        }
    }
    findings
}

/// Returns a finding if no row of the table has this file's name, its version and its hash.
fn unlisted(file: &TextFile, table: &str) -> Option<Finding> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let hash = digest(&SHA256, file.text.as_bytes());
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let row = table
        .lines()
        .map(cells)
        .find(|row| row.first().is_some_and(|cell| *cell == name));
    let message = match row.as_deref() {
        None => format!("not in the table of {TABLE}; add its version, licence and SHA-256"),
        Some([_, _, version, licence, listed]) => {
            let head: String = file.text.chars().take(2_000).collect();
            if licence.is_empty() {
                format!("no licence in {TABLE}")
            } else if !head.contains(&format!("v{version}")) {
                format!("its header does not name version {version} of {TABLE}")
            } else if *listed != hash {
                format!("its SHA-256 is {hash}, not the one in {TABLE}")
            } else {
                return None;
            }
        }
        Some(_) => format!("its row in {TABLE} needs a file, a package, a version, a licence and a SHA-256"),
    };
    Some(Finding::new(Rule::Vendored, &file.path, 1, message))
}

fn cells(line: &str) -> Vec<&str> {
    let row = line.trim().trim_matches('|');
    row.split('|').map(|cell| cell.trim().trim_matches('`')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let findings = check(&Tree::of(files));
        findings
            .iter()
            .map(|finding| format!("{}:{} {}", finding.path, finding.line, finding.rule))
            .collect()
    }

    #[test]
    fn modules_are_short_and_build_their_nodes() {
        let long = "a();\n".repeat(LINES + 1);
        let found = findings(&[
            ("web/a.js", &long),
            ("web/b.js", "x();\nnode.innerHTML = y;\n"),
            ("docs/c.js", "eval(x)"),
        ]);
        assert_eq!(found, ["web/a.js:1 file-length", "web/b.js:2 html-string"]);
    }

    #[test]
    fn vendored_files_are_what_the_table_says() {
        let file = ("web/vendor/x.js", "/* x v1.2.3 */\n");
        let table = |version: &str, hash: &str| {
            format!(
                "| file | package | version | licence | SHA-256 |\n|---|---|---|---|---|\n| `x.js` | x | {version} | MIT | `{hash}` |\n"
            )
        };
        let hash = digest(&SHA256, file.1.as_bytes());
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(findings(&[file, (TABLE, &table("1.2.3", &hash))]), [""; 0]);
        for wrong in [table("1.2.4", &hash), table("1.2.3", "00"), String::new()] {
            assert_eq!(
                findings(&[file, (TABLE, &wrong)]),
                ["web/vendor/x.js:1 vendored"],
                "{wrong}"
            );
        }
    }
}
