//! A list to choose from. With a preview of the selected row it fills the terminal.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::{Line, Span};

use super::{Overlay, OverlayAction, Step};
use crate::menu;
use crate::paint::Picture;
use crate::text::{cut, one_line, plain, width, wrap};
use crate::theme::{Palette, Theme, Tone};

/// Height of the terminal from which a list without a preview stands below the conversation.
const SHORT_FROM: usize = 16;

/// Subject of a picker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Sessions to resume.
    Sessions,
    /// Checkpoints to restore files from.
    Checkpoints,
    /// Messages to go back to.
    Messages,
    /// Colour themes.
    Themes,
    /// Providers to set up.
    Providers,
    /// Sub-agents of the session.
    Agents,
    /// Models to switch to.
    Models,
    /// Reasoning efforts.
    Efforts,
}

impl Subject {
    fn title(self) -> &'static str {
        match self {
            Self::Sessions => "Sessions",
            Self::Checkpoints => "Checkpoints: file changes by turn",
            Self::Messages => "Go back to an earlier message",
            Self::Themes => "Theme",
            Self::Providers => "Set up a model",
            Self::Agents => "Fleet",
            Self::Models => "Model from the next turn on",
            Self::Efforts => "Reasoning effort from the next turn on",
        }
    }

    fn keys(self) -> &'static str {
        match self {
            Self::Sessions => "enter resume · ctrl+f fork · type to search · esc back",
            Self::Checkpoints => {
                "enter restore files to before it · ctrl+f files and conversation · esc back"
            }
            Self::Messages => "enter conversation and files · ctrl+f conversation only · esc back",
            Self::Agents => "enter attach · ctrl+s steer · ctrl+f stop · type to search · esc back",
            Self::Models => "enter choose · type to search, or /model NAME for any other · esc back",
            Self::Themes | Self::Providers | Self::Efforts => "enter choose · type to search · esc back",
        }
    }

    /// Returns the text in place of an empty list.
    fn nothing(self) -> &'static str {
        match self {
            Self::Sessions => "  no sessions yet",
            Self::Checkpoints => "  no file changes yet",
            Self::Messages => "  no messages yet",
            Self::Agents => "  no agents yet",
            Self::Themes | Self::Providers | Self::Models | Self::Efforts => "  nothing to choose from",
        }
    }

    /// True if rows have a preview.
    fn has_preview(self) -> bool {
        matches!(self, Self::Sessions | Self::Checkpoints | Self::Agents)
    }

    /// True if the backend searches, instead of filtering the rows here.
    fn searches(self) -> bool {
        self == Self::Sessions
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Row {
    /// Identifier of the row.
    pub(crate) key: String,
    /// Spans before the main text, drawn as they are.
    pub(crate) lead: Vec<(String, Tone)>,
    /// Main text.
    pub(crate) text: String,
    /// Additional text at the right.
    pub(crate) detail: String,
    /// Text that is searched; empty for the main text.
    pub(crate) search: String,
}

impl Row {
    fn searched(&self) -> &str {
        match self.search.as_str() {
            "" => &self.text,
            search => search,
        }
    }

    /// Width of the lead and the main text.
    fn columns(&self) -> usize {
        self.lead_columns() + width(&indented_line(&self.text))
    }

    /// Returns the details. After a lead they are in columns already.
    fn shown_detail(&self) -> String {
        match self.lead.is_empty() {
            true => one_line(&self.detail),
            false => self.detail.clone(),
        }
    }

    fn lead_columns(&self) -> usize {
        self.lead.iter().map(|(text, _)| width(text)).sum()
    }
}

/// A list with a search text, a selection and a preview.
pub(crate) struct Picker {
    subject: Subject,
    rows: Vec<Row>,
    words: String,
    selected: usize,
    preview: Option<(String, Vec<Line<'static>>)>,
    /// Line that sums up all rows, in place of the title.
    summary: String,
    /// Key of the last requested preview.
    wanted: Option<String>,
    is_loading: bool,
    /// True if the list of themes is drawn in the colours of the selected one.
    shows_colours: bool,
}

impl Picker {
    /// Creates a picker whose rows are still loading.
    pub(crate) fn loading(subject: Subject) -> Self {
        Self {
            subject,
            rows: Vec::new(),
            words: String::new(),
            selected: 0,
            preview: None,
            summary: String::new(),
            wanted: None,
            is_loading: true,
            shows_colours: false,
        }
    }

    /// Draws in the colours of the selected theme.
    pub(crate) fn in_colours(mut self, shows_colours: bool) -> Self {
        self.shows_colours = shows_colours;
        self
    }

    pub(crate) fn new(subject: Subject, rows: Vec<Row>) -> Self {
        Self {
            rows,
            is_loading: false,
            ..Self::loading(subject)
        }
    }

    /// Selects a row.
    pub(crate) fn at(mut self, key: &str) -> Self {
        let found = self.rows.iter().position(|row| row.key == key);
        self.selected = found.unwrap_or_default();
        self
    }

    fn found(&self) -> Vec<&Row> {
        if self.subject.searches() {
            return self.rows.iter().collect();
        }
        menu::best(&self.words, &self.rows, Row::searched)
    }

    fn key(&self) -> Option<String> {
        if self.is_loading {
            return None;
        }
        self.found().get(self.selected).map(|row| row.key.clone())
    }

    /// Requests the preview after the selection moved.
    fn moved(&mut self) -> Step {
        let key = self.key();
        if !self.subject.has_preview() || key == self.wanted {
            return Step::Stay;
        }
        self.wanted.clone_from(&key);
        match key {
            Some(key) => Step::Want(OverlayAction::Preview(self.subject, key)),
            None => Step::Stay,
        }
    }

    /// Returns the theme to draw in: in the list of themes, the selected one.
    fn shown_theme(&self, theme: Theme) -> Theme {
        let selected = self.key().and_then(|key| Palette::named(&key));
        match selected.filter(|_| self.shows_colours) {
            Some(palette) => Theme { palette, ..theme },
            None => theme,
        }
    }

    fn typed(&mut self) -> Step {
        self.selected = 0;
        if self.subject.searches() {
            self.wanted = None;
            // The listed rows belong to the previous query.
            self.is_loading = true;
            return Step::Want(OverlayAction::Find(self.subject, self.words.clone()));
        }
        self.moved()
    }

    fn list(&self, columns: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
        let found = self.found();
        if found.is_empty() {
            let text = match (self.is_loading, self.words.is_empty()) {
                (true, _) => "  …",
                (false, true) => self.subject.nothing(),
                (false, false) => "  no matches",
            };
            return vec![Line::styled(cut(text, columns), theme.style(Tone::Dim))];
        }
        let first = self.selected.saturating_sub(rows.saturating_sub(1));
        let texts = found.iter().map(|row| row.columns());
        let details = found.iter().map(|row| width(&row.shown_detail()));
        let room = columns
            .saturating_sub(details.max().unwrap_or_default() + 4)
            .max(columns / 2);
        let column = texts.max().unwrap_or_default().min(room);
        let shown = found.iter().enumerate().skip(first).take(rows);
        let line = |(index, row): (usize, &&Row)| {
            let detail = row.shown_detail();
            // Details stand in one column, as far left as the texts allow.
            let text = cut(
                &indented_line(&row.text),
                column.saturating_sub(row.lead_columns()),
            );
            let gap = column.saturating_sub(row.lead_columns() + width(&text)) + 2;
            let lead = row.lead.iter();
            let lead = lead.map(|(text, tone)| Span::styled(text.clone(), theme.style(*tone)));
            menu::row_with_lead(index == self.selected, lead, (text, gap, detail), theme, columns)
        };
        shown.map(line).collect()
    }
}

/// Sanitises a text for one line, and keeps its indent.
fn indented_line(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indent), one_line(text))
}

