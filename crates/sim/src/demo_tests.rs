#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::{DEMO_FILES, RIGHT, WRONG};

/// PROV-5: the script's edit matches the file exactly once, and is needed.
#[test]
fn the_edit_fits_the_file() {
    let (path, source) = DEMO_FILES[1];
    assert_eq!(path, "src/stats.sh");
    assert_eq!(source.matches(WRONG).count(), 1);
    assert!(!source.contains(RIGHT));
}
