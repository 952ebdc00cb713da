//! Handling of job results.

use base64::Engine;
use ratatui::text::Line;
use windlass_api::{
    AgentRow, Checkpoint, ClientError, CommandReply, Entry, Event, FileChange, Follow, Message, OnBusy, Part,
    SessionId, SessionInfo, Timestamp, is_own_call, user_messages,
};
use windlass_core::text::count;

use super::{App, Done, Edited, Effect, Older, Report, Subscription, commands};
use crate::composer::{CompletionQuery, Draft};
use crate::desktop::Image;
use crate::menu::{Choice, Menu};
use crate::overlay::{Pager, Row, Subject, fleet};
use crate::text::{one_line, plain};
use crate::theme::Tone;
use crate::transcript::{RenderOptions, Transcript};

impl App {
    /// Applies the result of a job, unless it concerns another session.
    pub(crate) fn report(&mut self, report: Report) {
        if report.of.is_none_or(|of| of == self.session.info.id) {
            self.done(report.done);
        }
    }

    /// Applies the result of a job.
    pub(crate) fn done(&mut self, done: Done) {
        self.redraw.is_dirty = true;
        match done {
            Done::Submitted(Ok(()), _) | Done::GoesOn(true) => self.hear_again(),
            Done::Submitted(Err(error), draft) => self.not_taken(&error, *draft),
            Done::Command(line, reply) => self.commanded(&line, reply),
            Done::QuietCommand(Ok(_)) => self.jobs.overview(&self.session.info.id),
            Done::QuietCommand(Err(error)) => {
                self.tell(Tone::Warn, &error.to_string());
                self.jobs.overview(&self.session.info.id);
            }
            Done::Catalog(mut commands) => {
                commands.extend(commands::local());
                self.caches.commands = commands;
                // A command that is being typed already had nothing to choose from.
                if self.menu.is_none() {
                    self.written();
                }
            }
            Done::Completions(line, lines) => self.completions(&line, lines),
            Done::Overview(Ok(overview)) => {
                self.session.status.set(&overview);
                self.session.status.place.folder = self.folder();
                self.session.queue.clone_from(&overview.queue);
            }
            // Without an answer the status line stays unchanged.
            Done::Overview(Err(_)) => {}
            Done::Why(waits) => self.session.waits = waits,
            Done::Opening(entries) => self.opened(entries),
            Done::Older(before, entries) => self.older(before, entries),
            Done::Files(of, files) => self.take_files(of, files),
            Done::Choices(subject, lines) => self.choices(subject, &lines),
            // Results for an outdated query are useless.
            Done::Sessions(words, _) if words != self.caches.sought => {}
            Done::Sessions(_, found) => {
                let (current, now) = (self.session.info.id.clone(), self.jobs.ports.clock.now());
                self.list(Subject::Sessions, found, |found| sessions(&current, &found, now));
            }
            Done::SessionPreview(session, entries) => self.session_preview(&session, entries),
            Done::Checkpoints(found) => self.list(Subject::Checkpoints, found, |found| checkpoints(&found)),
            Done::Changes(number, changes) => self.changes(number, changes),
            Done::Messages(found) => self.messages(found),
            Done::Agents(found) => self.agents(found),
            Done::Began(Ok(info)) => self.go_to(*info),
            Done::Began(Err(error)) => self.tell(Tone::Bad, &error.to_string()),
            Done::TakenBack(Some(message)) => self.write_again(&message.user_text(), images(&message)),
            Done::GoesOn(false) => self.view.hint = Some("the session is no longer open".to_owned()),
            Done::TakenBack(None) => {
                self.view.hint = Some("that message is already being processed".to_owned());
            }
            Done::Connected(session, Ok(text)) if session != self.session.info.id => {
                self.tell(Tone::Dim, &format!("In the session you left: {text}"));
            }
            Done::Connected(_, Ok(text)) => {
                self.tell(Tone::Good, &text);
                self.jobs.overview(&self.session.info.id);
            }
            Done::Connected(_, Err(error)) => self.tell(Tone::Bad, &error.to_string()),
            Done::Image(Ok(image)) => {
                self.composer.attach(image);
                self.written();
            }
            Done::Image(Err(why)) => self.tell(Tone::Warn, &why),
            Done::Dropped(text, image) => {
                self.input.dropped = self.input.dropped.saturating_sub(1);
                match image {
                    Some(image) => self.composer.attach(image),
                    None => self.composer.paste(&text),
                }
                self.written();
            }
        }
    }

