//! Runs every stored fuzz input, including those that once found a bug, through the same checks.

use windlass_testkit::failing_inputs;
use windlass_tools::fuzzing;

/// TOOL-6 (S6.8): each value stays inside one argument and never turns it into an option, whatever the file
/// and the call.
#[test]
fn declared() {
    assert_eq!(failing_inputs("declared", fuzzing::declared), [""; 0]);
}

/// TOOL-2: an edit changes the place that it reports and nothing else, whatever the texts.
#[test]
fn edit() {
    assert_eq!(failing_inputs("edit", fuzzing::edit), [""; 0]);
}

/// TOOL-2: any text may be a patch, and a diff from one text to another produces the latter.
#[test]
fn patch() {
    assert_eq!(failing_inputs("patch", fuzzing::patch), [""; 0]);
}
