//! tty
