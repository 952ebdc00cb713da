//! Foreign text on a terminal: it must not move the cursor, change the title or hide anything.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Prints a line to standard output. Unlike `println!`, it ignores a reader that is gone, as in `… | head
/// -1`. Any other error is reported when the program ends.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(crate::terminal::Stdout, $($text)*);
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

/// First error of standard output, other than a reader that is gone.
static OUTPUT_ERROR: OnceLock<String> = OnceLock::new();

/// Standard output. Its errors are reported when the program ends, so that a full disk never looks like success.
pub(crate) struct Stdout;

impl Stdout {
    /// Returns the first error, such as a full disk. A closed pipe is none.
    pub(crate) fn error() -> Option<&'static str> {
        let _ = Self.flush();
        OUTPUT_ERROR.get().map(String::as_str)
    }

    fn noted<T>(result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            // A terminal that is gone is a reader that is gone.
            let is_gone = error.kind() == ErrorKind::BrokenPipe
                || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error());
            if !is_gone && error.kind() != ErrorKind::Interrupted {
                let _ = OUTPUT_ERROR.set(error.to_string());
            }
        })
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::noted(io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::noted(io::stdout().flush())
    }
}

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
