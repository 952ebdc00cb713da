//! Leaves out what only people need from scripts and styles: comments and spaces.

/// Characters after which a slash starts a regular expression, not a division.
const BEFORE_REGEX: &str = "(,=:[!&|?{};\n<>+-*%";

/// A piece of a script.
#[derive(Clone, Copy)]
pub(crate) enum Token<'a> {
    /// A name, a keyword or a number.
    Word(&'a str),
    /// A string, a template or a regular expression.
    Quoted(&'a str),
    /// White space or a comment.
    Blank(&'a str),
    /// A single character, or `?.`.
    Other(&'a str),
}

impl<'a> Token<'a> {
    pub(crate) fn text(self) -> &'a str {
        match self {
            Token::Word(text) | Token::Quoted(text) | Token::Blank(text) | Token::Other(text) => text,
        }
    }
}

/// Splits a script into its pieces; together they are the script.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let (mut rest, mut last) = (text, "");
    std::iter::from_fn(move || {
        let token = first(rest, last)?;
        rest = &rest[token.text().len()..];
        if !matches!(token, Token::Blank(_)) {
            last = token.text();
        }
        Some(token)
    })
}

/// Returns the first piece of a text that follows the piece `last`.
fn first<'a>(text: &'a str, last: &str) -> Option<Token<'a>> {
    let letter = text.chars().next()?;
    let length = |is_part: fn(char) -> bool| text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let until = |end: &str| text.find(end).map(|place| place + end.len());
    let before_regex = last == "return"
        || last
            .chars()
            .next_back()
            .is_none_or(|last| BEFORE_REGEX.contains(last));
    Some(match letter {
        '\'' | '"' => Token::Quoted(&text[..quoted(text, letter)]),
        '`' => Token::Quoted(&text[..template(text)]),
        '/' if text.starts_with("//") => Token::Blank(&text[..text.find('\n').unwrap_or(text.len())]),
        '/' if text.starts_with("/*") => Token::Blank(&text[..until("*/").unwrap_or(text.len())]),
        '/' if before_regex => Token::Quoted(&text[..regex(text)]),
        letter if letter.is_whitespace() => Token::Blank(&text[..length(char::is_whitespace)]),
        letter if joins(letter) => Token::Word(&text[..length(joins)]),
        _ if text.starts_with("?.") => Token::Other(&text[..2]),
        letter => Token::Other(&text[..letter.len_utf8()]),
    })
}

/// Returns true for the characters of names and numbers.
fn joins(letter: char) -> bool {
    letter.is_alphanumeric() || "_$".contains(letter)
}

/// Shortens a script. Strings, templates and regular expressions stay as they are; a line break stays where it may
/// end a statement.
pub(crate) fn script(text: &str) -> String {
    let mut squeezed = Squeezed {
        out: String::with_capacity(text.len()),
        gap: "",
    };
    for token in tokens(text) {
        match token {
            Token::Blank(blank) if blank.starts_with('/') => {}
            Token::Blank(blank) if blank.contains('\n') => squeezed.gap = "\n",
            Token::Blank(_) if squeezed.gap.is_empty() => squeezed.gap = " ",
            Token::Blank(_) => {}
            solid => squeezed.keep(solid.text()),
        }
    }
    squeezed.out
}

struct Squeezed {
    out: String,
    /// White space since the last piece: nothing, a space or a line break.
    gap: &'static str,
}

impl Squeezed {
    fn keep(&mut self, text: &str) {
        let last = self.out.chars().next_back();
        let next = text.chars().next();
        if let (Some(last), Some(next)) = (last, next) {
            let needed = match self.gap {
                "" => false,
                " " => joins(last) && joins(next) || last == next && "+-".contains(next),
                _ => !"{[(,;".contains(last) && !"}])".contains(next),
            };
            if needed {
                self.out.push_str(self.gap);
            }
        }
        self.gap = "";
        // The last statement of a block needs no semicolon.
        if next == Some('}') && last == Some(';') && !self.out.ends_with("));") {
            self.out.pop();
        }
        self.out.push_str(text);
    }
}

fn quoted(text: &str, quote: char) -> usize {
    end_of(text, 1, |letter| letter == quote)
}

fn regex(text: &str) -> usize {
    let mut in_class = false;
    let end = end_of(text, 1, |letter| {
        match letter {
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        letter == '/' && !in_class
    });
    let flags = text[end..].chars().take_while(char::is_ascii_alphabetic).count();
    end + flags
}

/// Returns the place after the first unescaped character that ends something.
fn end_of(text: &str, start: usize, mut ends: impl FnMut(char) -> bool) -> usize {
    let mut is_escaped = false;
    for (place, letter) in text.char_indices().skip_while(|(place, _)| *place < start) {
        if is_escaped {
            is_escaped = false;
        } else if letter == '\\' {
            is_escaped = true;
        } else if ends(letter) {
            return place + letter.len_utf8();
        }
    }
    text.len()
}

/// Returns the length of a template, with the templates in its expressions.
fn template(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut place, mut depth) = (1, 0_usize);
    while let Some(byte) = bytes.get(place) {
        match byte {
            b'\\' => place += 1,
            b'$' if depth == 0 && bytes.get(place + 1) == Some(&b'{') => {
                depth = 1;
                place += 1;
            }
            b'{' if depth > 0 => depth += 1,
            b'}' if depth > 0 => depth -= 1,
            b'`' if depth > 0 => place += template(&text[place..]) - 1,
            b'\'' | b'"' if depth > 0 => place += quoted(&text[place..], char::from(*byte)) - 1,
            b'`' => return place + 1,
            _ => {}
        }
        place += 1;
    }
    text.len()
}

/// Shortens a style sheet.
pub(crate) fn style(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    let lines = plain.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut out = lines.collect::<Vec<_>>().join("\n");
    for (long, short) in [
        (" { ", "{"),
        (" {\n", "{"),
        ("; }", "}"),
        (";\n}", "}"),
        ("; ", ";"),
        (": ", ":"),
        (", ", ","),
        ("\n", ""),
    ] {
        out = out.replace(long, short);
    }
    out
}