    /// Resubscribes if the backend closed the idle session.
    fn hear_again(&mut self) {
        if self.session.subscription == Subscription::Left {
            self.listen();
        }
    }

    /// Restores a rejected message to the composer, so that nothing is lost.
    fn not_taken(&mut self, error: &ClientError, draft: Draft) {
        self.tell(Tone::Bad, &error.to_string());
        self.write_again(&draft.text, draft.images);
    }

    /// Puts a message back into the composer, before the current draft.
    fn write_again(&mut self, text: &str, images: Vec<Image>) {
        self.composer.write_again(text, images);
        self.written();
    }

    /// Shows the messages the user can go back to.
    fn messages(&mut self, found: Result<Vec<Entry>, ClientError>) {
        if let Ok(entries) = &found {
            let texts = user_messages(entries).into_iter();
            self.caches.said = texts.map(|(seq, message)| (seq, message.user_text())).collect();
        }
        self.list(Subject::Messages, found, |found| messages(&found));
    }

    /// SUB-8: shows the tree of agents.
    fn agents(&mut self, found: Result<Vec<AgentRow>, ClientError>) {
        let now = self.jobs.ports.clock.now();
        if let Ok(rows) = &found {
            let numbers = rows
                .iter()
                .map(|row| (row.session.to_string(), row.family.number));
            self.caches.agents = numbers.collect();
        }
        let theme = self.view.theme;
        let mut summary = String::new();
        self.list(Subject::Agents, found, |found| {
            let (line, rows) = fleet(&found, now, theme);
            summary = line;
            rows
        });
        if let Some(overlay) = &mut self.overlay {
            overlay.sum_up(Subject::Agents, summary);
        }
    }

