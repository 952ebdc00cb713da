//! Permission requests and questions that wait for the user's answer. They appear directly above the
//! composer, so that they never scroll out of sight.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};
use windlass_api::{Answer, Approval, ApprovalKey, CallId, Cleaning, Pressed, UserReply, Waiting};
use windlass_core::text::count;

use crate::diff;
use crate::text::{cut, one_line, plain, revealed, revealed_line, wrap};
use crate::theme::{Theme, Tone};

/// Minimum time a permission request must be visible before a key answers it.
const SEEN_MS: u64 = 700;
/// Same for a question, whose text answers do no harm.
const HEARD_MS: u64 = 250;
/// A key pressed within this time before the request appeared means the user was typing.
const TYPING_MS: u64 = 1_500;
/// Pause required from a user who was typing.
const PAUSE_MS: u64 = 600;
/// Maximum rows for the confirmation of a lasting grant.
const CONFIRMATION_ROWS: usize = 3;

/// Answers while part of the request is cut off.
const UNSEEN: &str = "  v show everything (needed before yes) · n no · t tell it";

/// A permission request or question waiting for an answer.
pub(crate) struct PendingRequest {
    call: CallId,
    kind: Kind,
    /// True if a sub-agent asks.
    is_of_agent: bool,
    /// Time it was first visible, and the pause in typing required since.
    shown: Option<(u64, u64)>,
    /// True if the user was typing when the request appeared and has not paused since.
    is_startling: bool,
    /// True if a letter came too early: it may start a word.
    was_startled: bool,
    sight: Sight,
}

/// Visibility of a request. Nobody can approve what they could not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// Part of the request was cut off.
    Part,
    /// The whole request is visible.
    Whole,
    /// The user opened the whole request in the pager.
    Viewed,
}

enum Kind {
    Permission(Box<Approval>),
    Question { text: String, options: Vec<String> },
}

impl PendingRequest {
    /// Returns the request of an event, if it is one.
    pub(crate) fn of(waiting: &Waiting) -> Option<Self> {
        let clean = Cleaning {
            line: revealed_line,
            text: revealed,
        };
        let (call, kind) = match waiting {
            Waiting::PermissionRequest { call_id, .. } => {
                let approval = Approval::of(waiting, clean)?;
                (call_id, Kind::Permission(Box::new(approval)))
            }
            Waiting::Question {
                call_id,
                text,
                options,
            } => {
                let kind = Kind::Question {
                    text: plain(text),
                    options: options.iter().map(|option| one_line(option)).collect(),
                };
                (call_id, kind)
            }
            Waiting::PermissionAnswer { .. } | Waiting::Queue { .. } => return None,
        };
        Some(Self {
            call: call.clone(),
            kind,
            is_of_agent: matches!(waiting, Waiting::PermissionRequest { agent: Some(_), .. }),
            shown: None,
            is_startling: true,
            was_startled: false,
            sight: Sight::Part,
        })
    }

    /// Returns true if a sub-agent asks: its request outlives the turn of the session.
    pub(crate) fn is_of_agent(&self) -> bool {
        self.is_of_agent
    }

    pub(crate) fn call(&self) -> &CallId {
        &self.call
    }

    pub(crate) fn is_permission(&self) -> bool {
        matches!(self.kind, Kind::Permission { .. })
    }

    /// True if the text being typed answers this request.
    pub(crate) fn takes_text(&self) -> bool {
        match &self.kind {
            Kind::Permission(approval) => approval.is_telling(),
            Kind::Question { .. } => true,
        }
    }

    /// Converts the typed text to an answer.
    pub(crate) fn answer(&self, text: String) -> UserReply {
        match self.kind {
            Kind::Permission { .. } => UserReply::Permission(Answer::NoBecause(text)),
            Kind::Question { .. } => UserReply::Text(text),
        }
    }

    /// True if the request was never visible.
    pub(crate) fn is_unseen(&self) -> bool {
        self.shown.is_none()
    }

