//! Foreign text on a terminal: it must not move the cursor, change the title or hide anything.

/// Prints a line to standard output. Unlike `println!`, it ignores a reader that is gone, as in `… | head
/// -1`.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Prints a line to standard error in one piece. Unlike `eprintln!`, it ignores a reader that is gone.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let mut line = format!($($text)*);
        line.push('\n');
        let _ = std::io::stderr().write_all(line.as_bytes());
    }};
}

pub(crate) use windlass_tui::text::plain;
pub(crate) use {say, tell};

/// Prints warnings, one per line.
pub(crate) fn tell_warnings(warnings: &[String]) {
    for warning in warnings {
        tell!("warning: {}", plain(warning));
    }
}

/// Maximum wait for a blocked terminal at the end.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(300);

/// Prints a last line to standard error. A terminal that does not read must not keep the program from ending.
pub(crate) fn tell_last(line: String) {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        tell!("{line}");
        let _ = done.send(());
    });
    let _ = is_done.recv_timeout(PATIENCE);
}