    fn commanded(&mut self, line: &str, reply: Result<CommandReply, ClientError>) {
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                self.transcript.command(line.lines().next().unwrap_or_default());
                self.tell(Tone::Warn, &error.to_string());
                // A text that took a while to write is not lost.
                if line.contains('\n') {
                    self.write_again(line, Vec::new());
                }
                return;
            }
        };
        let mut text = plain(&reply.text);
        if line.trim_end() == "/help" {
            text.push_str(&commands::help());
        }
        // A shell command appears as its own card.
        if !text.is_empty() && !line.starts_with("/shell ") {
            if commands::is_read(line) {
                let pager = match commands::is_diff(line) {
                    true => Pager::new(
                        line,
                        crate::diff::render(&text, self.render_options().columns, self.view.theme),
                    ),
                    false => Pager::text(line, &text),
                };
                self.overlay = Some(Box::new(pager));
            } else {
                self.transcript.command(line);
                self.tell(Tone::Text, &text);
            }
        }
        // No need to resubscribe to a session that is being left.
        if !matches!(reply.follow, Follow::Session(_)) {
            self.hear_again();
        }
        match reply.follow {
            Follow::Nothing => {}
            // Its events arrive with all the others.
            Follow::Watch(_) => {}
            Follow::Session(info) => self.go_to(*info),
            Follow::Leave => self.leave("/exit".to_owned()),
            Follow::Edit { command, text } => self.effect(Effect::Edit {
                text,
                then: Edited::Command(command),
            }),
            Follow::Submit(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.text.as_str()),
                    _ => None,
                });
                let text = texts.collect::<Vec<_>>().join("\n");
                let draft = Draft {
                    shown: line.to_owned(),
                    remembered: String::new(),
                    text,
                    images: Vec::new(),
                };
                self.submit(draft, OnBusy::Queue);
            }
        }
        self.rewound(line);
        self.jobs.overview(&self.session.info.id);
        self.jobs.catalog(&self.session.info.id);
    }

    /// After a rewind, puts the message that was rewound into the composer for editing.
    fn rewound(&mut self, line: &str) {
        let number = line
            .strip_prefix("/rewind ")
            .and_then(|rest| rest.split(' ').next()?.parse().ok());
        let Some(number) = number else { return };
        let listed = self.caches.said.get(&number).cloned();
        if let Some(text) = listed.or_else(|| self.transcript.said_at(number))
            && self.composer.is_empty()
        {
            self.set_text(&text);
        }
    }

    fn completions(&mut self, line: &str, lines: Vec<String>) {
        // Completions for an outdated text are useless.
        let is_current = self.composer.completion_query() == Some(CompletionQuery::Command(line.to_owned()));
        let is_closed = self.caches.closed_menu.as_deref() == Some(self.composer.text());
        if !is_current || is_closed {
            return;
        }
        let choice = |line: String| Choice {
            label: one_line(&line),
            arguments: String::new(),
            insert: line,
            detail: String::new(),
        };
        self.menu = Menu::new(lines.into_iter().map(choice).collect());
    }

    /// Shows the last entries of a resumed session, then subscribes to it.
    fn opened(&mut self, entries: Result<Vec<Entry>, ClientError>) {
        match entries {
            Ok(entries) => {
                let first = entries.first().map_or(0, |entry| entry.seq);
                if first > 1 {
                    let earlier = count(first - 1, "earlier entry");
                    let text = format!("… {earlier}: press ctrl+o, then page up");
                    self.transcript.tell(Tone::Dim, &text);
                }
                for entry in &entries {
                    self.recall(entry);
                }
                // A session is never left while a command of the user runs in it, and the log records the end
                // of a killed turn.
                let is_step = |entry: &&Entry| matches!(entry.event, Event::StepStart { .. });
                let last = entries.iter().rev();
                let last = last.take_while(|entry| !entry.event.is_terminal()).find(is_step);
                if last.is_some_and(
                    |entry| matches!(&entry.event, Event::StepStart { call_id, .. } if is_own_call(call_id)),
                ) {
                    self.session.is_busy = false;
                }
                if !self.session.is_busy {
                    // Open items ended with the process that ran them.
                    self.transcript.close();
                }
            }
            Err(error) => self.tell(Tone::Bad, &error.to_string()),
        }
        self.listen();
        // Queued messages are not found in the entries alone.
        self.jobs.overview(&self.session.info.id);
    }

    fn older(&mut self, before: u64, entries: Result<Vec<Entry>, ClientError>) {
        self.view.older = Older::Unread;
        match entries {
            // Items were dropped in the meantime: these entries would leave a gap.
            Ok(_) if self.transcript.first_seq() != Some(before) => {}
            Ok(entries) => self.transcript.put_before(told(&entries)),
            Err(error) => self.view.older = Older::Failed(one_line(&error.to_string())),
        }
    }

    fn list<T>(&mut self, of: Subject, found: Result<T, ClientError>, rows: impl FnOnce(T) -> Vec<Row>) {
        match found {
            Ok(found) => {
                let rows = rows(found);
                let first = rows.first().map(|row| row.key.clone());
                if let Some(overlay) = &mut self.overlay {
                    overlay.rows(of, rows);
                }
                if let Some(first) = first {
                    self.look_at(of, &first);
                }
            }
            Err(error) => {
                self.overlay = None;
                self.tell(Tone::Bad, &error.to_string());
            }
        }
    }

    fn session_preview(&mut self, session: &SessionId, entries: Result<Vec<Entry>, ClientError>) {
        let options = RenderOptions {
            unfolded: false,
            is_unfoldable: false,
            ..self.render_options()
        };
        let mut lines: Vec<Line<'static>> = match entries {
            Ok(entries) => told(&entries).all_lines(options),
            Err(error) => vec![Line::raw(one_line(&error.to_string()))],
        };
        // People recognise a session by its end.
        let room = usize::from(self.view.size.1) / 2;
        let skip = lines.len().saturating_sub(room.saturating_sub(3));
        lines.drain(..skip);
        if let Some(overlay) = &mut self.overlay {
            overlay.preview(session.as_str(), lines);
        }
    }

    fn changes(&mut self, number: u64, changes: Result<Vec<FileChange>, ClientError>) {
        let options = self.render_options();
        let mut lines = Vec::new();
        match changes {
            Ok(changes) => {
                for change in changes {
                    let text = format!("{}: {:?}", one_line(&change.path), change.what).to_lowercase();
                    lines.push(Line::styled(text, options.theme.style(Tone::User)));
                    if let Some(diff) = &change.diff {
                        lines.extend(crate::diff::render(diff, options.columns, options.theme));
                    }
                }
            }
            Err(error) => lines.push(Line::raw(one_line(&error.to_string()))),
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.preview(&number.to_string(), lines);
        }
    }
}

