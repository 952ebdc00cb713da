//! Names of public types: one name means one type, in every crate.

use std::collections::BTreeMap;

use super::finding::{Finding, Rule};
use super::tree::Tree;
use crate::rust_file::RustFile;

/// Tokens before the name of a public type. `pub(crate)` has another token after `pub` and does not match.
const DECLARATIONS: &[&str] = &[
    "pub struct",
    "pub enum",
    "pub union",
    "pub trait",
    "pub unsafe trait",
    "pub type",
];

/// Folder of the product's crates, and the crate in it that does not ship.
const PRODUCT: &str = "crates/";
const TESTKIT: &str = "crates/testkit/";

/// Location of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Declaration<'a> {
    path: &'a str,
    line: usize,
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut declared: BTreeMap<&str, Vec<Declaration<'_>>> = BTreeMap::new();
    let is_product = |file: &&RustFile| file.path.starts_with(PRODUCT) && !file.path.starts_with(TESTKIT);
    for file in tree.production().filter(is_product) {
        let names = DECLARATIONS.iter().flat_map(|pattern| file.names_after(pattern));
        for (name, place) in names.filter(|(_, place)| !place.in_test) {
            declared.entry(name).or_default().push(Declaration {
                path: &file.path,
                line: place.line,
            });
        }
    }
    declared
        .into_iter()
        .flat_map(|(name, declarations)| repeated(name, declarations))
        .collect()
}

/// One finding for each declaration of a name after its first.
fn repeated(name: &str, mut declarations: Vec<Declaration<'_>>) -> Vec<Finding> {
    declarations.sort_unstable();
    let Some((first, others)) = declarations.split_first() else {
        return Vec::new();
    };
    let finding = |other: &Declaration<'_>| {
        let message = format!(
            "the public type `{name}` is also declared at {}:{}; rename one of them",
            first.path, first.line
        );
        Finding::new(Rule::PublicName, other.path, other.line, message).about(name)
    };
    others.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .iter()
            .map(|finding| format!("{}:{} {}", finding.path, finding.line, finding.item))
            .collect()
    }

    const CORE: (&str, &str) = ("crates/core/src/turn.rs", "pub struct Standing;\n");

    #[test]
    fn a_public_type_name_is_declared_once() {
        assert_eq!(
            findings(&[CORE, ("crates/api/src/lib.rs", "pub struct Status;")]),
            [""; 0]
        );
        for second in [
            "\npub enum Standing { A }",
            "\npub trait Standing {}",
            "\npub type Standing = u8;",
            "\nmod a { pub struct Standing; }",
        ] {
            assert_eq!(
                findings(&[CORE, ("crates/tui/src/lib.rs", second)]),
                ["crates/tui/src/lib.rs:2 Standing"]
            );
        }
        let same_crate = ("crates/core/src/log.rs", "pub struct Standing;");
        assert_eq!(
            findings(&[CORE, same_crate]),
            ["crates/core/src/turn.rs:1 Standing"]
        );
    }

    #[test]
    fn both_places_are_named() {
        let tree = Tree::of(&[CORE, ("crates/tui/src/lib.rs", "pub struct Standing;")]);
        let message = check(&tree).first().map(ToString::to_string).unwrap_or_default();
        assert!(
            message.starts_with("crates/tui/src/lib.rs:1: public-name: "),
            "{message}"
        );
        assert!(message.contains("crates/core/src/turn.rs:1"), "{message}");
    }

    #[test]
    fn private_names_and_tests_are_free() {
        for second in [
            "struct Standing;",
            "pub(crate) struct Standing;",
            "pub fn standing() {}",
            "#[cfg(test)]\nmod tests { pub struct Standing; }",
        ] {
            assert_eq!(findings(&[CORE, ("crates/tui/src/lib.rs", second)]), [""; 0]);
        }
        for path in [
            "crates/testkit/src/lib.rs",
            "crates/tui/tests/suite.rs",
            "crates/tui/examples/one.rs",
            "bench/src/main.rs",
            "fuzz/fuzz_targets/edit.rs",
            "xtask/src/main.rs",
        ] {
            assert_eq!(findings(&[CORE, (path, "pub struct Standing;")]), [""; 0]);
        }
    }
}
