//! Completion menu below the composer, for commands and files.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::text::{Line, Span};

use crate::text::{cut, cut_middle, one_line, width, wrap};
use crate::theme::{Theme, Tone};

/// Maximum number of visible choices.
pub(crate) const ROWS: usize = 8;
/// Maximum number of choices offered.
pub(crate) const MOST: usize = 50;

/// One choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// Text that replaces the query.
    pub(crate) insert: String,
    /// Text shown in the menu.
    pub(crate) label: String,
    /// Arguments, shown for the selected choice.
    pub(crate) arguments: String,
    /// One-line description.
    pub(crate) detail: String,
}

/// A list with a selection.
#[derive(Debug, Default)]
pub(crate) struct Menu {
    choices: Vec<Choice>,
    selected: usize,
    /// True if the user moved the selection.
    is_moved: bool,
    /// Shown instead of choices.
    note: Option<&'static str>,
}

impl Menu {
    /// Creates a menu; `None` if there are no choices.
    pub(crate) fn new(choices: Vec<Choice>) -> Option<Self> {
        (!choices.is_empty()).then_some(Self {
            choices,
            selected: 0,
            is_moved: false,
            note: None,
        })
    }

    /// Creates a menu that only says why it is empty.
    pub(crate) fn empty(note: &'static str) -> Self {
        Self {
            note: Some(note),
            ..Self::default()
        }
    }

    /// True if there is something to choose.
    pub(crate) fn has_choices(&self) -> bool {
        !self.choices.is_empty()
    }

    pub(crate) fn up(&mut self) {
        self.is_moved = true;
        self.selected = self.selected.checked_sub(1).unwrap_or(self.choices.len() - 1);
    }

    pub(crate) fn down(&mut self) {
        self.is_moved = true;
        self.selected = (self.selected + 1) % self.choices.len();
    }

    /// True if the user made a selection.
    pub(crate) fn is_moved(&self) -> bool {
        self.is_moved
    }

    pub(crate) fn selected(&self) -> Option<&Choice> {
        self.choices.get(self.selected)
    }

    pub(crate) fn render(&self, columns: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
        let dim = theme.style(Tone::Dim);
        if let Some(note) = self.note {
            return vec![Line::styled(cut(&format!("  {note}"), columns), dim)];
        }
        let rows = rows.min(ROWS);
        let widest = self.choices.iter().map(|choice| width(&choice.label)).max();
        let has_details = self.choices.iter().any(|choice| !choice.detail.is_empty());
        let most = if has_details {
            columns / 2
        } else {
            columns.saturating_sub(2)
        };
        let column = widest.unwrap_or_default().min(most);
        let chosen = self
            .selected()
            .map(|choice| chosen(choice, column, columns, theme))
            .unwrap_or_default();
        let is_long = self.choices.len() > rows;
        // The selected choice is whole, and the others fill the remaining rows.
        let others = rows.saturating_sub(chosen.len().max(1) + usize::from(is_long && rows > 2));
        let first = self.selected.saturating_sub(others);
        let mut lines = Vec::new();
        for (index, choice) in self.choices.iter().enumerate().skip(first).take(others + 1) {
            if index == self.selected {
                lines.extend(chosen.iter().cloned());
                continue;
            }
            let label = cut_middle(&choice.label, column);
            let gap = column.saturating_sub(width(&label)) + 2;
            let detail = cut(&one_line(&choice.detail), columns.saturating_sub(column + 4));
            lines.push(row(false, label, gap, detail, theme, columns));
        }
        lines.truncate(rows.max(1));
        if is_long && rows > 2 {
            let text = format!(
                "  {}/{} · ↑↓ select · tab completes",
                self.selected + 1,
                self.choices.len()
            );
            lines.truncate(rows - 1);
            lines.push(Line::styled(cut(&text, columns), dim));
        }
        lines
    }
}

/// Renders the selected choice: its whole description, and below it the arguments.
fn chosen(choice: &Choice, column: usize, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let label = cut_middle(&choice.label, column);
    let gap = column.saturating_sub(width(&label)) + 2;
    let indent = " ".repeat(column + 4);
    let room = columns.saturating_sub(column + 4);
    let mut details: Vec<String> = Vec::new();
    for text in [&choice.detail, &choice.arguments] {
        let text = one_line(text);
        if !text.is_empty() && room > 8 {
            details.extend(wrap(&Line::raw(text), room, "").iter().map(ToString::to_string));
        }
    }
    let mut details = details.into_iter();
    let first = details.next().unwrap_or_default();
    let mut lines = vec![row(true, label, gap, first, theme, columns)];
    lines.extend(details.map(|text| Line::styled(format!("{indent}{text}"), theme.style(Tone::Dim))));
    lines
}

