//! Whole turns with real tools.
