//! The second reading of a word: from its characters, using the syntax tree only for the positions of
//! expansions. If the two readings disagree, the command is refused, because one of them differs from what
//! bash will do.

use std::ops::Range;

use super::word::Piece;

/// An expansion inside a word.
pub(super) struct Hole {
    pub(super) range: Range<usize>,
    /// True if it expands to several words even in quotes, as `"$@"` does.
    pub(super) list: bool,
    /// True if it never expands to several words, such as a process substitution.
    pub(super) single: bool,
}

/// Reads a word of the source. `offset` is the position of `text`, in the same coordinates as the holes.
pub(super) fn pieces(text: &str, offset: usize, holes: &[Hole]) -> Option<Vec<Piece>> {
    let mut lexer = Lexer {
        chars: text.char_indices().peekable(),
        out: Vec::new(),
        offset,
        holes,
    };
    lexer.word()?;
    Some(lexer.out)
}

struct Lexer<'a> {
    chars: std::iter::Peekable<std::str::CharIndices<'a>>,
    out: Vec<Piece>,
    offset: usize,
    holes: &'a [Hole],
}

impl Lexer<'_> {
    fn push(&mut self, value: char, quoted: bool) {
        self.out.push(Piece::Char { value, quoted });
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    /// Skips an expansion that starts here.
    fn hole(&mut self, quoted: bool) -> bool {
        let Some(&(at, _)) = self.chars.peek() else {
            return false;
        };
        let at = at + self.offset;
        let Some(hole) = self.holes.iter().find(|hole| hole.range.start == at) else {
            return false;
        };
        while self
            .chars
            .next_if(|(index, _)| index + self.offset < hole.range.end)
            .is_some()
        {}
        self.out.push(Piece::Unknown {
            several: hole.list || !(quoted || hole.single),
        });
        true
    }

    fn word(&mut self) -> Option<()> {
        loop {
            if self.hole(false) {
                continue;
            }
            let Some((_, c)) = self.chars.next() else {
                return Some(());
            };
            match c {
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.chars.next()?.1 {
                    '\n' => {}
                    escaped => self.push(escaped, true),
                },
                '$' => match self.peek() {
                    Some('\'') => {
                        self.chars.next();
                        self.ansi_quoted()?;
                    }
                    Some('"') => {
                        self.chars.next();
                        self.double_quoted()?;
                    }
                    next => self.dollar(next, false)?,
                },
                // The tree saw one word where bash sees several, or none.
                '`' | ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => return None,
                _ => self.push(c, false),
            }
        }
    }

    /// Handles a dollar sign that is not an expansion in the tree. Accepted only if bash agrees.
    fn dollar(&mut self, next: Option<char>, quoted: bool) -> Option<()> {
        let expands = next.is_some_and(|c| c.is_alphanumeric() || "_{([@*#?-$!".contains(c));
        if expands {
            return None;
        }
        self.push('$', quoted);
        Some(())
    }

    fn single_quoted(&mut self) -> Option<()> {
        loop {
            match self.chars.next()?.1 {
                '\'' => return Some(()),
                c => self.push(c, true),
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        loop {
            if self.hole(true) {
                continue;
            }
            match self.chars.next()?.1 {
                '"' => return Some(()),
                '`' => return None,
                '$' => {
                    let next = self.peek();
                    self.dollar(next, true)?;
                }
                '\\' => match self.chars.next()?.1 {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => self.push(c, true),
                    c => {
                        self.push('\\', true);
                        self.push(c, true);
                    }
                },
                c => self.push(c, true),
            }
        }
    }

    fn ansi_quoted(&mut self) -> Option<()> {
        let mut bytes = Vec::new();
        loop {
            match self.chars.next()?.1 {
                '\'' => break,
                '\\' => self.ansi_escape(&mut bytes)?,
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        // bash ends such a string at a NUL.
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        for c in String::from_utf8_lossy(bytes.get(..end)?).chars() {
            self.push(c, true);
        }
        Some(())
    }

    fn ansi_escape(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        let c = self.chars.next()?.1;
        let byte = match c {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '?' => u8::try_from(c).ok()?,
            'c' => {
                let control = self.chars.next()?.1;
                u8::try_from(control.to_ascii_uppercase()).ok()? & 0x1f
            }
            'x' => match self.digits(16, 2) {
                Some(value) => (value & 0xff) as u8,
                None => {
                    bytes.extend(b"\\x");
                    return Some(());
                }
            },
            'u' | 'U' => {
                let digits = if c == 'u' { 4 } else { 8 };
                let value = self.digits(16, digits).and_then(char::from_u32)?;
                bytes.extend(value.encode_utf8(&mut [0; 4]).bytes());
                return Some(());
            }
            '0'..='7' => {
                let first = c.to_digit(8)?;
                let mut value = first;
                for _ in 0..2 {
                    match self.digits(8, 1) {
                        Some(digit) => value = value * 8 + digit,
                        None => break,
                    }
                }
                (value & 0xff) as u8
            }
            other => {
                bytes.push(b'\\');
                bytes.extend(other.encode_utf8(&mut [0; 4]).bytes());
                return Some(());
            }
        };
        bytes.push(byte);
        Some(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.chars.next();
            value = Some(value.unwrap_or(0_u32).wrapping_mul(radix).wrapping_add(digit));
        }
        value
    }
}

/// Returns true if a line continuation between two tokens joins them into one word.
pub(super) fn is_joined(before: &str, gap: &str, after: &str) -> bool {
    let blank = |c: Option<char>| c.is_none_or(|c| matches!(c, ' ' | '\t' | '\n'));
    let mut rest = gap;
    let mut left = before.chars().last();
    while let Some((start, end)) = rest.split_once("\\\n") {
        if let Some(last) = start.chars().last() {
            left = Some(last);
        }
        let right = end.chars().next().or_else(|| after.chars().next());
        if !blank(left) && !blank(right) && right != Some('\\') {
            return true;
        }
        rest = end;
    }
    false
}
