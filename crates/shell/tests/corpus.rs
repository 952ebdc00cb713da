//! Runs the stored fuzz inputs through the checks of the fuzz target.

use windlass_shell::fuzzing;
use windlass_testkit::failing_inputs;

/// SAFE-2: every program of a command that is not refused has a name, whatever the text.
#[test]
fn shell() {
    assert_eq!(failing_inputs("shell", fuzzing::shell), [""; 0]);
}
