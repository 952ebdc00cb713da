//! Tests: every test runs, can fail, and does not sleep.

use super::finding::{Finding, Rule};
use super::tree::Tree;
use crate::rust_file::RustFile;

/// Unwanted tokens in tests, and the alternative.
const UNWANTED: &[(Rule, &str, &str)] = &[
    (
        Rule::IgnoredTest,
        "# [ ignore",
        "an ignored test proves nothing; make it run or delete it",
    ),
    (
        Rule::EmptyAssert,
        "assert ! ( true",
        "this cannot fail; assert the behavior under test",
    ),
    (
        Rule::TestSleep,
        "thread :: sleep",
        "wait for the event, or use a clock that the test controls",
    ),
    (
        Rule::TestSleep,
        "time :: sleep",
        "wait for the event, or use a clock that the test controls",
    ),
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust.iter().flat_map(file).collect()
}

fn file(file: &RustFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (rule, pattern, instead) in UNWANTED {
        let item = pattern.replace(' ', "");
        for place in file.places(pattern).into_iter().filter(|place| place.in_test) {
            let message = format!("`{item}` in a test; {instead}");
            findings.push(Finding::new(*rule, &file.path, place.line, message).about(&item));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/core/src/turn.rs", text)]);
        check(&tree)
            .iter()
            .map(|finding| format!("{} {}", finding.line, finding.rule))
            .collect()
    }

    #[test]
    fn a_plain_test_passes() {
        assert_eq!(
            findings("#[test]\nfn a() { assert!(b); assert_eq!(c, true); }"),
            [""; 0]
        );
    }

    #[test]
    fn ignored_empty_and_sleeping_tests_are_found() {
        assert_eq!(
            findings("#[test]\n#[ignore = \"slow\"]\nfn a() {}"),
            ["2 ignored-test"]
        );
        assert_eq!(findings("#[test]\nfn a() { assert!(true); }"), ["2 empty-assert"]);
        assert_eq!(
            findings("#[test]\nfn a() { std::thread::sleep(b); }"),
            ["2 test-sleep"]
        );
        assert_eq!(
            findings("#[tokio::test]\nasync fn a() {\n tokio::time::sleep(b).await; }"),
            ["3 test-sleep"]
        );
        assert_eq!(
            findings("#[cfg(test)]\nmod tests {\n use tokio::time::{self, sleep};\n}"),
            ["3 test-sleep"]
        );
    }

    #[test]
    fn production_code_is_not_judged_here() {
        assert_eq!(findings("async fn a() { tokio::time::sleep(b).await; }"), [""; 0]);
    }
}
