//! Words after quoting and brace expansion, including the parts that are only known at run time.

/// Maximum number of words that the braces of one word may produce.
const MAX_BRACE_WORDS: usize = 256;

/// Maximum product of braces and characters in one word.
const MAX_BRACE_WORK: usize = 200_000;

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    source: String,
    value: Option<String>,
    prefix: String,
    several: bool,
    glob: bool,
    bare: bool,
}

/// A character of a word, or a part that is only known at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Char { value: char, quoted: bool },
    Unknown { several: bool },
}

impl Word {
    /// Returns the word as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the argument that the program receives, if it is known before the command runs. A file name
    /// pattern is returned as the pattern.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Returns true if the word is a pattern that the shell replaces with file names.
    pub fn is_glob(&self) -> bool {
        self.glob
    }

    /// Returns the argument that the program receives, if it does not depend on files or variables.
    pub(super) fn fixed(&self) -> Option<&str> {
        self.value.as_deref().filter(|_| !self.glob)
    }

    /// Returns true if the word may expand to no word, or to more than one.
    pub(super) fn may_be_several(&self) -> bool {
        self.several
    }

    /// Returns true if the expanded word may be an option.
    pub(super) fn may_be_option(&self) -> bool {
        self.value.is_none() && (self.prefix.is_empty() || self.prefix.starts_with('-'))
    }

    /// Returns true if the word starts with a pattern, so that it may expand to any file name.
    pub(super) fn starts_with_pattern(&self) -> bool {
        self.glob && self.prefix.starts_with(['*', '?', '['])
    }

    /// Returns true if the word's known prefix starts with `start`.
    pub(super) fn starts_with(&self, start: char) -> bool {
        self.prefix.starts_with(start)
    }

    /// Returns the known prefix of the word.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns true if the word is unquoted, so that the shell may treat it as a reserved word.
    pub(super) fn is_bare(&self) -> bool {
        self.bare
    }

    /// Returns the word in its canonical spelling.
    pub(super) fn text(&self) -> String {
        match &self.value {
            Some(value) if self.glob && value.chars().all(|c| is_plain(c) || "*?[]!".contains(c)) => {
                value.clone()
            }
            Some(value) if !self.glob => quoted(value),
            _ => self.source.clone(),
        }
    }

    /// Creates a word with exactly this value.
    pub(super) fn literal(value: &str) -> Self {
        Self {
            source: value.to_owned(),
            value: Some(value.to_owned()),
            prefix: value.to_owned(),
            several: false,
            glob: false,
            bare: false,
        }
    }

    /// Creates a word that is not known yet, such as those that `xargs` reads.
    pub(super) fn unknown(source: &str, several: bool) -> Self {
        Self {
            source: source.to_owned(),
            value: None,
            prefix: String::new(),
            several,
            glob: false,
            bare: false,
        }
    }

    /// Returns the same word after a wrapper replaced `marker` in it with something unknown.
    pub(super) fn with_unknown(&self, marker: &str) -> Self {
        match self.value.as_deref().and_then(|value| value.split_once(marker)) {
            Some((before, _)) if !marker.is_empty() => Self {
                prefix: before.to_owned(),
                value: None,
                ..self.clone()
            },
            _ => self.clone(),
        }
    }

    /// Returns the words that brace expansion makes of these pieces; `None` if there are too many.
    pub(super) fn from_pieces(source: &str, pieces: &[Piece]) -> Option<Vec<Self>> {
        let expanded = braces(pieces, MAX_BRACE_WORDS)?;
        let alone = expanded.len() == 1;
        let words = expanded
            .into_iter()
            .map(|pieces| Self::from_one(source, alone, &pieces));
        Some(words.collect())
    }

