//! Composes frames: lines for the scrollback, and the live area below.

use ratatui::text::{Line, Span};
use windlass_api::Wait;
use windlass_core::text::count;

use super::{App, Older};
use crate::keys::KeyAction;
use crate::menu;
use crate::paint::Picture;
use crate::request::PendingRequest;
use crate::text::{ascii, cut, one_line, width};
use crate::theme::{Theme, Tone};
use crate::transcript::seconds;

/// Maximum number of queued messages shown.
const QUEUE_ROWS: usize = 4;
/// Height from which there is room for rules around the input, and for the todos.
const FRAME_FROM: usize = 14;
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PLAIN_SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

/// One frame.
pub(crate) struct Frame {
    /// Lines to print into the scrollback, above the live area.
    pub(crate) above: Vec<Line<'static>>,
    pub(crate) picture: Picture,
    /// True if the picture fills the screen.
    pub(crate) is_full: bool,
}

impl Frame {
    /// Replaces everything outside ASCII.
    pub(crate) fn in_ascii(&self) -> Self {
        Self {
            above: self.above.iter().map(ascii_line).collect(),
            picture: Picture {
                rows: self.picture.rows.iter().map(ascii_line).collect(),
                cursor: self.picture.cursor,
            },
            is_full: self.is_full,
        }
    }
}