/// Decodes the images of a message.
fn images(message: &Message) -> Vec<Image> {
    let image = |part: &Part| match part {
        Part::Binary(binary) => Some(Image {
            name: binary.path.clone(),
            media_type: binary.mime.clone(),
            data: base64::engine::general_purpose::STANDARD
                .decode(&binary.data)
                .ok()?
                .into(),
        }),
        _ => None,
    };
    message.parts.iter().filter_map(image).collect()
}

/// Builds a transcript from entries.
fn told(entries: &[Entry]) -> Transcript {
    let mut transcript = Transcript::default();
    for entry in entries {
        transcript.hear(entry.seq, &entry.event, entry.time.0);
    }
    transcript.close();
    transcript
}

/// Lists all sessions except the current one while it is empty: there is nothing to resume.
fn sessions(current: &SessionId, found: &[SessionInfo], now: Timestamp) -> Vec<Row> {
    let is_new = |info: &&SessionInfo| info.id == *current && info.totals.messages == 0;
    let row = |info: &SessionInfo| {
        let title = info.label.title.as_deref().unwrap_or("untitled");
        let name = info.label.name.as_ref().map(|name| format!("{name}: "));
        Row {
            key: info.id.as_str().to_owned(),
            text: format!("{}{title}", name.unwrap_or_default()),
            detail: format!(
                "{} · {} · {} · {}",
                count(info.totals.messages, "message"),
                info.totals.cost(),
                info.place.rsplit('/').next().unwrap_or_default(),
                info.updated_at.ago(now)
            ),
            ..Row::default()
        }
    };
    found.iter().filter(|info| !is_new(info)).map(row).collect()
}

fn checkpoints(found: &[Checkpoint]) -> Vec<Row> {
    let row = |checkpoint: &Checkpoint| Row {
        key: checkpoint.number.to_string(),
        text: format!("{:>3}  {}", checkpoint.number, one_line(&checkpoint.prompt)),
        detail: format!(
            "{}  {}{}",
            count(checkpoint.files, "file"),
            checkpoint.tools.join(", "),
            if checkpoint.undone { "  undone" } else { "" }
        ),
        ..Row::default()
    };
    let with_files = found.iter().filter(|checkpoint| checkpoint.files > 0);
    with_files.rev().map(row).collect()
}

/// Lists the user's messages, newest first.
fn messages(found: &[Entry]) -> Vec<Row> {
    let row = |(seq, message): (u64, &Message)| Row {
        key: seq.to_string(),
        text: one_line(&message.user_text()),
        detail: String::new(),
        ..Row::default()
    };
    user_messages(found).into_iter().rev().map(row).collect()
}