    /// Marks the request as visible. `last_key_ms` is the time of the last key press.
    pub(crate) fn shown(&mut self, now_ms: u64, last_key_ms: u64) {
        let was_typing = last_key_ms > 0 && now_ms.saturating_sub(last_key_ms) < TYPING_MS;
        let pause = if was_typing { PAUSE_MS } else { 0 };
        self.shown.get_or_insert((now_ms, pause));
    }

    /// True if a key may be meant for something else: the request was not visible long enough, or the user
    /// was typing when it appeared and has not paused since. `last_key_ms` is the time of the previous key
    /// press.
    pub(crate) fn is_startling(&mut self, now_ms: u64, last_key_ms: u64) -> bool {
        let Some((shown, pause)) = self.shown else {
            return true;
        };
        let (seen, pause) = match self.kind {
            Kind::Permission { .. } if self.was_startled => (SEEN_MS, PAUSE_MS),
            Kind::Permission { .. } => (SEEN_MS, pause),
            Kind::Question { .. } => (HEARD_MS, pause),
        };
        let has_paused = now_ms.saturating_sub(last_key_ms.max(shown)) >= pause;
        let is_seen = now_ms.saturating_sub(shown) >= seen;
        self.is_startling &= !(has_paused && is_seen);
        self.is_startling
    }

    /// Records a letter that came too early.
    pub(crate) fn startle(&mut self) {
        self.was_startled = true;
    }

    /// True if the user was typing when the request appeared, and may continue.
    pub(crate) fn interrupts(&self) -> bool {
        matches!(self.kind, Kind::Question { .. }) || self.shown.is_some_and(|(_, pause)| pause > 0)
    }

    /// Begins a text that tells the model what to do instead. Returns false for a question.
    pub(crate) fn tell(&mut self) -> bool {
        match &mut self.kind {
            Kind::Permission(approval) => {
                approval.tell();
                true
            }
            Kind::Question { .. } => false,
        }
    }