/// Replaces everything outside ASCII.
pub(crate) fn ascii_line(line: &Line<'static>) -> Line<'static> {
    let spans = line.spans.iter();
    let spans = spans.map(|span| Span::styled(ascii(&span.content).into_owned(), span.style));
    Line::from(spans.collect::<Vec<_>>()).style(line.style)
}

impl App {
    /// Returns up to `count` of the last lines in the scrollback.
    pub(crate) fn recent(&mut self, count: usize) -> Vec<Line<'static>> {
        self.transcript.recent(count, self.render_options())
    }

    /// Draws a frame. Lines returned for the scrollback are not returned again.
    pub(crate) fn frame(&mut self) -> Frame {
        self.redraw.is_dirty = false;
        let size = (
            usize::from(self.view.size.0).max(1),
            usize::from(self.view.size.1).max(1),
        );
        let mut choice = None;
        if let Some(overlay) = &mut self.overlay {
            let mut picture = overlay.render(size, self.view.theme);
            let is_unseen = self.requests.front().is_some_and(PendingRequest::is_unseen);
            if let Some(last) = picture.rows.last_mut().filter(|_| is_unseen) {
                let text = cut("a request is waiting for your answer · esc shows it", size.0);
                *last = Line::styled(text, self.view.theme.style(Tone::Warn));
            }
            if self.view.is_full || picture.rows.len() >= size.1 {
                picture.rows.resize(size.1, Line::default());
                return Frame {
                    above: Vec::new(),
                    picture,
                    is_full: true,
                };
            }
            choice = Some(picture);
        }
        if self.view.is_full {
            return self.full(size);
        }
        let (below, cursor) = match choice {
            // A short list takes the place of the input.
            Some(picture) => {
                let cursor = picture.cursor.map(|(x, y)| (usize::from(x), usize::from(y)));
                (picture.rows, cursor)
            }
            None => self.below(size),
        };
        if self.view.top.take().is_some() {
            self.transcript.forget_older();
        }
        let mut above = Vec::new();
        if std::mem::take(&mut self.redraw.is_emptied) {
            let room = size.1.saturating_sub(below.len() + 2);
            above = self.transcript.printed(room, self.render_options());
        }
        above.extend(self.transcript.settle(self.render_options()));
        let mut rows = self.transcript.live(self.render_options(), self.now());
        let room = size.1.saturating_sub(below.len() + 1);
        let skip = rows.len().saturating_sub(room);
        rows.drain(..skip);
        rows.push(Line::default());
        let picture = stacked(rows, below, cursor);
        Frame {
            above,
            picture,
            is_full: false,
        }
    }

    /// Draws the full screen: as much of the conversation as fits, and the live area.
    fn full(&mut self, size: (usize, usize)) -> Frame {
        let (below, cursor) = self.below(size);
        let room = size.1.saturating_sub(below.len() + 1);
        let mut rows = self.in_sight(room);
        self.mark_matches(&mut rows);
        rows.resize(room, Line::default());
        rows.push(self.rule(size.0));
        let picture = clipped(stacked(rows, below, cursor), size.1);
        Frame {
            above: Vec::new(),
            picture,
            is_full: true,
        }
    }

    /// Returns the visible rows of the conversation. The top row stays in place when rows are added below it.
    fn in_sight(&mut self, room: usize) -> Vec<Line<'static>> {
        if room == 0 {
            return Vec::new();
        }
        let (options, now) = (self.render_options(), self.now());
        match self.view.top.take() {
            Some((top, below)) if self.view.scroll > 0 => {
                let now_below = self.transcript.rows_from(top, options, now).saturating_sub(room);
                self.view.scroll = (self.view.scroll + now_below).saturating_sub(below);
            }
            Some(_) => self.transcript.forget_older(),
            None => {}
        }
        let mut seen = self.transcript.lines_above(self.view.scroll, room, options, now);
        if seen.lines.len() < room {
            // There is nothing to scroll to above the start.
            self.view.scroll = (seen.below + seen.lines.len()).saturating_sub(room);
            seen = self.transcript.lines_above(self.view.scroll, room, options, now);
            self.read_older();
        }
        self.view.top = (self.view.scroll > 0).then_some((seen.top, self.view.scroll));
        seen.lines
    }

    /// Reads older entries once the user scrolls up to them.
    fn read_older(&mut self) {
        if self.view.older != Older::Unread {
            return;
        }
        // Without a sequence number, the end of the session is still being read.
        if let Some(first) = self.transcript.first_seq().filter(|first| *first > 1) {
            self.view.older = Older::BeingRead;
            self.jobs.older(&self.session.info.id, first);
        }
    }

    fn rule(&self, columns: usize) -> Line<'static> {
        let theme = self.view.theme;
        let sign = theme.sign("─", "-");
        if let Some(row) = self
            .find_row(columns)
            .filter(|_| !matches!(self.view.older, Older::Failed(_)))
        {
            return row;
        }
        let text = match (&self.view.older, self.view.scroll) {
            (Older::Failed(why), _) => format!("{sign}{sign} cannot read earlier entries: {why}"),
            (_, 0) => sign.repeat(columns),
            (_, rows) => {
                let below = count(rows, "row");
                format!("{sign}{sign} {below} below {sign}{sign}")
            }
        };
        Line::styled(cut(&text, columns), theme.style(Tone::Dim))
    }

    /// Draws everything below the conversation, and returns the cursor position within it.
    fn below(&mut self, (columns, rows): (usize, usize)) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        let theme = self.view.theme;
        let mut lines = Vec::new();
        if rows > 3 {
            lines.extend(self.working(columns));
            lines.extend(self.waiting(columns));
        }
        let is_tall = rows > FRAME_FROM;
        if is_tall && self.requests.is_empty() {
            let progress = &self.session.progress;
            lines.extend(progress.todo_panel(self.session.is_busy, columns, theme));
        }
        let mut cursor = None;
        let now = self.now();
        let is_asked = match self.requests.front_mut() {
            Some(request) => {
                request.shown(now, self.input.presses.key_ms);
                // Leaves room for the status line below and one row of the conversation above; on small
                // screens nothing else.
                let around = match rows > 12 {
                    true => 5,
                    false => 2 + usize::from(request.takes_text()),
                };
                let room = rows.saturating_sub(lines.len() + around).max(2);
                if rows > 12 {
                    lines.push(Line::default());
                }
                lines.extend(request.render(columns, room, theme));
                !request.takes_text()
            }
            None => false,
        };
        if !is_asked {
            let room = (rows / 3).max(1).min(rows.saturating_sub(lines.len()).max(1));
            let drawn = self.composer.render(columns, room, theme);
            let rule = || Line::styled(theme.sign("─", "-").repeat(columns), theme.style(Tone::Dim));
            // Full screen has a rule above already.
            lines.extend((is_tall && !self.view.is_full).then(rule));
            cursor = Some((drawn.cursor.0, lines.len() + drawn.cursor.1));
            lines.extend(drawn.lines);
            lines.extend(is_tall.then(rule));
        }
        if let Some(menu) = &self.menu {
            let room = rows.saturating_sub(lines.len() + 1).min(menu::ROWS);
            lines.extend(menu.render(columns, room, theme));
        }
        if rows > 1 {
            lines.push(self.status_line(columns));
        }
        (lines, cursor)
    }

    fn status_line(&self, columns: usize) -> Line<'static> {
        let hint = match (&self.view.hint, self.composer.vim_mode()) {
            (Some(hint), _) => Some(hint.clone()),
            (None, Some(mode)) => Some(mode.to_owned()),
            (None, None) => None,
        };
        self.session
            .status
            .line(columns, self.view.theme, hint.as_deref())
    }

    /// Draws the progress line: status, elapsed time, and after a while the reasons for waiting.
    fn working(&self, columns: usize) -> Vec<Line<'static>> {
        if !self.session.is_busy {
            return Vec::new();
        }
        let theme = self.view.theme;
        let spins = self.redraw.spins;
        let sign = if theme.ascii {
            PLAIN_SPINNER[spins % PLAIN_SPINNER.len()]
        } else {
            SPINNER[spins % SPINNER.len()]
        };
        let for_ms = self.now().saturating_sub(self.session.since_ms);
        let for_ms = seconds(for_ms);
        let key = |action| self.input.keys.key(action);
        let stop = key(KeyAction::Stop);
        let text = match (self.requests.front(), self.session.progress.doing.as_str()) {
            // While a request is open, the other keys answer it.
            (Some(request), _) if request.is_permission() => {
                format!(" waiting for your approval · {for_ms} · {stop} to cancel")
            }
            (Some(_), _) => format!(" waiting for your answer · {for_ms} · {stop} to cancel"),
            (None, doing) => {
                let progress = &self.session.progress;
                let retry = progress.retry(self.now());
                let doing = match (&retry, doing) {
                    (Some(retry), _) => retry,
                    (None, "") => "working",
                    (None, doing) => doing,
                };
                let tokens = progress.tokens(theme).map(|tokens| format!(" · {tokens}"));
                let tokens = tokens.unwrap_or_default();
                let (send, queue) = (key(KeyAction::Send), key(KeyAction::Queue));
                format!(" {doing} · {for_ms}{tokens} · {stop} stops · {send} steers · {queue} queues")
            }
        };
        let line = Line::from(vec![
            Span::styled(sign, theme.style(Tone::Accent)),
            Span::styled(cut(&text, columns.saturating_sub(1)), theme.style(Tone::Dim)),
        ]);
        let mut lines = vec![line];
        // An open permission request is on the screen, and says itself what it is about.
        let is_asked = self.requests.front().is_some_and(PendingRequest::is_permission);
        let waits = self.session.waits.iter().filter(|_| !is_asked);
        for (depth, wait) in waits.enumerate() {
            let rows = wait_rows(wait, depth, columns);
            lines.extend(rows.map(|row| Line::styled(row, theme.style(Tone::Warn))));
        }
        lines
    }

    /// Draws the messages that wait to be delivered.
    fn waiting(&self, columns: usize) -> Vec<Line<'static>> {
        let theme = self.view.theme;
        let row = |what: &str, text: &str| waiting_row(what, text, columns, theme);
        let steers = self
            .session
            .steers
            .iter()
            .map(|message| row("next", &message.user_text()));
        let queue = self
            .session
            .queue
            .iter()
            .map(|message| row("queued", &message.user_text()));
        let mut lines: Vec<_> = steers.chain(queue).collect();
        let more = lines.len().saturating_sub(QUEUE_ROWS);
        lines.truncate(QUEUE_ROWS);
        if more > 0 {
            lines.push(row("", &format!("and {more} more")));
        }
        if !self.session.queue.is_empty() {
            let key = self.input.keys.key(KeyAction::TakeBack);
            let when = match self.session.is_busy {
                true => String::new(),
                false => format!(
                    "sent before your next message · {} sends now · ",
                    self.input.keys.key(KeyAction::Send)
                ),
            };
            lines.push(row("", &format!("{when}{key} edits the last")));
        }
        lines
    }
}

