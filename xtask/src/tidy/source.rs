//! Tokens that do not belong in production code: panics, printing, `unsafe`, `anyhow`.

use super::finding::{Finding, Rule};
use super::tree::{Tree, fits};
use crate::rust_file::RustFile;

/// Unwanted tokens, the files that may contain them, and the alternative.
struct Unwanted {
    rule: Rule,
    patterns: &'static [&'static str],
    allowed_in: &'static [&'static str],
    instead: &'static str,
}

const UNWANTED: &[Unwanted] = &[
    Unwanted {
        rule: Rule::Panic,
        patterns: &[". unwrap ( )", ". expect (", "dbg !", "todo !", "unimplemented !"],
        // In the testkit a panic is a failed test; a benchmark that cannot run may stop.
        allowed_in: &["crates/testkit/*", "bench/*", "*/build.rs"],
        instead: "return an error, or make the case impossible by type",
    },
    Unwanted {
        rule: Rule::Print,
        patterns: &["println !", "eprintln !", "print !", "eprint !"],
        allowed_in: &["crates/cli/*", "xtask/*", "bench/*", "*/build.rs"],
        instead: "send an event or return the text; only the binary prints",
    },
    Unwanted {
        rule: Rule::Anyhow,
        patterns: &["anyhow"],
        allowed_in: &["crates/cli/*", "xtask/*", "bench/*"],
        instead: "use a small error enum that keeps its source",
    },
];

/// The only files that may contain `unsafe`, with a comment that explains why it is sound.
const UNSAFE_ALLOWED_IN: &str = "crates/sandbox/src/*";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust
        .iter()
        .flat_map(|file| [unwanted(file), unsafe_code(file)].concat())
        .collect()
}

fn unwanted(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Unwanted {
        rule,
        patterns,
        allowed_in,
        instead,
    } in UNWANTED
    {
        if allowed_in.iter().any(|pattern| fits(pattern, &file.path)) {
            continue;
        }
        for pattern in *patterns {
            let item = pattern.replace(' ', "");
            for place in file.places(pattern).into_iter().filter(|place| !place.in_test) {
                let message = format!("`{item}` in production code; {instead}");
                findings.push(Finding::new(*rule, &file.path, place.line, message).about(&item));
            }
        }
    }
    findings
}

/// Checks tests too: unsound code in a test hides the bug that the test is for.
fn unsafe_code(file: &RustFile) -> Vec<Finding> {
    let allowed = fits(UNSAFE_ALLOWED_IN, &file.path);
    let places = file.places("unsafe").into_iter();
    places
        .filter_map(|place| {
            let message = if !allowed {
                "`unsafe` is allowed only in crates/sandbox; use a safe wrapper"
            } else if !is_explained(&file.text, place.line) {
                "`unsafe` without a comment; explain in `// SAFETY: …` above it why it is sound"
            } else {
                return None;
            };
            Some(Finding::new(Rule::Unsafe, &file.path, place.line, message).about("unsafe"))
        })
        .collect()
}

/// Returns true if a comment on a line, or directly above it, explains its safety.
fn is_explained(text: &str, line: usize) -> bool {
    let lines: Vec<&str> = text.lines().take(line).map(str::trim).collect();
    let Some((own, above)) = lines.split_last() else {
        return false;
    };
    let attached = above
        .iter()
        .rev()
        .take_while(|line| line.starts_with("//") || line.starts_with("#["));
    attached
        .chain([own])
        .any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(path, text)]);
        check(&tree)
            .iter()
            .map(|f| format!("{} {} {}", f.line, f.rule, f.item))
            .collect()
    }

    #[test]
    fn libraries_do_not_panic() {
        let path = "crates/core/src/turn.rs";
        assert_eq!(findings(path, "fn a() { b.unwrap_or(1); expect(c); }"), [""; 0]);
        assert_eq!(
            findings(
                path,
                "fn a() {\n b.unwrap();\n format!(\"{}\", c.expect(\"d\"));\n todo!() }"
            ),
            ["2 panic .unwrap()", "3 panic .expect(", "4 panic todo!"]
        );
        assert_eq!(
            findings(path, "#[cfg(test)] mod tests { fn a() { b.unwrap(); dbg!(c); } }"),
            [""; 0]
        );
        assert_eq!(
            findings("crates/testkit/src/screen.rs", "fn a() { b.unwrap(); }"),
            [""; 0]
        );
    }

    #[test]
    fn only_the_binary_prints() {
        assert_eq!(
            findings("crates/core/src/turn.rs", "fn a() { println!(\"b\"); }"),
            ["1 print println!"]
        );
        assert_eq!(
            findings("crates/cli/src/output.rs", "fn a() { println!(\"b\"); }"),
            [""; 0]
        );
    }

    #[test]
    fn libraries_name_their_errors() {
        assert_eq!(
            findings("crates/core/src/turn.rs", "use anyhow::Result;"),
            ["1 anyhow anyhow"]
        );
        assert_eq!(findings("crates/cli/src/main.rs", "use anyhow::Result;"), [""; 0]);
    }

    #[test]
    fn unsafe_code_has_one_place_and_a_reason() {
        let explained = "fn a() {\n    // SAFETY: the filter outlives the call.\n    unsafe { b() }\n}\n";
        assert_eq!(findings("crates/sandbox/src/seccomp.rs", explained), [""; 0]);
        assert_eq!(
            findings("crates/sandbox/src/lib.rs", "fn a() {\n    unsafe { b() }\n}\n"),
            ["2 unsafe unsafe"]
        );
        assert_eq!(
            findings("crates/tools/src/bash.rs", explained),
            ["3 unsafe unsafe"]
        );
        let tested = "#[test]\nfn a() { unsafe { b() } }\n";
        assert_eq!(findings("crates/core/src/turn.rs", tested), ["2 unsafe unsafe"]);
    }
}
