//! The prompt: from the arguments, from standard input, or from both.

use std::convert::Infallible;
use std::io::{BufRead, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::output::Style;
use crate::signals::Signals;
use windlass_api::Part;
use windlass_config::Problem;
use windlass_host::compat;

/// Maximum size of standard input, in bytes.
const MOST_BYTES: u64 = 10 * 1024 * 1024;

/// Assembles the prompt. Text piped alongside a prompt is context, and marked as such.
pub(super) async fn read_prompt(words: &[String], style: Style) -> Result<String, Problem> {
    let given = words.join(" ");
    let given = if given.trim() == "-" { String::new() } else { given };
    let piped = if has_piped_input() {
        read_stdin(style).await?
    } else {
        String::new()
    };
    match (given.trim().is_empty(), piped.trim().is_empty()) {
        (false, true) => Ok(given),
        (true, false) => Ok(piped),
        (false, false) => Ok(format!("{given}\n\n<stdin>\n{}\n</stdin>", piped.trim_end())),
        (true, true) => Err(Problem::usage(
            "there is no prompt: give one as an argument or on standard input, as in `windlass exec \"list the files here\"`",
        )),
    }
}

/// Returns true for a file or a pipe. A terminal, a closed descriptor and `/dev/null` have no input.
fn has_piped_input() -> bool {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return false;
    }
    let Ok(owned) = stdin.as_fd().try_clone_to_owned() else {
        return false;
    };
    match std::fs::File::from(owned).metadata() {
        Ok(metadata) => {
            use std::os::unix::fs::FileTypeExt;
            let kind = metadata.file_type();
            kind.is_file() || kind.is_fifo() || kind.is_socket()
        }
        Err(_) => false,
    }
}

/// Messages on standard input, one JSON object per line.
pub(crate) struct MessageLines {
    receiver: tokio::sync::mpsc::Receiver<std::io::Result<String>>,
    number: usize,
    /// The prompt of the command line, which comes first.
    prompt: Option<String>,
}

impl MessageLines {
    /// Starts reading. No other code may read standard input after this.
    pub(super) fn of_stdin(words: &[String]) -> Self {
        let prompt = words.join(" ");
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        // A read that never ends must not keep the program from ending.
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            loop {
                let mut line = String::new();
                let read = input.by_ref().take(MOST_BYTES).read_line(&mut line);
                let is_last = !matches!(read, Ok(1..));
                if matches!(read, Ok(0)) || sender.blocking_send(read.map(|_| line)).is_err() || is_last {
                    return;
                }
            }
        });
        Self {
            receiver,
            number: 0,
            prompt: Some(prompt).filter(|prompt| !matches!(prompt.trim(), "" | "-")),
        }
    }

    /// Returns the parts of the next message; `None` at the end, or after a signal.
    pub(super) async fn next(&mut self, signals: &Signals) -> Result<Option<Vec<Part>>, Problem> {
        if let Some(prompt) = self.prompt.take() {
            return Ok(Some(vec![Part::text(prompt)]));
        }
        loop {
            let line = tokio::select! {
                biased;
                () = signals.interrupted() => return Ok(None),
                line = self.receiver.recv() => line,
            };
            let Some(line) = line else { return Ok(None) };
            self.number += 1;
            let line = line
                .map_err(|error| Problem::usage(format!("standard input, line {}: {error}", self.number)))?;
            if !line.trim().is_empty() {
                return compat::message(&line, self.number).map(Some);
            }
        }
    }
}

async fn read_stdin(style: Style) -> Result<String, Problem> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // On a separate thread: a read from a pipe that is never closed must not keep the program from ending.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin()
            .lock()
            .take(MOST_BYTES + 1)
            .read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    // Listens before anything is shown: a signal that came earlier would be lost.
    let mut interrupts = signal(SignalKind::interrupt())
        .map_err(|error| Problem::usage(format!("signals cannot be handled: {error}")))?;
    let notice = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        style.note("reading standard input until it ends (use `< /dev/null` if there is none)…");
        std::future::pending::<Infallible>().await
    };
    let result = tokio::select! {
        result = receiver => result,
        _ = interrupts.recv() => {
            return Err(Problem::new(windlass_config::ProblemKind::Interrupted, "interrupted"));
        }
        never = notice => match never {},
    };
    let bytes = match result {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return Err(Problem::usage(format!("standard input cannot be read: {error}"))),
        Err(_) => return Err(Problem::usage("standard input cannot be read")),
    };
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Problem::usage(format!(
            "standard input is larger than {} MB",
            MOST_BYTES / 1024 / 1024
        )));
    }
    String::from_utf8(bytes).or_else(|error| {
        style.warn(&format!(
            "standard input is not valid UTF-8 ({}); invalid bytes are replaced",
            error.utf8_error()
        ));
        Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}
