//! Permission requests and questions that wait for the user's answer. They appear directly above the
//! composer, so that they never scroll out of sight.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};
use windlass_api::{Answer, CallId, Category, UserReply, Waiting};
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
/// Letters within this interval form a word.
const WORD_MS: u64 = 300;
/// Maximum rows for the description of a permanent grant.
const KEEPING_ROWS: usize = 3;

/// Answers to a permission request.
const YES_OR_NO: &str =
    "  y yes, once · s yes, for this session · a always in this folder · n no · t tell it what to do instead";
/// Short form for small screens.
const BRIEF: &str = "  y once · s session · a always · n no · t tell it";
/// Answers while part of the request is cut off.
const UNSEEN: &str = "  v show everything (needed before yes) · n no · t tell it";

/// A permission request or question waiting for an answer.
pub(crate) struct PendingRequest {
    call: CallId,
    kind: Kind,
    /// Time it was first visible, and the pause in typing required since.
    shown: Option<(u64, u64)>,
    /// True if the user was typing when the request appeared and has not paused since.
    is_startling: bool,
    /// True while the user writes instructions instead of answering yes or no.
    is_noting: bool,
    /// True while the user must confirm a permanent grant.
    is_keeping: bool,
    /// Time of the last letter that may have been an answer.
    letter_ms: Option<u64>,
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
    Permission {
        tool: String,
        category: Category,
        subjects: Vec<String>,
        reasons: Vec<String>,
        preview: Option<String>,
    },
    Question {
        text: String,
        options: Vec<String>,
    },
}

/// Outcome of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pressed {
    /// The key is not meant for the request.
    Nothing,
    /// The key was consumed.
    Taken,
    /// The request was answered.
    UserReply(UserReply),
    /// The user wants to see the whole request.
    View,
}

impl PendingRequest {
    /// Returns the request of an event, if it is one.
    pub(crate) fn of(waiting: &Waiting) -> Option<Self> {
        let (call, kind) = match waiting {
            Waiting::PermissionRequest {
                call_id,
                tool,
                category,
                subjects,
                reasons,
                preview,
            } => {
                let kind = Kind::Permission {
                    tool: revealed_line(tool),
                    category: *category,
                    subjects: subjects.iter().map(|subject| revealed_line(subject)).collect(),
                    reasons: reasons.iter().map(|reason| revealed_line(reason)).collect(),
                    preview: preview.as_deref().map(revealed),
                };
                (call_id, kind)
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
            shown: None,
            is_startling: true,
            is_noting: false,
            is_keeping: false,
            letter_ms: None,
            sight: Sight::Part,
        })
    }

    pub(crate) fn call(&self) -> &CallId {
        &self.call
    }

    pub(crate) fn is_permission(&self) -> bool {
        matches!(self.kind, Kind::Permission { .. })
    }

