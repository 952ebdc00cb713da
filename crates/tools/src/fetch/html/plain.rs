//! The words of a page, one block per line.

use super::scan::{Scanner, Token};
use super::tag::{Role, role};
use windlass_core::text::boundary_before;

/// Returns the text of a page with its entities as written; the flag is true if it was cut after `most`
/// bytes.
pub(super) fn words(html: &str, most: usize) -> (String, bool) {
    let mut words = Words::default();
    for token in Scanner::new(html) {
        match token {
            Token::Text(text) => words.text(text),
            Token::Title(text) => {
                words.text(text);
                words.gap(2);
            }
            Token::Open { name, .. } => words.open(role(&name)),
            Token::Close { name } => words.close(role(&name)),
        }
        if words.text.len() > most {
            words.text.truncate(boundary_before(&words.text, most));
            return (words.text, true);
        }
    }
    (words.text, false)
}

#[derive(Default)]
struct Words {
    text: String,
    preformatted: bool,
}

impl Words {
    fn text(&mut self, text: &str) {
        let text = text.replace('<', "&lt;");
        if self.preformatted {
            self.text.push_str(&text);
            return;
        }
        if text.starts_with(|letter: char| letter.is_ascii_whitespace()) {
            self.space();
        }
        for (index, word) in text.split_ascii_whitespace().enumerate() {
            if index > 0 {
                self.space();
            }
            self.text.push_str(word);
        }
        if text.ends_with(|letter: char| letter.is_ascii_whitespace()) {
            self.space();
        }
    }

    fn open(&mut self, role: Option<Role>) {
        match role {
            Some(Role::Item) => {
                self.gap(1);
                self.text.push_str("- ");
            }
            Some(Role::Cell) => self.space(),
            Some(Role::LineBreak) if self.preformatted => self.text.push('\n'),
            Some(Role::LineBreak | Role::Row) => self.gap(1),
            Some(Role::Preformatted) => {
                self.gap(2);
                self.preformatted = true;
            }
            role => self.apart(role),
        }
    }

    fn close(&mut self, role: Option<Role>) {
        match role {
            Some(Role::Item | Role::Row) => self.gap(1),
            Some(Role::Preformatted) => {
                self.preformatted = false;
                self.gap(2);
            }
            role => self.apart(role),
        }
    }

    fn apart(&mut self, role: Option<Role>) {
        let is_apart = matches!(
            role,
            Some(
                Role::Block
                    | Role::Heading(_)
                    | Role::List { .. }
                    | Role::Quote
                    | Role::Line
                    | Role::Table
                    | Role::Caption
            )
        );
        // The first block of a list item starts on the line of its bullet.
        if is_apart && self.text != "- " && !self.text.ends_with("\n- ") {
            self.gap(2);
        }
    }

    fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }

    /// Ends the line, and leaves an empty line if `lines` is two.
    fn gap(&mut self, lines: usize) {
        if self.preformatted {
            return;
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        if self.text.is_empty() {
            return;
        }
        while !self.text.ends_with(if lines > 1 { "\n\n" } else { "\n" }) {
            self.text.push('\n');
        }
    }
}
