//! Header of a conversation: program and version, folder, branch, model, mode, loaded instructions.

use ratatui::text::{Line, Span};

use crate::text::{cut, cut_middle, one_line, width, wrap};
use crate::theme::{Theme, Tone};

/// Minimum width for a frame.
const FRAME_FROM: usize = 34;
/// Minimum width inside the frame for hints.
const HINTS_FROM: usize = 56;
/// Maximum width of the frame.
const WIDEST: usize = 76;
/// Width of the labels.
const LABEL: usize = 14;

/// Contents of the header.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Header {
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    pub(crate) model: String,
    pub(crate) mode: String,
    /// EXT-1: files with instructions that the model reads.
    pub(crate) instructions: Vec<String>,
}

impl Header {
    pub(crate) fn lines(&self, columns: usize, theme: Theme) -> Vec<Line<'static>> {
        let dim = theme.style(Tone::Dim);
        let is_framed = columns >= FRAME_FROM;
        let inner = if is_framed {
            columns.min(WIDEST) - 4
        } else {
            columns
        };
        let mut rows = vec![vec![
            Span::styled("Windlass", theme.style(Tone::Heading)),
            Span::styled(format!(" {}", env!("CARGO_PKG_VERSION")), dim),
        ]];
        let mut row = |label: &str, text: String, note: String| {
            let label = cut(&format!("{label:<LABEL$}"), inner / 2);
            let room = inner.saturating_sub(width(&label) + width(&note));
            rows.push(vec![
                Span::styled(label, dim),
                Span::raw(cut_middle(&one_line(&text), room)),
                Span::styled(note, dim),
            ]);
        };
        let branch = self
            .branch
            .as_deref()
            .map(|branch| format!(" ({})", one_line(branch)));
        let branch = branch.map(|branch| cut(&branch, inner / 3)).unwrap_or_default();
        row("folder", self.folder.clone(), branch);
        let hint = |text: &str| {
            if inner < HINTS_FROM {
                String::new()
            } else {
                text.to_owned()
            }
        };
        row("model", self.model.clone(), hint("  /model changes it"));
        row("mode", self.mode.clone(), hint("  shift+tab changes it"));
        if !self.instructions.is_empty() {
            row("instructions", self.instructions.join(", "), String::new());
        }
        if !is_framed {
            let line = |spans: Vec<Span<'static>>| wrap(&Line::from(spans), columns, "").swap_remove(0);
            return rows.into_iter().map(line).collect();
        }
        let (bar, dash) = (theme.sign("│", "|"), theme.sign("─", "-"));
        let edge =
            |left: &str, right: &str| Line::styled(format!("{left}{}{right}", dash.repeat(inner + 2)), dim);
        let mut lines = vec![edge(theme.sign("╭", "+"), theme.sign("╮", "+"))];
        for spans in rows {
            let used: usize = spans.iter().map(|span| width(&span.content)).sum();
            let mut line = vec![Span::styled(format!("{bar} "), dim)];
            line.extend(spans);
            let pad = " ".repeat(inner.saturating_sub(used));
            line.push(Span::styled(format!("{pad} {bar}"), dim));
            lines.push(Line::from(line));
        }
        lines.push(edge(theme.sign("╰", "+"), theme.sign("╯", "+")));
        lines
    }
}

/// Returns a folder with the user's home as `~`.
pub(crate) fn at_home(place: &str, home: Option<&str>) -> String {
    let below = home
        .filter(|home| home.len() > 1)
        .and_then(|home| place.strip_prefix(home.trim_end_matches('/')));
    match below {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => place.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            folder: "~/work/a-project-with-a-long-name/and/deep/folders".to_owned(),
            branch: Some("main".to_owned()),
            model: "anthropic/claude-sonnet-4-5".to_owned(),
            mode: "auto".to_owned(),
            instructions: vec!["AGENTS.md".to_owned()],
        }
    }

    /// UI-2, EXT-1: the header names version, folder, branch, model, mode and instructions, at any width.
    #[test]
    fn the_header_says_where_one_is() {
        let text = |columns: usize| -> Vec<String> {
            let lines = header().lines(columns, Theme::default());
            lines.iter().map(ToString::to_string).collect()
        };
        let whole = text(100).join("\n");
        for part in [
            env!("CARGO_PKG_VERSION"),
            "~/work/a-project-with-a-long-name/and/deep/folders (main)",
            "anthropic/claude-sonnet-4-5",
            "auto  shift+tab",
            "instructions  AGENTS.md",
        ] {
            assert!(whole.contains(part), "{part}\n{whole}");
        }
        for columns in 1..100 {
            for line in text(columns) {
                assert!(width(&line) <= columns, "{columns}: {line}");
            }
        }
    }

    /// UI-2: a folder below the user's home is short.
    #[test]
    fn home_is_a_tilde() {
        let cases = [
            ("/home/me/x", Some("/home/me"), "~/x"),
            ("/home/me", Some("/home/me/"), "~"),
            ("/home/mel", Some("/home/me"), "/home/mel"),
            ("/srv", None, "/srv"),
            ("/srv", Some("/"), "/srv"),
        ];
        for (place, home, expected) in cases {
            assert_eq!(at_home(place, home), expected);
        }
    }
}
