//! Every input that fuzzing kept, and every one that it once found something with, through the same checks.

use windlass_testkit::failing_inputs;
use windlass_tools::fuzzing;

/// TOOL-6 (S6.8): each value stays inside one argument and makes no option of it, whatever the file and the call.
#[test]
fn declared() {
    assert_eq!(failing_inputs("declared", fuzzing::declared), [""; 0]);
}

/// TOOL-2: an edit changes what it says it found and nothing else, whatever the texts.
#[test]
fn edit() {
    assert_eq!(failing_inputs("edit", fuzzing::edit), [""; 0]);
}

/// TOOL-2: any text may be a patch, and a diff from one text to another leads there.
#[test]
fn patch() {
    assert_eq!(failing_inputs("patch", fuzzing::patch), [""; 0]);
}