impl Overlay for Picker {
    fn handle(&mut self, key: KeyEvent, rows: usize) -> Step {
        let last = self.found().len().saturating_sub(1);
        let page = (rows / 2).max(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return Step::Close,
            KeyCode::Char('c') if control => return Step::Close,
            KeyCode::Char('f') if control => {
                return self.key().map_or(Step::Stay, |key| {
                    Step::Do(OverlayAction::ChooseOther(self.subject, key))
                });
            }
            KeyCode::Char('s') if control && self.subject == Subject::Agents => {
                return self
                    .key()
                    .map_or(Step::Stay, |key| Step::Do(OverlayAction::Steer(key)));
            }
            KeyCode::Enter => {
                return self.key().map_or(Step::Stay, |key| {
                    Step::Do(OverlayAction::Choose(self.subject, key))
                });
            }
            KeyCode::Up => self.selected = self.selected.checked_sub(1).unwrap_or(last),
            KeyCode::Char('p') if control => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => {
                self.selected = if self.selected >= last {
                    0
                } else {
                    self.selected + 1
                }
            }
            KeyCode::Char('n') if control => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(page),
            KeyCode::PageDown => self.selected = (self.selected + page).min(last),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Char(letter) if !control => {
                self.words.push(letter);
                return self.typed();
            }
            KeyCode::Backspace if !self.words.is_empty() => {
                self.words.pop();
                return self.typed();
            }
            _ => {}
        }
        self.moved()
    }

