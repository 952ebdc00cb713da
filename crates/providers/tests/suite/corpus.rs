//! The stored fuzz inputs through the checks of the fuzz target.

use windlass_providers::fuzzing;
use windlass_testkit::failing_inputs;

/// PROV-12: any chunking of any bytes gives the same events and the same reply.
#[test]
fn stream() {
    assert_eq!(failing_inputs("stream", fuzzing::stream), [""; 0]);
}
