//! The system clock is created where the program is assembled. Libraries receive a `Clock`.

use super::finding::{Finding, Rule};
use super::tree::{Tree, fits};
use crate::rust_file::RustFile;

/// Every constructor: `SystemClock::default()`, `SystemClock::new()` or any other associated function.
const PATTERN: &str = "SystemClock ::";

/// The declaration, the binary that assembles the program, and packages that do not ship.
const ALLOWED_IN: &[&str] = &[
    "crates/core/src/clock.rs",
    "crates/cli/*",
    "crates/testkit/*",
    "bench/*",
    "xtask/*",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.production().flat_map(file).collect()
}

fn file(file: &RustFile) -> Vec<Finding> {
    if ALLOWED_IN.iter().any(|pattern| fits(pattern, &file.path)) {
        return Vec::new();
    }
    let places = file.places(PATTERN).into_iter().filter(|place| !place.in_test);
    let message = "a library creates its own `SystemClock`; take an `Arc<dyn Clock>` from the caller";
    places
        .map(|place| Finding::new(Rule::Clock, &file.path, place.line, message).about("SystemClock"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    const DEFAULT: &str = "use crate::clock::SystemClock;\nfn a() { Arc::new(SystemClock::default()); }";

    #[test]
    fn libraries_take_a_clock() {
        let path = "crates/service/src/live.rs";
        assert_eq!(findings(path, DEFAULT), [2]);
        assert_eq!(
            findings(path, "fn a() { windlass_core::clock::SystemClock::new(); }"),
            [1]
        );
        assert_eq!(
            findings(
                path,
                "fn a() {\n    select! { _ = SystemClock::default().sleep(b) => {} }\n}"
            ),
            [2]
        );
        assert_eq!(
            findings(path, "fn a(clock: &SystemClock) -> SystemClock { *clock }"),
            [0; 0]
        );
    }

    #[test]
    fn the_binary_and_tests_create_one() {
        for path in [
            "crates/core/src/clock.rs",
            "crates/cli/src/main.rs",
            "crates/testkit/src/lib.rs",
            "bench/src/main.rs",
            "crates/service/src/live_tests.rs",
            "crates/service/tests/suite.rs",
        ] {
            assert_eq!(findings(path, DEFAULT), [0; 0], "{path}");
        }
        let tested = format!("#[cfg(test)]\nmod tests {{ {DEFAULT} }}");
        assert_eq!(findings("crates/service/src/live.rs", &tested), [0; 0]);
    }
}
