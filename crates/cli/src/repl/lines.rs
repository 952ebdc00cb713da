//! Standard input, line by line.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};

/// Maximum length of a line in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Number of lines that are read ahead. A faster writer blocks, as with any pipe.
const AHEAD: usize = 64;

/// A line, without its line end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// The line was not UTF-8; invalid bytes are replaced.
    Repaired(String),
    /// The line was too long, and was skipped completely.
    TooLong,
    /// The line cannot be read, nor can anything after it.
    Unreadable(String),
}

/// Lines read on a separate thread, because such a read cannot be canceled and nothing may wait for it. A
/// wait for the next line can be canceled without losing input.
pub(super) struct Lines {
    receiver: mpsc::Receiver<Line>,
    /// Lines that were read and not taken yet.
    aside: VecDeque<Line>,
    /// Held while a line is read.
    reading: Arc<Mutex<()>>,
}

impl Lines {
    /// Returns the lines of standard input. No other code may read it after this.
    pub(super) fn of_stdin() -> Self {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let reading = Arc::new(Mutex::new(()));
        let gate = Arc::clone(&reading);
        let read = move || {
            let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else {
                return;
            };
            let mut input = BufReader::new(File::from(input));
            while let Some(line) = next_unless_lent(&mut input, &gate) {
                let is_last = matches!(line, Line::Unreadable(_));
                if sender.blocking_send(line).is_err() || is_last {
                    break;
                }
            }
        };
        // Without the thread there is no input.
        let _ = std::thread::Builder::new().name("input".to_owned()).spawn(read);
        Self {
            receiver,
            aside: VecDeque::new(),
            reading,
        }
    }

    /// Leaves standard input to somebody else, such as an editor, until the result is dropped.
    pub(super) async fn lend(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.reading).lock_owned().await
    }

    /// Returns the next line; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Line> {
        match self.aside.pop_front() {
            Some(line) => Some(line),
            None => self.receiver.recv().await,
        }
    }

    /// Sets aside the lines read so far, so that [`Self::fresh`] returns only later ones.
    pub(super) fn put_aside(&mut self) {
        while let Ok(line) = self.receiver.try_recv() {
            self.aside.push_back(line);
        }
    }

    /// Returns the next line that was not set aside; `None` at the end.
    pub(super) async fn fresh(&mut self) -> Option<Line> {
        self.receiver.recv().await
    }
}

/// Reads a line while nobody else uses the input; `None` at the end. The wait for input does not use it.
fn next_unless_lent(input: &mut BufReader<File>, reading: &Mutex<()>) -> Option<Line> {
    loop {
        if input.buffer().is_empty() {
            has_input(input.get_ref(), None);
        }
        let _own = reading.blocking_lock();
        // Somebody else may have taken the input meanwhile.
        if !input.buffer().is_empty() || has_input(input.get_ref(), Some(&Timespec::default())) {
            return next(input);
        }
    }
}

/// Returns true if a read would not wait.
fn has_input(input: &File, limit: Option<&Timespec>) -> bool {
    let mut wanted = [PollFd::new(input, PollFlags::IN)];
    match poll(&mut wanted, limit) {
        Ok(ready) => ready > 0,
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

/// Reads a line; `None` at the end. Memory use is limited, however long the line is.
fn next(input: &mut impl BufRead) -> Option<Line> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX) + 1;
    match input.by_ref().take(most).read_until(b'\n', &mut bytes) {
        Ok(0) => return None,
        Ok(_) => {}
        Err(error) => return Some(Line::Unreadable(error.to_string())),
    }
    if bytes.pop_if(|byte| *byte == b'\n').is_some() {
        bytes.pop_if(|byte| *byte == b'\r');
    } else if bytes.len() > MAX_BYTES {
        return Some(match input.skip_until(b'\n') {
            Ok(_) => Line::TooLong,
            Err(error) => Line::Unreadable(error.to_string()),
        });
    }
    Some(match String::from_utf8(bytes) {
        Ok(text) => Line::Text(text),
        Err(error) => Line::Repaired(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Vec<Line> {
        let mut input = io::BufReader::with_capacity(7, input);
        std::iter::from_fn(|| next(&mut input)).collect()
    }

    fn text(text: &str) -> Line {
        Line::Text(text.to_owned())
    }

    /// UI-1: a line ends with a line break of either kind or at the end of input, and invalid UTF-8 is
    /// replaced.
    #[test]
    fn lines_are_read() {
        assert_eq!(all(b""), []);
        assert_eq!(all(b"one\r\n\ntwo\rx"), [text("one"), text(""), text("two\rx")]);
        assert_eq!(
            all(b"caf\xe9\n\xf0\x9f\x8e\x88"),
            [Line::Repaired("caf\u{fffd}".to_owned()), text("🎈")]
        );
    }

    /// UI-1: a line that is too long is skipped completely, and the next one is read.
    #[test]
    fn long_lines_are_skipped() {
        let longest = "x".repeat(MAX_BYTES);
        let input = format!("{longest}\n{longest}y\nnext\n{longest}yy");
        assert_eq!(
            all(input.as_bytes()),
            [text(&longest), Line::TooLong, text("next"), Line::TooLong]
        );
    }

    /// UI-1: lines set aside stay in order, and a request gets only later lines.
    #[tokio::test]
    async fn what_came_before_a_question_waits() {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let mut lines = Lines {
            receiver,
            aside: VecDeque::new(),
            reading: Arc::default(),
        };
        sender.send(text("early")).await.unwrap();
        sender.send(text("too")).await.unwrap();
        lines.put_aside();
        sender.send(text("answer")).await.unwrap();
        drop(sender);
        assert_eq!(lines.fresh().await, Some(text("answer")));
        assert_eq!(lines.next().await, Some(text("early")));
        assert_eq!(lines.next().await, Some(text("too")));
        assert_eq!(lines.next().await, None);
    }
}
