//! Foreign text on a terminal: nothing in it may move the cursor, change the title or hide anything.

/// Prints a line to standard output. Unlike `println!` it does not mind a reader that has gone, as in `… | head -1`.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Prints a line to standard error. Unlike `eprintln!` it does not mind a reader that has gone.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

pub(crate) use windlass_tui::text::plain;
pub(crate) use {say, tell};

/// Prints warnings, a line each.
pub(crate) fn tell_warnings(warnings: &[String]) {
    for warning in warnings {
        tell!("warning: {}", plain(warning));
    }
}
