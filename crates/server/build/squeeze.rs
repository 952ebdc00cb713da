//! Leaves out what only people need from scripts and styles: comments and spaces.

/// Characters after which a slash starts a regular expression, not a division.
const BEFORE_REGEX: &str = "(,=:[!&|?{};\n<>+-*%";

/// Shortens a script. Strings, templates and regular expressions stay as they are; a line break stays where it may
/// end a statement.
pub(crate) fn script(text: &str) -> String {
    let mut squeezed = Squeezed {
        rest: text,
        out: String::with_capacity(text.len()),
        gap: "",
    };
    while let Some(next) = squeezed.rest.chars().next() {
        match next {
            '\'' | '"' => squeezed.keep(quoted(squeezed.rest, next)),
            '`' => squeezed.keep(template(squeezed.rest)),
            '/' if squeezed.rest.starts_with("//") => {
                squeezed.skip(squeezed.rest.find('\n').unwrap_or(squeezed.rest.len()));
            }
            '/' if squeezed.rest.starts_with("/*") => squeezed.skip(
                squeezed
                    .rest
                    .find("*/")
                    .map_or(squeezed.rest.len(), |end| end + 2),
            ),
            '/' if squeezed.before_regex() => squeezed.keep(regex(squeezed.rest)),
            '\n' => squeezed.space("\n"),
            next if next.is_whitespace() => squeezed.space(" "),
            next => squeezed.keep(next.len_utf8()),
        }
    }
    squeezed.out
}

struct Squeezed<'a> {
    rest: &'a str,
    out: String,
    /// White space since the last character: nothing, a space or a line break.
    gap: &'static str,
}

impl Squeezed<'_> {
    fn skip(&mut self, length: usize) {
        self.rest = &self.rest[length..];
    }

    fn space(&mut self, kind: &'static str) {
        if self.gap != "\n" {
            self.gap = kind;
        }
        self.skip(1);
    }

    fn keep(&mut self, length: usize) {
        let last = self.out.chars().next_back();
        let next = self.rest.chars().next();
        if let (Some(last), Some(next)) = (last, next) {
            let joins = |letter: char| letter.is_alphanumeric() || "_$".contains(letter);
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
        self.out.push_str(&self.rest[..length]);
        self.skip(length);
    }

    fn before_regex(&self) -> bool {
        let last = self.out.trim_end().chars().next_back();
        last.is_none_or(|last| BEFORE_REGEX.contains(last)) || self.out.ends_with("return")
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