    fn from_one(source: &str, alone: bool, pieces: &[Piece]) -> Self {
        let mut prefix = String::new();
        let (mut unknown, mut several) = (false, false);
        for piece in pieces {
            match *piece {
                Piece::Char { value, .. } => {
                    if !unknown {
                        prefix.push(value);
                    }
                }
                Piece::Unknown { several: more } => {
                    unknown = true;
                    several |= more;
                }
            }
        }
        let value = (!unknown).then(|| prefix.clone());
        Self {
            source: match &value {
                Some(value) if !alone => quoted(value),
                _ => source.to_owned(),
            },
            value,
            prefix,
            several,
            glob: is_glob(pieces),
            bare: !unknown && !source.contains(['\'', '"', '\\', '$']),
        }
    }
}

/// Returns the last component of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Quotes a value for a shell.
pub(super) fn quoted(value: &str) -> String {
    if !value.is_empty() && value.chars().all(is_plain) || matches!(value, "{}" | "!" | "[" | "]") {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

/// Returns true if a character needs no quotes.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_-./:=@%+,~^".contains(c)
}

fn is_glob(pieces: &[Piece]) -> bool {
    let mut open = false;
    for piece in pieces {
        if let Piece::Char { value, quoted: false } = piece {
            match value {
                '*' | '?' => return true,
                '[' => open = true,
                ']' if open => return true,
                _ => {}
            }
        }
    }
    false
}

fn bare(piece: Piece) -> Option<char> {
    match piece {
        Piece::Char { value, quoted: false } => Some(value),
        _ => None,
    }
}

/// Expands the braces of a word into at most `room` words.
fn braces(pieces: &[Piece], room: usize) -> Option<Vec<Vec<Piece>>> {
    let mut done: Vec<Vec<Piece>> = Vec::new();
    let mut left = vec![pieces.to_vec()];
    // Each brace is examined together with everything after it.
    let opening = pieces.iter().filter(|piece| bare(**piece) == Some('{')).count();
    if opening * pieces.len() > MAX_BRACE_WORK {
        return None;
    }
    while let Some(next) = left.pop() {
        if done.len() + left.len() >= room {
            return None;
        }
        match first_brace(&next) {
            None => done.push(next),
            // In reverse, so that the first alternative is taken next and the order is preserved.
            Some(alternatives) => left.extend(alternatives.into_iter().rev()),
        }
    }
    Some(done)
}

/// Expands the first brace group; `None` if there is none.
fn first_brace(pieces: &[Piece]) -> Option<Vec<Vec<Piece>>> {
    let starts = pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| bare(**piece) == Some('{'));
    for (start, _) in starts {
        let Some(group) = Group::at(pieces, start) else {
            continue;
        };
        let (before, after) = (pieces.get(..start)?, pieces.get(group.end + 1..)?);
        let with = |middle: &[Piece]| [before, middle, after].concat();
        if group.commas.is_empty() {
            // A sequence such as {a..z}: too rare to be worth expanding.
            return Some(vec![with(&[Piece::Unknown { several: true }])]);
        }
        let mut from = start + 1;
        let mut words = Vec::new();
        for end in group.commas.into_iter().chain([group.end]) {
            words.push(with(pieces.get(from..end)?));
            from = end + 1;
        }
        return Some(words);
    }
    None
}

struct Group {
    commas: Vec<usize>,
    end: usize,
}

impl Group {
    fn at(pieces: &[Piece], start: usize) -> Option<Self> {
        let mut commas = Vec::new();
        let (mut depth, mut dots, mut sequence) = (0_usize, 0, false);
        for (index, piece) in pieces.iter().enumerate().skip(start) {
            let value = bare(*piece);
            dots = if value == Some('.') { dots + 1 } else { 0 };
            match value {
                Some('{') => depth += 1,
                Some(',') if depth == 1 => commas.push(index),
                Some('.') if depth == 1 && dots == 2 => sequence = true,
                Some('}') if depth == 1 => {
                    return (sequence || !commas.is_empty()).then_some(Self { commas, end: index });
                }
                Some('}') => depth -= 1,
                _ => {}
            }
        }
        None
    }
}
