//! Asks whether to trust the current folder before a session starts.

use std::io::{BufRead, Write};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, LocalModes, OptionalActions};

use super::question::Question;
use super::review::line;
use crate::terminal::tell;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::folders::{Folders, Project};
use windlass_config::trust::{TrustState, look};

/// Time without a key after which a word has ended.
const QUIET: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};
/// Maximum number of keys skipped.
const MAX_WORD: usize = 16;

/// Shows the files of the project around `cwd` and asks about them, unless that was answered before. Must
/// only be called if a user can answer. Errors do not stop the start: files that are not trusted have no
/// effect.
pub(crate) fn offer(folders: &Folders, cwd: &Path) {
    // A command run by an agent cannot answer for the user.
    if environment::var("WINDLASS_SESSION").is_some() {
        return;
    }
    let Some(project) = folders.project(cwd) else {
        return;
    };
    match look(folders, &project) {
        TrustState::Untrusted | TrustState::Changed => {}
        // The settings report why the files have no effect.
        TrustState::Trusted(_) | TrustState::Unfit(_) | TrustState::Unknown(_) => return,
    }
    if let Err(problem) = ask(folders, &project) {
        tell!("not trusted: {}", line(&problem.message));
    }
}

fn ask(folders: &Folders, project: &Project) -> Result<(), Problem> {
    let question = Question::about(folders, project)?;
    if question.is_declined() {
        return Ok(());
    }
    let text = question.text()?;
    tell!(
        "This folder has its own settings, tools or commands, written by the authors of the folder:\n\n{text}"
    );
    if question.has_changed() {
        tell!("They have changed since you trusted this folder.");
    }
    tell!(
        "y = trust them until one changes · n = no, and do not ask again until they change · Enter = not now"
    );
    match answer().as_str() {
        "y" | "yes" => question.trust(),
        "n" | "no" => question.decline(),
        _ => Ok(()),
    }
}

/// Reads the answer, one key on a terminal; empty if nothing can be read.
fn answer() -> String {
    let mut err = std::io::stderr();
    let _ = write!(err, "Trust this folder? ").and_then(|()| err.flush());
    if let Some(key) = one_key() {
        tell!(
            "{}",
            if key.is_ascii_graphic() {
                char::from(key)
            } else {
                ' '
            }
        );
        return char::from(key).to_lowercase().to_string();
    }
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if !read.is_ok_and(|bytes| bytes > 0) {
        tell!("");
        return String::new();
    }
    answer.trim().to_lowercase()
}

/// Reads one key without waiting for Enter; `None` if there is no terminal. Nothing after it is read.
fn one_key() -> Option<u8> {
    let stdin = std::io::stdin();
    let before = termios::tcgetattr(&stdin).ok()?;
    let mut now = before.clone();
    now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    termios::tcsetattr(&stdin, OptionalActions::Now, &now).ok()?;
    let mut key = [0];
    let read = rustix::io::read(&stdin, &mut key);
    if read == Ok(1) && !is_end(key[0]) {
        skip_word(&stdin);
    }
    let _ = termios::tcsetattr(&stdin, OptionalActions::Now, &before);
    // The end of the input is no answer.
    Some(if read == Ok(1) { key[0] } else { b'\n' })
}

/// Skips the rest of a word that was typed in one go, as in `yes` and Enter.
fn skip_word(stdin: &std::io::Stdin) {
    for _ in 0..MAX_WORD {
        let mut wanted = [PollFd::new(stdin, PollFlags::IN)];
        let mut key = [0];
        let is_ready = poll(&mut wanted, Some(&QUIET)).is_ok_and(|ready| ready > 0);
        if !is_ready || rustix::io::read(stdin, &mut key) != Ok(1) || is_end(key[0]) {
            return;
        }
    }
}

fn is_end(key: u8) -> bool {
    matches!(key, b'\n' | b'\r')
}
