//! The stored fuzz inputs through the checks of the fuzz target.

use windlass_sandbox::fuzzing;
use windlass_testkit::failing_inputs;

/// SAFE-3 (S6.10, S6.11): every opened file is inside and not denied, however its path is spelled.
#[test]
fn paths() {
    assert_eq!(failing_inputs("paths", fuzzing::paths), [""; 0]);
}