/// Formats the reason for a wait in one or two rows. The end condition stays visible even if the description
/// is cut.
fn wait_rows(wait: &Wait, depth: usize, columns: usize) -> impl Iterator<Item = String> {
    let indent = "  ".repeat(depth + 1);
    let head = format!("{indent}waiting for {}: ", wait.on.name());
    let (what, ends) = (one_line(&wait.what), one_line(&wait.ends));
    let since = format!(" · {}", seconds(wait.for_ms));
    let whole = format!("{head}{what}{since} · ends {ends}");
    if width(&whole) <= columns {
        return [Some(whole), None].into_iter().flatten();
    }
    let room = columns.saturating_sub(width(&head) + width(&since));
    let first = format!("{head}{}{since}", cut(&what, room));
    let second = format!("{indent}  ends {ends}");
    [Some(cut(&first, columns)), Some(cut(&second, columns))]
        .into_iter()
        .flatten()
}

fn waiting_row(what: &str, text: &str, columns: usize, theme: Theme) -> Line<'static> {
    let head = format!("  {what:<7}");
    let room = columns.saturating_sub(width(&head) + 1);
    let text = cut(&one_line(text), room);
    Line::styled(cut(&format!("{head} {text}"), columns), theme.style(Tone::Dim))
}

fn stacked(
    mut rows: Vec<Line<'static>>,
    below: Vec<Line<'static>>,
    cursor: Option<(usize, usize)>,
) -> Picture {
    let offset = rows.len();
    rows.extend(below);
    let cell = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
    Picture {
        rows,
        cursor: cursor.map(|(x, y)| (cell(x), cell(y + offset))),
    }
}

/// Cuts a picture that is taller than the terminal to its last rows.
fn clipped(mut picture: Picture, rows: usize) -> Picture {
    let skip = picture.rows.len().saturating_sub(rows);
    picture.rows.drain(..skip);
    let up = u16::try_from(skip).unwrap_or(u16::MAX);
    picture.cursor = picture.cursor.and_then(|(x, y)| Some((x, y.checked_sub(up)?)));
    picture
}
