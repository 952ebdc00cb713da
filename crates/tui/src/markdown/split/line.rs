//! Classifies the first line of a block.

/// Minimum indent of indented code.
pub(super) const CODE_INDENT: usize = 4;
const TAB: usize = 4;
/// Maximum number of digits in a list number.
const MAX_DIGITS: usize = 9;

/// Kind of block a line starts, outside of lists and code blocks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blank,
    Heading,
    Rule,
    Fence(Fence),
    /// HTML that continues across blank lines.
    Html {
        end: &'static str,
        is_closed: bool,
    },
    Quote,
    Item {
        /// True if the item may directly follow a line of text.
        may_interrupt: bool,
    },
    Footnote,
    IndentedCode,
    Text,
}

impl Kind {
    pub(super) fn of(line: &str) -> Self {
        let (column, rest) = indented(line, 0);
        if rest.is_empty() {
            return Self::Blank;
        }
        if column >= CODE_INDENT {
            return Self::IndentedCode;
        }
        if let Some(fence) = Fence::opened_by(rest, column) {
            return Self::Fence(fence);
        }
        if let Some(end) = html_end(rest) {
            let is_closed = contains(rest, end);
            return Self::Html { end, is_closed };
        }
        if is_heading(rest) {
            Self::Heading
        } else if is_rule(rest) {
            Self::Rule
        } else if rest.starts_with('>') {
            Self::Quote
        } else if let Some((_, text)) = item(rest, column) {
            let begins_list = number(rest).is_none_or(|(digits, _)| digits == "1");
            Self::Item {
                may_interrupt: begins_list && !text.trim().is_empty(),
            }
        } else if rest.starts_with("[^") && rest.contains("]:") {
            Self::Footnote
        } else {
            Self::Text
        }
    }
}

/// The fence of a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    sign: char,
    length: usize,
    /// Indent of the fence, which is removed from the lines of code.
    indent: usize,
}

impl Fence {
    /// Parses an opening fence from a line without its indent.
    pub(super) fn opened_by(rest: &str, indent: usize) -> Option<Self> {
        let sign = rest.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
        let info = rest.trim_start_matches(sign);
        let length = rest.len() - info.len();
        let is_fence = length >= 3 && !(sign == '`' && info.contains('`'));
        is_fence.then_some(Self { sign, length, indent })
    }

    /// Returns the info string after the opening fence.
    pub(super) fn info(&self, line: &str) -> String {
        let info = line.trim_start().trim_start_matches(self.sign);
        info.trim().to_owned()
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        self.is_closed_within(line, 0)
    }

    /// True if the line closes the fence within a list item whose text starts at this column.
    pub(super) fn is_closed_within(&self, line: &str, column: usize) -> bool {
        let (indent, rest) = indented(line, 0);
        let after = rest.trim_start_matches(self.sign);
        indent < column + CODE_INDENT && rest.len() - after.len() >= self.length && after.trim().is_empty()
    }

    /// True if the incomplete line could still become a closing fence.
    pub(super) fn may_be_closed_by(&self, line: &str) -> bool {
        let (indent, rest) = indented(line, 0);
        indent < CODE_INDENT && rest.trim_start_matches(self.sign).trim().is_empty()
    }

    /// Removes the indent of the fence from a line.
    pub(super) fn content(&self, line: &str) -> String {
        let mut rest = line;
        for _ in 0..self.indent {
            rest = rest.strip_prefix(' ').unwrap_or(rest);
        }
        rest.to_owned()
    }
}

/// Indent of a line, in columns.
pub(super) fn indent(line: &str) -> usize {
    indented(line, 0).0
}

/// Returns the column of the first letter and the text from there, for a text that starts at the given
/// column.
pub(super) fn indented(text: &str, from: usize) -> (usize, &str) {
    let rest = text.trim_start_matches([' ', '\t']);
    let space = text.strip_suffix(rest).unwrap_or_default();
    let wider = |column: usize, letter: char| match letter {
        '\t' => column + TAB - column % TAB,
        _ => column + 1,
    };
    let column = space.chars().fold(from, wider);
    (column, rest.trim_end())
}

/// Parses a list marker at this column. Returns the column of the item's text, and that text with the space
/// before it.
pub(super) fn item(rest: &str, column: usize) -> Option<(usize, &str)> {
    if is_rule(rest) {
        return None;
    }
    let (mark, text) = match number(rest) {
        Some((digits, after)) => (digits.len() + 1, after.strip_prefix(['.', ')'])?),
        None => (1, rest.strip_prefix(['-', '*', '+'])?),
    };
    if !text.is_empty() && !text.starts_with([' ', '\t']) {
        return None;
    }
    let begin = column + mark;
    let (text_column, letters) = indented(text, begin);
    // With a lot of space after the marker, the item starts with indented code.
    let is_code = text_column > begin + CODE_INDENT;
    if letters.is_empty() || is_code {
        return Some((begin + 1, text.split_at_checked(1).map_or("", |(_, text)| text)));
    }
    Some((text_column, letters))
}

/// Splits off leading digits.
fn number(text: &str) -> Option<(&str, &str)> {
    let after = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.strip_suffix(after)?;
    (1..=MAX_DIGITS)
        .contains(&digits.len())
        .then_some((digits, after))
}

/// True if the line makes the text above it a heading.
pub(super) fn is_underline(line: &str) -> bool {
    let (column, rest) = indented(line, 0);
    let consists_of = |sign: char| rest.chars().all(|letter| letter == sign);
    column < CODE_INDENT && !rest.is_empty() && (consists_of('=') || consists_of('-'))
}

/// True if the line contains this text, ignoring case.
pub(super) fn contains(line: &str, end: &str) -> bool {
    line.to_ascii_lowercase().contains(end)
}

fn is_heading(rest: &str) -> bool {
    let text = rest.trim_start_matches('#');
    (1..=6).contains(&(rest.len() - text.len())) && (text.is_empty() || text.starts_with([' ', '\t']))
}

fn is_rule(rest: &str) -> bool {
    let Some(sign) = rest.chars().next().filter(|sign| matches!(sign, '-' | '*' | '_')) else {
        return false;
    };
    let is_part = |letter: char| letter == sign || matches!(letter, ' ' | '\t');
    rest.chars().all(is_part) && rest.chars().filter(|letter| *letter == sign).count() >= 3
}

/// Returns the end marker of HTML that starts here, for the kinds that a blank line does not end.
fn html_end(rest: &str) -> Option<&'static str> {
    let text = rest.strip_prefix('<')?.to_ascii_lowercase();
    if text.starts_with("!--") {
        return Some("-->");
    }
    if text.starts_with("![cdata[") {
        return Some("]]>");
    }
    if text.starts_with('?') {
        return Some("?>");
    }
    if text
        .strip_prefix('!')
        .is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_alphabetic()))
    {
        return Some(">");
    }
    let tags = [
        ("pre", "</pre>"),
        ("script", "</script>"),
        ("style", "</style>"),
        ("textarea", "</textarea>"),
    ];
    let is_tag = |tag: &str| {
        let after = text.strip_prefix(tag);
        after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '>']))
    };
    tags.into_iter().find(|(tag, _)| is_tag(tag)).map(|(_, end)| end)
}