    /// Time at which [`Self::tick`] must be called.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        match &self.kind {
            Kind::Permission(approval) => approval.due_ms(),
            Kind::Question { .. } => None,
        }
    }

    /// Answers with a letter that no other followed.
    pub(crate) fn tick(&mut self, now_ms: u64) -> Pressed {
        match &mut self.kind {
            Kind::Permission(approval) => approval.tick(now_ms),
            Kind::Question { .. } => Pressed::Ignored,
        }
    }

    /// Hint about the last key.
    pub(crate) fn hint(&self) -> Option<&str> {
        match &self.kind {
            Kind::Permission(approval) => approval.hint(),
            Kind::Question { .. } => None,
        }
    }

    /// Handles a key of a user who has seen the request. `is_empty` is true if the composer is empty.
    pub(crate) fn handle(&mut self, key: &KeyEvent, is_empty: bool, now_ms: u64) -> Reaction {
        if key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            return Reaction::Pressed(Pressed::Ignored);
        }
        match &mut self.kind {
            Kind::Permission(approval) => match approval_key(key.code) {
                Some(key) => Reaction::Pressed(approval.press(key, now_ms)),
                None => Reaction::Pressed(Pressed::Ignored),
            },
            Kind::Question { options, .. } => match key.code {
                KeyCode::Char(digit @ '1'..='9') if is_empty => {
                    let index = digit.to_digit(10).unwrap_or_default().saturating_sub(1) as usize;
                    match options.get(index) {
                        Some(option) => Reaction::Option(option.clone()),
                        None => Reaction::Pressed(Pressed::Ignored),
                    }
                }
                _ => Reaction::Pressed(Pressed::Ignored),
            },
        }
    }

    /// Records that the user opens the whole request in the pager.
    pub(crate) fn viewed(&mut self) {
        self.set_sight(Sight::Viewed);
    }

    fn set_sight(&mut self, sight: Sight) {
        self.sight = sight;
        if let Kind::Permission(approval) = &mut self.kind {
            approval.set_seen(sight != Sight::Part);
        }
    }

    /// Returns the whole request, for the pager.
    pub(crate) fn whole(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let (mut what, why) = self.body(columns, theme);
        what.extend(why);
        what
    }

    /// Renders the request and its answers in at most `rows` rows. If it does not fit, its middle is left
    /// out: the start, the end and the reasons stay visible.
    pub(crate) fn render(&mut self, columns: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
        let (mut lines, why) = self.body(columns, theme);
        let why_rows = why.len();
        lines.extend(why);
        let mut answers = self.answers(columns, theme);
        if lines.len() + answers.len() > rows && !self.takes_text() {
            answers = self.brief_answers(columns, theme);
        }
        let is_cut = lines.len() + answers.len() > rows;
        if self.sight != Sight::Viewed {
            self.set_sight(if is_cut { Sight::Part } else { Sight::Whole });
        }
        if self.sight == Sight::Part && !self.takes_text() {
            answers = answered_by(UNSEEN, columns, theme);
        } else if let Some(confirmation) = self.confirmation() {
            let most = CONFIRMATION_ROWS.min(rows.saturating_sub(1)).max(1);
            answers = answered_by(&confirmation, columns, theme);
            if answers.len() > most {
                answers.truncate(most);
                let last = answers.pop().unwrap_or_default();
                let text = cut(&format!("{last} …"), columns);
                answers.push(Line::styled(text, theme.style(Tone::Accent)));
            }
        }
        if lines.len() + answers.len() > rows {
            let kept = rows.saturating_sub(answers.len()).max(1) - 1;
            let why_kept = why_rows.min(kept / 2);
            let below = why_kept + (kept - why_kept) / 2;
            let left_out = kept - below..lines.len() - below;
            let hint = if self.takes_text() { "" } else { ": v shows all" };
            let text = format!("  … {}{hint}", count(left_out.len(), "more line"));
            let line = Line::styled(cut(&text, columns), theme.style(Tone::Warn));
            lines.splice(left_out, [line]);
        }
        lines.extend(answers);
        lines
    }

    /// Returns two parts: the action or question, then its details and reasons, or the options.
    fn body(&self, columns: usize, theme: Theme) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
        match &self.kind {
            Kind::Permission(approval) => permission(approval, columns, theme),
            Kind::Question { text, options } => question(text, options, columns, theme),
        }
    }

    /// Describes the lasting grant that needs confirmation.
    fn confirmation(&self) -> Option<String> {
        let Kind::Permission(approval) = &self.kind else {
            return None;
        };
        let (choice, question) = approval.confirmation()?;
        let letter = choice.letter();
        // The keys come first: a long scope is cut at its end.
        Some(format!("  {letter} or enter confirms, esc goes back: {question}"))
    }

    fn answers(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let text = match &self.kind {
            Kind::Permission(approval) if approval.is_telling() => {
                "  Tell it what to do instead; enter sends it, esc goes back."
            }
            Kind::Permission(approval) => return list(approval, columns, theme),
            Kind::Question { options, .. } if options.is_empty() => "  Type your answer; enter sends it.",
            Kind::Question { .. } => "  Press a number, or type your answer; enter sends it.",
        };
        answered_by(text, columns, theme)
    }

    /// Renders the answers of a permission request on as few rows as possible.
    fn brief_answers(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let Kind::Permission(approval) = &self.kind else {
            return self.answers(columns, theme);
        };
        let rows = approval.choices().iter().enumerate().map(|(row, choice)| {
            let text = format!("{} {}", choice.letter(), choice.brief());
            if row == approval.selected() {
                format!("[{text}]")
            } else {
                text
            }
        });
        let text = format!("  {}", rows.collect::<Vec<_>>().join(" · "));
        answered_by(&text, columns, theme)
    }
}

/// Effect of a key on a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Effect of a key that a permission request knows, or of a key that is not meant for the request.
    Pressed(Pressed),
    /// An option of a question was chosen.
    Option(String),
}

