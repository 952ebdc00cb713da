//! The plain interactive session: lines in, text out. It needs no terminal, moves no cursor, and works over a
//! pipe.

mod lines;
mod view;

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::sync::broadcast::Receiver;
use windlass_api::{
    Answer, Channel, ChannelError, Ended, Envelope, Input, SessionId, UserReply, Waiting, converse,
};
use windlass_core::clock::SystemClock;

use self::lines::{Line, Lines, MAX_BYTES};
use self::view::View;
use crate::asking::{self, Answers};
use crate::editor;
use crate::engine::not_begun;
use crate::exit::Exit;
use crate::interactive::Scene;
use crate::output::Style;
use crate::signals::Signals;
use crate::terminal::tell;
use windlass_config::Problem;

/// Interval of the spinner.
const BEAT: Duration = Duration::from_millis(120);

/// Result of an interactive session.
pub(crate) struct Spoken {
    pub(crate) exit: Exit,
    /// The session that was active at the end.
    pub(crate) session: SessionId,
    /// True if there is something to resume.
    pub(crate) has_talked: bool,
}

/// Rejects a standard input without content, such as a closed one.
pub(crate) fn check_input() -> Result<(), Problem> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(());
    }
    // The system puts the null device in place of a closed descriptor.
    let opened = stdin.as_fd().try_clone_to_owned().map(std::fs::File::from);
    let metadata = opened.and_then(|file| file.metadata());
    let carries = metadata.is_ok_and(|metadata| {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        kind.is_file() || kind.is_fifo() || kind.is_socket() || kind.is_dir()
    });
    if carries { Ok(()) } else { Err(nothing_said()) }
}

fn nothing_said() -> Problem {
    Problem::usage(
        "no input: standard input is closed or empty. Start `windlass` in a terminal, pipe lines into it, or run one \
         prompt, as in `windlass exec \"list the files here\"`; see `windlass --help`",
    )
}

/// Runs an interactive session over standard input and output.
pub(crate) async fn run(scene: &Scene<'_>) -> Result<Spoken, Problem> {
    let signals = Arc::new(Signals::listen());
    let shared = Arc::new(Shared {
        view: Mutex::new(View::new(scene.style, scene.is_plain, scene.session.id.clone())),
        woken: Notify::new(),
    });
    let mut repl = Repl {
        style: scene.style,
        is_typed: std::io::stdin().is_terminal(),
        can_answer: scene.is_somebody_there,
        lines: Lines::of_stdin(),
        signals: Arc::clone(&signals),
        shared: Arc::clone(&shared),
        has_heard: false,
        was_interrupted: false,
        said: Vec::new(),
    };
    let ended = {
        let listening = Arc::clone(&signals);
        let mut interrupt = move || {
            let listening = Arc::clone(&listening);
            async move { listening.interrupted().await }.boxed()
        };
        let session = scene.session.id.clone();
        let clock = SystemClock::default();
        let conversation = converse(scene.backend.as_ref(), session, &mut repl, &mut interrupt, &clock);
        shared.show(conversation, scene.notices.later.subscribe()).await
    };
    let exit = repl.exit(&ended);
    let view = shared.view();
    let mut spoken = Spoken {
        exit,
        session: view.session().clone(),
        has_talked: view.has_talked(),
    };
    match ended {
        Ok(_) if !repl.has_heard && !repl.is_typed && exit != Exit::Interrupted => Err(nothing_said()),
        Ok(ended) => {
            spoken.session = ended.session;
            Ok(spoken)
        }
        Err(_) if view.is_broken() => Ok(spoken),
        Err(error) => Err(Problem::usage(error.to_string())),
    }
}

/// State shared by the conversation and the spinner.
struct Shared {
    view: Mutex<View>,
    /// Notified after output, and when a wait starts or ends.
    woken: Notify,
}

impl Shared {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a conversation, with a spinner while it works.
    async fn show<T>(&self, conversation: impl Future<Output = T>, mut news: Receiver<String>) -> T {
        let mut heartbeat = tokio::time::interval(BEAT);
        tokio::pin!(conversation);
        loop {
            let is_working = self.view().is_working();
            tokio::select! {
                biased;
                ended = &mut conversation => return ended,
                // Flush only when no event is waiting: a flush per event would cost a system call each.
                () = self.woken.notified() => self.view().flush(),
                Ok(line) = news.recv() => self.view().status(&line),
                _ = heartbeat.tick(), if is_working => self.view().tick(),
            }
        }
    }
}

/// A user at standard input.
struct Repl {
    style: Style,
    /// True if a user types the input. Checked once, because a terminal that is gone no longer counts as one.
    is_typed: bool,
    /// True if a user can answer requests.
    can_answer: bool,
    lines: Lines,
    signals: Arc<Signals>,
    shared: Arc<Shared>,
    /// True once any input was read.
    has_heard: bool,
    /// True if a signal ended the wait for input.
    was_interrupted: bool,
    /// Lines of an input that is not complete.
    said: Vec<String>,
}

impl Repl {
    /// Returns the exit code. A user at a terminal has seen any failure; a script has not.
    fn exit(&self, ended: &Result<Ended, ChannelError>) -> Exit {
        match ended {
            Err(_) => Exit::BrokenPipe,
            Ok(_) if self.signals.is_over() || self.was_interrupted => Exit::Interrupted,
            Ok(_) if self.is_typed => Exit::Ok,
            Ok(Ended {
                refused: Some(error), ..
            }) => not_begun(error.clone()).kind.into(),
            Ok(_) => self.shared.view().exit(),
        }
    }

