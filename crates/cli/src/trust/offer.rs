//! Asks whether to trust the current folder before a session starts.

use std::io::{BufRead, Write};
use std::path::Path;

use rustix::termios::{self, QueueSelector};

use super::question::Question;
use super::review::line;
use crate::terminal::tell;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_config::folders::{Folders, Project};
use windlass_config::trust::{TrustState, look};

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
        "y and Enter: trust them until one changes · n and Enter: no, and do not ask again until they change · Enter: \
         not now"
    );
    match answer() {
        Answer::Yes => question.trust(),
        Answer::No => question.decline(),
        Answer::NotNow => Ok(()),
    }
}

#[derive(Clone, Copy)]
enum Answer {
    Yes,
    No,
    NotNow,
}

/// Asks until a line is an answer. Keys typed before the question are discarded: they were meant for something else.
fn answer() -> Answer {
    let stdin = std::io::stdin();
    let mut err = std::io::stderr();
    loop {
        let _ = termios::tcflush(&stdin, QueueSelector::IFlush);
        let _ = write!(err, "Trust this folder? [y/n] ").and_then(|()| err.flush());
        let mut line = String::new();
        let read = stdin.lock().read_line(&mut line);
        if !read.is_ok_and(|bytes| bytes > 0) {
            tell!("");
            return Answer::NotNow;
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Answer::Yes,
            "n" | "no" => return Answer::No,
            "" => return Answer::NotNow,
            _ => tell!("Please answer y or n, or press Enter to decide later."),
        }
    }
}