    /// True if the text being typed answers this request.
    pub(crate) fn takes_text(&self) -> bool {
        self.is_noting || matches!(self.kind, Kind::Question { .. })
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
            // A letter that came too early may start a word.
            Kind::Permission { .. } if self.letter_ms.is_some() => (SEEN_MS, PAUSE_MS),
            Kind::Permission { .. } => (SEEN_MS, pause),
            Kind::Question { .. } => (HEARD_MS, pause),
        };
        let has_paused = now_ms.saturating_sub(last_key_ms.max(shown)) >= pause;
        let is_seen = now_ms.saturating_sub(shown) >= seen;
        self.is_startling &= !(has_paused && is_seen);
        self.is_startling
    }

    /// True if the user was typing when the request appeared, and may continue.
    pub(crate) fn interrupts(&self) -> bool {
        matches!(self.kind, Kind::Question { .. }) || self.shown.is_some_and(|(_, pause)| pause > 0)
    }

    /// Records a letter. Returns true if it is part of a word, and therefore not an answer.
    pub(crate) fn is_in_a_word(&mut self, letter: char, now_ms: u64) -> bool {
        if self.takes_text() {
            return false;
        }
        let last = self.letter_ms.replace(now_ms);
        let is_in_a_word = last.is_some_and(|last| now_ms.saturating_sub(last) < WORD_MS);
        self.is_keeping &= !is_in_a_word || letter == 'a';
        is_in_a_word
    }

    /// Handles a key of a user who has seen the request. `is_empty` is true if the composer is empty.
    pub(crate) fn handle(&mut self, key: &KeyEvent, is_empty: bool) -> Pressed {
        if key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            return Pressed::Nothing;
        }
        match &self.kind {
            Kind::Permission { .. } if self.is_noting => {
                if key.code == KeyCode::Esc {
                    self.is_noting = false;
                    self.letter_ms = None;
                    return Pressed::Taken;
                }
                Pressed::Nothing
            }
            Kind::Permission { .. } => self.decide(key.code),
            Kind::Question { options, .. } => match key.code {
                KeyCode::Char(digit @ '1'..='9') if is_empty => {
                    let index = digit.to_digit(10).unwrap_or_default().saturating_sub(1) as usize;
                    match options.get(index) {
                        Some(option) => Pressed::UserReply(UserReply::Text(option.clone())),
                        None => Pressed::Nothing,
                    }
                }
                _ => Pressed::Nothing,
            },
        }
    }

    /// Handles a key for a permission request.
    fn decide(&mut self, code: KeyCode) -> Pressed {
        let was_keeping = std::mem::take(&mut self.is_keeping);
        match code {
            KeyCode::Char('y' | 's' | 'a') if self.sight == Sight::Part => Pressed::Taken,
            KeyCode::Char('y') => Pressed::UserReply(UserReply::Permission(Answer::Once)),
            KeyCode::Char('s') => Pressed::UserReply(UserReply::Permission(Answer::Session)),
            KeyCode::Char('a') if was_keeping => Pressed::UserReply(UserReply::Permission(Answer::Always)),
            KeyCode::Char('a') => {
                self.is_keeping = true;
                Pressed::Taken
            }
            KeyCode::Char('n') => Pressed::UserReply(UserReply::Permission(Answer::No)),
            KeyCode::Char('v') => {
                self.sight = Sight::Viewed;
                Pressed::View
            }
            KeyCode::Char('t') | KeyCode::Tab => {
                self.is_noting = true;
                Pressed::Taken
            }
            KeyCode::Esc if was_keeping => Pressed::Taken,
            // Nothing is sent or typed while a permission request is open.
            KeyCode::Char(_) | KeyCode::Enter | KeyCode::Backspace => Pressed::Taken,
            _ => Pressed::Nothing,
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
        let mut answers = answered_by(self.answers(), columns, theme);
        if lines.len() + answers.len() > rows && !self.takes_text() {
            answers = answered_by(BRIEF, columns, theme);
        }
        let is_cut = lines.len() + answers.len() > rows;
        if self.sight != Sight::Viewed {
            self.sight = if is_cut { Sight::Part } else { Sight::Whole };
        }
        if self.sight == Sight::Part && !self.takes_text() {
            answers = answered_by(UNSEEN, columns, theme);
        } else if let Some(keeping) = self.keeping() {
            let most = KEEPING_ROWS.min(rows.saturating_sub(1)).max(1);
            answers = answered_by(&keeping, columns, theme);
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
        let (mut what, mut why) = (Vec::new(), Vec::new());
        let put = |lines: &mut Vec<_>, line: Line<'static>, indent: &str| {
            lines.extend(wrap(&line, columns, indent));
        };
        match &self.kind {
            Kind::Permission {
                tool,
                category,
                subjects,
                reasons,
                preview,
            } => {
                let about = match preview {
                    Some(_) => String::new(),
                    None => format!(": {}", subjects.join(" · ")),
                };
                let mark = Span::styled(theme.sign("▲ ", "! "), theme.style(Tone::Warn));
                let name = Span::styled(tool.clone(), theme.style(Tone::User));
                let rest = Span::raw(format!(" asks to run ({}){about}", category_name(*category)));
                put(&mut what, Line::from(vec![mark, name, rest]), "  ");
                if let Some(preview) = preview {
                    for line in previewed(preview, columns, theme) {
                        put(&mut what, line, "  ");
                    }
                    if subjects.len() > 1 {
                        let text = format!("  that is: {}", subjects.join(" · "));
                        put(&mut why, Line::styled(text, theme.style(Tone::Dim)), "  ");
                    }
                }
                for reason in reasons {
                    let line = Line::styled(format!("  {reason}"), theme.style(Tone::Dim));
                    put(&mut why, line, "  ");
                }
            }
            Kind::Question { text, options } => {
                for (index, line) in text.lines().enumerate() {
                    let mark = if index == 0 { theme.sign("? ", "? ") } else { "  " };
                    let mark = Span::styled(mark, theme.style(Tone::Accent));
                    put(
                        &mut what,
                        Line::from(vec![mark, Span::raw(line.to_owned())]),
                        "  ",
                    );
                }
                for (index, option) in options.iter().enumerate() {
                    let line = Line::raw(format!("  {}) {option}", index + 1));
                    put(&mut why, line, "     ");
                }
            }
        }
        (what, why)
    }

    /// Describes the permanent grant that needs confirmation.
    fn keeping(&self) -> Option<String> {
        match &self.kind {
            Kind::Permission { tool, subjects, .. } if self.is_keeping => {
                let subjects = subjects.join(" · ");
                Some(format!(
                    "  press a again to always allow this in this folder, esc to go back: {tool} {subjects}"
                ))
            }
            _ => None,
        }
    }

    fn answers(&self) -> &'static str {
        match &self.kind {
            Kind::Permission { .. } if self.is_noting => {
                "  Tell it what to do instead; enter sends it, esc goes back."
            }
            Kind::Permission { .. } => YES_OR_NO,
            Kind::Question { options, .. } if options.is_empty() => "  Type your answer; enter sends it.",
            Kind::Question { .. } => "  Press a number, or type your answer; enter sends it.",
        }
    }
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

fn category_name(category: Category) -> String {
    format!("{category:?}").to_lowercase()
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