    /// Prints the prompt, if a user types the input.
    fn prompt(&self, sign: &str) {
        if !self.is_typed {
            return;
        }
        let mut stdout = std::io::stdout();
        if stdout.is_terminal() {
            let _ = write!(stdout, "{sign}").and_then(|()| stdout.flush());
        } else {
            let mut stderr = std::io::stderr();
            let _ = write!(stderr, "{sign}").and_then(|()| stderr.flush());
        }
    }

    /// Returns the next usable line, and reports the others.
    async fn usable(&mut self) -> Result<Option<String>, ChannelError> {
        loop {
            match self.lines.next().await {
                None => return Ok(None),
                Some(Line::Text(text)) => return Ok(Some(text)),
                Some(Line::Repaired(text)) => {
                    let text = text.trim_end().to_owned();
                    self.style
                        .warn("this line was not valid UTF-8; invalid bytes are replaced");
                    return Ok(Some(text));
                }
                Some(Line::TooLong) => {
                    self.has_heard = true;
                    self.shared.view().fail(Exit::Usage);
                    too_long(self.style);
                    self.prompt("> ");
                }
                // A terminal that is gone is the end of the input.
                Some(Line::Unreadable(_)) if self.is_typed => return Ok(None),
                Some(Line::Unreadable(why)) => {
                    let text = format!("standard input cannot be read: {why}");
                    return Err(ChannelError::Fatal(text));
                }
            }
        }
    }

    /// Handles Ctrl-C at the prompt. Returns true if the session ends.
    fn interrupted(&mut self, is_warned: &mut bool) -> bool {
        self.signals.settled();
        if !self.is_typed || self.signals.is_over() {
            self.was_interrupted = true;
            return true;
        }
        tell!("");
        if !self.said.is_empty() {
            self.said.clear();
        } else if *is_warned {
            return true;
        } else {
            *is_warned = true;
            tell!("Press Ctrl+C again or Ctrl+D to quit");
        }
        false
    }
}

fn too_long(style: Style) {
    let most = MAX_BYTES >> 20;
    style.error(&format!(
        "this line is longer than {most} MB and was rejected; put it into a file and name the file"
    ));
}

#[async_trait]
impl Channel for Repl {
    async fn recv(&mut self) -> Result<Option<Input>, ChannelError> {
        self.signals.settled();
        let mut is_warned = false;
        loop {
            if self.signals.is_over() {
                return Ok(None);
            }
            self.prompt(if self.said.is_empty() { "> " } else { "  " });
            let signals = Arc::clone(&self.signals);
            let line = tokio::select! {
                biased;
                () = signals.interrupted() => {
                    if self.interrupted(&mut is_warned) {
                        return Ok(None);
                    }
                    continue;
                }
                line = self.usable() => line?,
            };
            let has_more = match line {
                Some(line) => {
                    let more = line.strip_suffix('\\').map(str::to_owned);
                    let has_more = more.is_some();
                    self.said.push(more.unwrap_or(line));
                    has_more
                }
                None => {
                    if self.is_typed {
                        tell!("");
                    }
                    if self.said.is_empty() {
                        return Ok(None);
                    }
                    false
                }
            };
            if has_more {
                continue;
            }
            let text = std::mem::take(&mut self.said).join("\n");
            if !text.trim().is_empty() {
                self.has_heard = true;
                return Ok(Some(Input::text(text.trim_end())));
            }
            is_warned = false;
        }
    }

    fn shows_other_turns(&self) -> bool {
        true
    }

    async fn send(&mut self, envelope: &Envelope) -> Result<(), ChannelError> {
        let shown = self.shared.view().event(envelope, self.signals.exit());
        self.shared.woken.notify_one();
        shown.map_err(|error| ChannelError::Fatal(format!("standard output was closed: {error}")))
    }

    async fn status(&mut self, text: &str) -> Result<(), ChannelError> {
        self.shared.view().status(text);
        Ok(())
    }

    async fn edit(&mut self, text: &str) -> Result<Option<String>, ChannelError> {
        let Some(editor) = editor::chosen().filter(|_| self.is_typed && std::io::stdout().is_terminal())
        else {
            return Ok(None);
        };
        self.shared.view().pause();
        let lent = self.lines.lend().await;
        let edited = editor::edit(&editor, text).await;
        drop(lent);
        // Ctrl+C in the editor was meant for the editor.
        self.signals.settled();
        match edited {
            Ok(Ok(edited)) => Ok(Some(edited)),
            Ok(Err(status)) => {
                let text = format!("the editor `{editor}` failed ({status}); nothing was changed");
                Err(ChannelError::Turn(text))
            }
            Err(error) => Err(ChannelError::Turn(format!("{editor}: {error}"))),
        }
    }

    async fn confirm(&mut self, asking: &Waiting) -> Result<Option<UserReply>, ChannelError> {
        if !self.can_answer {
            // The request is reported anyway, and the service denies it.
            return Ok(Some(UserReply::Permission(Answer::No)));
        }
        self.shared.view().pause();
        // Input typed before the request was shown is no answer to it.
        self.lines.put_aside();
        let mut answers = Fresh {
            style: self.style,
            lines: &mut self.lines,
        };
        Ok(asking::ask(asking, &mut answers).await)
    }
}

/// Lines typed from now on.
struct Fresh<'a> {
    style: Style,
    lines: &'a mut Lines,
}

#[async_trait]
impl Answers for Fresh<'_> {
    async fn line(&mut self) -> Option<String> {
        loop {
            match self.lines.fresh().await? {
                Line::Text(text) | Line::Repaired(text) => return Some(text.trim().to_owned()),
                Line::TooLong => too_long(self.style),
                Line::Unreadable(_) => return None,
            }
        }
    }
}