    fn paste(&mut self, text: &str) -> Step {
        self.words.push_str(&one_line(text));
        self.typed()
    }

    fn rows(&mut self, of: Subject, rows: Vec<Row>) {
        if of == self.subject {
            self.rows = rows;
            self.is_loading = false;
            self.selected = self.selected.min(self.found().len().saturating_sub(1));
        }
    }

    fn sum_up(&mut self, of: Subject, summary: String) {
        if of == self.subject {
            self.summary = summary;
        }
    }

    fn preview(&mut self, key: &str, lines: Vec<Line<'static>>) {
        self.preview = Some((key.to_owned(), lines));
    }

    fn render(&mut self, (columns, rows): (usize, usize), theme: Theme) -> Picture {
        let theme = self.shown_theme(theme);
        let mut lines = Vec::with_capacity(rows);
        let title = match self.summary.as_str() {
            "" => cut(self.subject.title(), columns),
            summary => cut(&format!("{} · {summary}", self.subject.title()), columns),
        };
        lines.push(Line::styled(title, theme.style(Tone::Heading)));
        let search = format!("search: {}", plain(&self.words));
        let cursor = (width(&search), 1);
        lines.push(Line::raw(cut(&search, columns)));
        let room = rows.saturating_sub(3);
        let is_short = !self.subject.has_preview() && rows > SHORT_FROM;
        let list_rows = match (self.subject.has_preview(), is_short) {
            (true, _) => (room / 2).max(1),
            (false, true) => (rows / 2).saturating_sub(5).clamp(1, self.rows.len().max(1)),
            (false, false) => room,
        };
        lines.extend(self.list(columns, list_rows, theme));
        if self.subject == Subject::Themes {
            lines.push(Line::default());
            lines.extend(
                sample(theme)
                    .into_iter()
                    .map(|(tone, text)| Line::styled(cut(text, columns), theme.style(tone))),
            );
        }
        if self.subject.has_preview() && !self.found().is_empty() {
            lines.resize((2 + list_rows).max(lines.len()), Line::default());
            let rule = theme.sign("─", "-").repeat(columns);
            lines.push(Line::styled(rule, theme.style(Tone::Dim)));
            let key = self.key();
            if let Some((of, preview)) = &self.preview
                && Some(of) == key.as_ref()
            {
                let room = rows.saturating_sub(lines.len() + 1);
                let broken = preview.iter().flat_map(|line| wrap(line, columns, "  "));
                lines.extend(broken.take(room));
            }
        }
        lines.truncate(rows.saturating_sub(1));
        match is_short {
            // A list without a preview leaves the conversation in sight.
            true => lines.insert(
                0,
                Line::styled(theme.sign("─", "-").repeat(columns), theme.style(Tone::Dim)),
            ),
            false => lines.resize(rows.saturating_sub(1), Line::default()),
        }
        let cursor = (cursor.0, cursor.1 + usize::from(is_short));
        lines.push(Line::styled(
            cut(self.subject.keys(), columns),
            theme.style(Tone::Dim),
        ));
        let cell = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
        let is_in_sight = cursor.0 < columns && cursor.1 < rows;
        Picture {
            rows: lines,
            cursor: is_in_sight.then(|| (cell(cursor.0), cell(cursor.1))),
        }
    }
}

/// Returns lines that show the colours of a theme.
fn sample(theme: Theme) -> [(Tone, &'static str); 6] {
    [
        (
            Tone::User,
            theme.sign("  › fix the failing test", "  > fix the failing test"),
        ),
        (Tone::Text, "  The sum starts at one."),
        (Tone::Removed, "  12 -    let mut sum = 1;"),
        (Tone::Added, "  12 +    let mut sum = 0;"),
        (Tone::Good, "  all tests passed"),
        (Tone::Warn, "  the branch is behind main"),
    ]
}