/// Converts a key for a permission request; `None` if the key has another meaning.
fn approval_key(code: KeyCode) -> Option<ApprovalKey> {
    Some(match code {
        KeyCode::Char(character) => ApprovalKey::Character(character),
        KeyCode::Up => ApprovalKey::Up,
        KeyCode::Down => ApprovalKey::Down,
        KeyCode::Enter => ApprovalKey::Enter,
        KeyCode::Esc => ApprovalKey::Escape,
        KeyCode::Tab
        | KeyCode::Backspace
        | KeyCode::Left
        | KeyCode::Right
        | KeyCode::Home
        | KeyCode::End
        | KeyCode::Delete
        | KeyCode::Insert => ApprovalKey::Other,
        _ => return None,
    })
}

type Parts = (Vec<Line<'static>>, Vec<Line<'static>>);

fn permission(approval: &Approval, columns: usize, theme: Theme) -> Parts {
    let (mut what, mut why) = (Vec::new(), Vec::new());
    let put = |lines: &mut Vec<_>, line: Line<'static>| lines.extend(wrap(&line, columns, "  "));
    let subjects = approval.subjects().join(" · ");
    let mark = Span::styled(theme.sign("▲ ", "! "), theme.style(Tone::Warn));
    let asked = Span::styled(approval.question(), theme.style(Tone::User));
    put(&mut what, Line::from(vec![mark, asked]));
    match approval.preview() {
        Some(preview) => {
            for line in previewed(preview, columns, theme) {
                put(&mut what, line);
            }
            if approval.subjects().len() > 1 {
                let text = format!("  that is: {subjects}");
                put(&mut why, Line::styled(text, theme.style(Tone::Dim)));
            }
        }
        None if subjects.is_empty() => {}
        None => put(&mut what, Line::raw(format!("  {subjects}"))),
    }
    for reason in approval.reasons() {
        put(
            &mut why,
            Line::styled(format!("  {reason}"), theme.style(Tone::Text)),
        );
    }
    (what, why)
}

fn question(text: &str, options: &[String], columns: usize, theme: Theme) -> Parts {
    let (mut what, mut why) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        let mark = if index == 0 { theme.sign("? ", "? ") } else { "  " };
        let mark = Span::styled(mark, theme.style(Tone::Accent));
        let line = Line::from(vec![mark, Span::raw(line.to_owned())]);
        what.extend(wrap(&line, columns, "  "));
    }
    for (index, option) in options.iter().enumerate() {
        let line = Line::raw(format!("  {}) {option}", index + 1));
        why.extend(wrap(&line, columns, "     "));
    }
    (what, why)
}

/// Renders the answers of a permission request as a list, below a blank row.
fn list(approval: &Approval, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let row = |(row, choice): (usize, &windlass_api::ApprovalChoice)| {
        let is_selected = row == approval.selected();
        let mark = if is_selected { theme.sign("›", ">") } else { " " };
        let text = format!("{mark} {}  {}", choice.letter(), choice.text());
        let tone = if is_selected { Tone::Accent } else { Tone::Text };
        wrap(&Line::styled(text, theme.style(tone)), columns, "     ")
    };
    let rows = approval.choices().iter().enumerate().flat_map(row);
    std::iter::once(Line::default()).chain(rows).collect()
}

/// Renders the answers.
fn answered_by(answers: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = if theme.ascii {
        answers.replace('·', "|")
    } else {
        answers.to_owned()
    };
    wrap(&Line::styled(text, theme.style(Tone::Accent)), columns, "  ")
}

/// Renders a preview: a diff in colour, a command verbatim.
fn previewed(preview: &str, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let is_diff = preview.starts_with("--- ") || preview.contains("\n@@ ");
    if is_diff {
        let lines = diff::render(preview, columns.saturating_sub(2).max(1), theme);
        let indent = |mut line: Line<'static>| {
            line.spans.insert(0, Span::raw("  "));
            line
        };
        return lines.into_iter().map(indent).collect();
    }
    let line = |line: &str| Line::styled(format!("  {line}"), theme.style(Tone::Code));
    preview.lines().map(line).collect()
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
