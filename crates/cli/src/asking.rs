//! Terminal prompts: permission requests, and questions from tools.

use std::io::{BufRead, IsTerminal, Write};

use async_trait::async_trait;
use tokio::sync::oneshot;
use windlass_api::{Approval, Cleaning, Pressed, UserReply, Waiting};
use windlass_core::text::count;

use windlass_tui::text::{revealed, revealed_line};

use crate::terminal::{plain, tell};
use windlass_config::{Problem, ProblemKind};

/// Maximum number of lines of a diff or a command shown before the user asks for all of it.
const MAX_LINES: usize = 60;

/// Returns true if a user can be asked: they see standard error and can type.
pub(crate) fn somebody_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks the question on standard output and returns true for a yes. Without a terminal to ask on, fails with
/// the text `alone`, and `question` is not called.
pub(crate) fn confirm(alone: &str, question: impl FnOnce() -> String) -> Result<bool, Problem> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Problem::new(ProblemKind::Denied, alone));
    }
    let mut out = std::io::stdout();
    let _ = write!(out, "{} [y/N] ", question()).and_then(|()| out.flush());
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    read.map_err(|error| Problem::new(ProblemKind::Failed, format!("the answer cannot be read: {error}")))?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Source of the user's answers.
#[async_trait]
pub(crate) trait Answers: Send {
    /// Returns the next line typed, trimmed; `None` at the end of input. The future may be dropped while it
    /// waits.
    async fn line(&mut self) -> Option<String>;
}

/// Shows a request and waits for the reply. `None` if it needs no reply, or if the terminal is gone.
pub(crate) async fn ask(asking: &Waiting, answers: &mut dyn Answers) -> Option<UserReply> {
    match asking {
        Waiting::PermissionRequest { .. } => {
            let clean = Cleaning {
                line: revealed_line,
                text: revealed,
            };
            let approval = Approval::of(asking, clean)?;
            permission(approval, answers).await
        }
        Waiting::Question { text, options, .. } => {
            tell!("\n{}", plain(text));
            for (index, option) in options.iter().enumerate() {
                tell!("  {}) {}", index + 1, plain(option));
            }
            tell!("Your answer:");
            let line = answers.line().await?;
            let chosen = line
                .parse::<usize>()
                .ok()
                .and_then(|number| number.checked_sub(1));
            let option = chosen.and_then(|index| options.get(index));
            Some(UserReply::Text(option.cloned().unwrap_or(line)))
        }
        Waiting::PermissionAnswer { .. } | Waiting::Queue { .. } => None,
    }
}

fn show_request(approval: &Approval) {
    tell!("\n{}", approval.question());
    let subjects = approval.subjects();
    match approval.preview() {
        Some(preview) => {
            show_ends(preview);
            // List the individual commands if there is more than one.
            if subjects.len() > 1 {
                tell!("  commands: {}", subjects.join(" · "));
            }
        }
        None => tell!("  {}", subjects.join(" · ")),
    }
    for reason in approval.reasons() {
        tell!("  {reason}");
    }
    tell!("");
    for choice in approval.choices() {
        tell!("  {}  {}", choice.letter(), choice.text());
    }
}

/// Shows the start and the end of a long text.
fn show_ends(preview: &str) {
    let lines: Vec<&str> = preview.lines().collect();
    let more = lines.len().saturating_sub(MAX_LINES);
    let left_out = MAX_LINES / 2..MAX_LINES / 2 + more;
    for (index, line) in lines.iter().enumerate() {
        if index == left_out.start && more > 0 {
            tell!("  … {}: v shows all", count(more, "more line"));
        }
        if !left_out.contains(&index) {
            tell!("  {line}");
        }
    }
}

/// Waits for a decision. A call that was not shown completely cannot be approved before the user has asked to
/// see all of it.
async fn permission(mut approval: Approval, answers: &mut dyn Answers) -> Option<UserReply> {
    show_request(&approval);
    let lines = approval.preview().map_or(0, |preview| preview.lines().count());
    approval.set_seen(lines <= MAX_LINES);
    let letters: Vec<String> = approval
        .choices()
        .iter()
        .map(|choice| choice.letter().to_string())
        .collect();
    let prompt = format!("Type {}, or what to do instead:", letters.join(", "));
    tell!("{prompt}");
    loop {
        match approval.line(&answers.line().await?) {
            Pressed::Answered(answer) => return Some(UserReply::Permission(answer)),
            Pressed::View => {
                for line in approval.preview().unwrap_or_default().lines() {
                    tell!("  {line}");
                }
                approval.set_seen(true);
                tell!("{prompt}");
            }
            Pressed::Tell(_) => tell!("Say what to do instead:"),
            Pressed::Taken | Pressed::Ignored => match (approval.confirmation(), approval.hint()) {
                (Some((choice, question)), _) => {
                    tell!("{question} Type {} again to confirm.", choice.letter());
                }
                (None, Some(hint)) => tell!("{hint}"),
                (None, None) => tell!("{prompt}"),
            },
        }
    }
}

/// Lines typed on the terminal. Each line is read on a separate thread: such a read cannot be canceled, and
/// nothing may wait for it.
pub(crate) struct Typed;

#[async_trait]
impl Answers for Typed {
    async fn line(&mut self) -> Option<String> {
        let (sender, receiver) = oneshot::channel();
        let read = move || {
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            let _ = sender.send(
                read.ok()
                    .filter(|bytes| *bytes > 0)
                    .map(|_| line.trim().to_owned()),
            );
        };
        std::thread::Builder::new()
            .name("answer".to_owned())
            .spawn(read)
            .ok()?;
        receiver.await.ok().flatten()
    }
}