/// Renders a row with a mark if it is selected; `gap` is the space between text and detail.
pub(crate) fn row(
    is_selected: bool,
    text: String,
    gap: usize,
    detail: String,
    theme: Theme,
    columns: usize,
) -> Line<'static> {
    row_with_lead(
        is_selected,
        std::iter::empty(),
        (text, gap, detail),
        theme,
        columns,
    )
}

/// Renders a row with spans between its mark and its text.
pub(crate) fn row_with_lead(
    is_selected: bool,
    lead: impl Iterator<Item = Span<'static>>,
    (text, gap, detail): (String, usize, String),
    theme: Theme,
    columns: usize,
) -> Line<'static> {
    let (mark, tone) = if is_selected {
        (theme.sign("▸ ", "> "), Tone::Accent)
    } else {
        ("  ", Tone::Text)
    };
    let gap = if detail.is_empty() { 0 } else { gap };
    let mut spans = vec![Span::styled(mark, theme.style(Tone::Accent))];
    spans.extend(lead);
    spans.extend([
        Span::styled(text, theme.style(tone)),
        Span::raw(" ".repeat(gap)),
        Span::styled(detail, theme.style(Tone::Dim)),
    ]);
    wrap(&Line::from(spans), columns, "").swap_remove(0)
}

/// Returns the items that match the letters, best first; without letters, all items in their order.
pub(crate) fn best<'a, T>(letters: &str, all: &'a [T], text: impl Fn(&T) -> &str) -> Vec<&'a T> {
    if letters.is_empty() {
        return all.iter().collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let pattern = Pattern::parse(letters, CaseMatching::Smart, Normalization::Smart);
    let mut buffer = Vec::new();
    let mut scored: Vec<(u32, usize, &T)> = Vec::new();
    for (index, item) in all.iter().enumerate() {
        let score = pattern.score(Utf32Str::new(text(item), &mut buffer), &mut matcher);
        scored.extend(score.map(|score| (score, index, item)));
    }
    // On equal scores, the shorter text wins; then the original order.
    scored.sort_by_key(|(score, index, item)| (std::cmp::Reverse(*score), text(item).len(), *index));
    scored.into_iter().map(|(_, _, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: a few letters find a file, best match first.
    #[test]
    fn letters_find_files() {
        let files = [
            "crates/core/src/run.rs",
            "README.md",
            "crates/cli/src/main.rs",
            "src/readme_test.rs",
        ];
        let found = |letters: &str| -> Vec<&str> {
            best(letters, &files, |file| *file).into_iter().copied().collect()
        };
        assert_eq!(found("README"), ["README.md"]);
        assert_eq!(found("readme").first(), Some(&"README.md"));
        assert_eq!(found("clima"), ["crates/cli/src/main.rs"]);
        assert_eq!(found("zzz"), Vec::<&str>::new());
        assert_eq!(found(""), files);
    }

    /// UI-2: names take at most half of the columns; the selected description is whole, with its arguments below.
    #[test]
    fn long_names_leave_room_for_what_they_are() {
        let choice = |label: &str| Choice {
            insert: String::new(),
            label: label.to_owned(),
            arguments: "[NAME]".to_owned(),
            detail: "abcdefghijklmnopqrstuvwxyz".to_owned(),
        };
        let menu = Menu::new(vec![choice("a-name-that-is-long"), choice("short")]).unwrap();
        let lines = menu.render(26, 4, Theme::default());
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "▸ a-na…-is-long  abcdefghi",
                "                 jklmnopqr",
                "                 stuvwxyz",
                "                 [NAME]",
            ]
        );
    }

    /// UI-2: the selected choice is always visible, and the selection wraps around.
    #[test]
    fn the_chosen_one_is_in_sight() {
        let choice = |number: usize| Choice {
            insert: number.to_string(),
            label: format!("choice {number}"),
            arguments: String::new(),
            detail: "what it is".to_owned(),
        };
        let mut menu = Menu::new((0..20).map(choice).collect()).unwrap();
        menu.up();
        let lines = menu.render(40, 4, Theme::default());
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[2].to_string(), "▸ choice 19  what it is");
        assert!(lines[3].to_string().contains("20/20"));
        menu.down();
        assert_eq!(menu.selected().unwrap().insert, "0");
        assert!(Menu::new(Vec::new()).is_none());
    }
}
