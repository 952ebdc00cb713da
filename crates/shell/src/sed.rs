//! `sed`, whose scripts can write files and run commands.

use std::iter::Peekable;
use std::str::Chars;

use windlass_core::tool::Category;

use super::options::{self, Grammar, Unclear};
use super::reader::Reader;
use super::word::Word;

const OPTIONS: Grammar = Grammar(
    "-a -b -e: -E -f: -i? -I? -l: -n -r -s -u -z --binary --debug --expression: --file: --follow-symlinks --in-place? \
     --line-length: --null-data --posix --quiet --regexp-extended --sandbox --separate --silent --unbuffered \
     --zero-terminated",
);

/// Judges `sed`: a read, unless a file is edited or a command of its script has an effect.
pub(super) fn judge(reader: &mut Reader<'_>, arguments: &[Word]) {
    let parsed = match options::parse_all(OPTIONS, arguments, false) {
        Ok(parsed) => parsed,
        Err(Unclear::Word(_)) => return unclear(reader, arguments),
        Err(Unclear::Option(_)) => {
            for word in arguments {
                reader.foreign_code(word.prefix(), Category::Admin);
            }
            return;
        }
    };
    let scripts = parsed
        .given
        .iter()
        .filter(|given| matches!(given.name.as_str(), "e" | "expression"));
    let mut scripts: Vec<Word> = scripts.filter_map(|given| given.value.clone()).collect();
    let from_file = parsed.has(&["f", "file"]);
    let in_place = parsed.has(&["i", "I", "in-place"]);
    let mut files = parsed.operands.as_slice();
    if scripts.is_empty() && !from_file {
        // On some systems the suffix is a word of its own: `sed -i '' 's/a/b/' f`.
        let empty_suffix = in_place && files.first().and_then(Word::value) == Some("");
        let (taken, rest) = files
            .split_at_checked(if empty_suffix { 2 } else { 1 })
            .unwrap_or((files, &[]));
        scripts.extend(taken.iter().cloned());
        files = rest;
    }
    if from_file {
        reader.raise(Category::Admin);
    }
    if in_place {
        reader.raise(Category::Write);
        for path in files.iter().filter_map(Word::value) {
            reader.writes_to(path);
        }
    }
    let mut text = String::new();
    for script in &scripts {
        match script.value() {
            Some(script) => text.push_str(script),
            None => reader.raise(Category::Admin),
        }
        text.push('\n');
    }
    script_runs(reader, &text);
}

/// Judges a command with words that are only known at run time. Its scripts are those that are known.
fn unclear(reader: &mut Reader<'_>, arguments: &[Word]) {
    let known = arguments.iter().take_while(|word| word.value().is_some());
    let known: Vec<Word> = known.cloned().collect();
    match options::parse_all(OPTIONS, &known, false) {
        Ok(parsed) if !parsed.operands.is_empty() || parsed.has(&["e", "expression"]) => {
            judge(reader, &known);
            reader.raise(Category::Write);
        }
        _ => reader.raise(Category::Admin),
    }
}

fn script_runs(reader: &mut Reader<'_>, script: &str) {
    if !is_harmless(script) {
        reader.foreign_code(script, Category::Admin);
    }
}

/// Returns true if every command of a script only selects, changes or prints lines.
pub(super) fn is_harmless(script: &str) -> bool {
    let mut script = Script {
        rest: script.chars().peekable(),
    };
    script.commands().is_some()
}

struct Script<'s> {
    rest: Peekable<Chars<'s>>,
}

impl Script<'_> {
    /// Reads all commands; `None` if one has an effect or is not understood.
    fn commands(&mut self) -> Option<()> {
        loop {
            self.skip(|c| c.is_whitespace() || c == ';');
            if self.rest.peek().is_none() {
                return Some(());
            }
            self.addresses()?;
            self.skip(|c| matches!(c, ' ' | '\t' | '!'));
            self.command()?;
        }
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.rest.next_if(|c| wanted(*c)).is_some() {}
    }

    fn addresses(&mut self) -> Option<()> {
        if !self.address()? {
            return Some(());
        }
        self.skip(|c| matches!(c, ' ' | '\t'));
        if self.rest.next_if_eq(&',').is_some() {
            self.skip(|c| matches!(c, ' ' | '\t'));
            if self.rest.next_if(|c| matches!(c, '+' | '~')).is_some() {
                self.skip(|c| c.is_ascii_digit());
            } else if !self.address()? {
                return None;
            }
        }
        Some(())
    }

    /// Reads an address, if there is one.
    fn address(&mut self) -> Option<bool> {
        match self.rest.peek().copied() {
            Some('$') => {
                self.rest.next();
            }
            Some(c) if c.is_ascii_digit() => {
                self.skip(|c| c.is_ascii_digit());
                if self.rest.next_if_eq(&'~').is_some() {
                    self.skip(|c| c.is_ascii_digit());
                }
            }
            Some('/') => {
                self.rest.next();
                pattern(&mut self.rest, '/')?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            Some('\\') => {
                self.rest.next();
                let border = self.rest.next().filter(|c| !matches!(c, '\\' | '\n'))?;
                pattern(&mut self.rest, border)?;
                self.skip(|c| matches!(c, 'I' | 'M'));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Reads a replacement, which has no brackets and may contain escaped line ends.
    fn replacement(&mut self, border: char) -> Option<()> {
        loop {
            match self.rest.next()? {
                c if c == border => return Some(()),
                '\\' => {
                    self.rest.next()?;
                }
                '\n' => return None,
                _ => {}
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        match self.rest.next()? {
            '{' => return Some(()),
            '}' | 'p' | 'P' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'n' | 'N' | '=' | 'z' | 'F' => {}
            'q' | 'Q' | 'l' => {
                self.skip(|c| matches!(c, ' ' | '\t'));
                self.skip(|c| c.is_ascii_digit());
            }
            's' => {
                let border = self.border()?;
                pattern(&mut self.rest, border)?;
                self.replacement(border)?;
                self.skip(|c| c.is_ascii_digit() || "gpiImM".contains(c));
            }
            'y' => {
                let border = self.border()?;
                self.replacement(border)?;
                self.replacement(border)?;
            }
            'b' | 't' | 'T' | ':' => {
                self.skip(|c| matches!(c, ' ' | '\t'));
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
            }
            'a' | 'i' | 'c' => return self.lines(),
            '#' => {
                self.skip(|c| c != '\n');
                return Some(());
            }
            _ => return None,
        }
        self.end()
    }

    fn border(&mut self) -> Option<char> {
        self.rest.next().filter(|c| !matches!(c, '\\' | '\n'))
    }

    /// Reads text that ends at a line end without a backslash.
    fn lines(&mut self) -> Option<()> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => {
                    self.rest.next();
                }
                '\n' => break,
                _ => {}
            }
        }
        Some(())
    }

    /// Checks that a command ends here.
    fn end(&mut self) -> Option<()> {
        self.skip(|c| matches!(c, ' ' | '\t' | '\r'));
        match self.rest.peek() {
            None | Some(';' | '\n' | '}' | '#') => Some(()),
            Some(_) => None,
        }
    }
}

/// Reads a pattern up to an unescaped border. Versions differ on a border inside brackets and on the end of
/// brackets, so that such a pattern is unclear.
pub(super) fn pattern(rest: &mut Peekable<Chars<'_>>, border: char) -> Option<()> {
    if matches!(border, '[' | ']' | '^') {
        return None;
    }
    loop {
        match rest.next()? {
            c if c == border => return Some(()),
            '\\' => {
                rest.next()?;
            }
            '[' => brackets(rest, border)?,
            '\n' => return None,
            _ => {}
        }
    }
}

/// Reads the longest bracket expression.
fn brackets(rest: &mut Peekable<Chars<'_>>, border: char) -> Option<()> {
    rest.next_if_eq(&'^');
    rest.next_if_eq(&']');
    loop {
        match rest.next()? {
            c if c == border || c == '\n' => return None,
            ']' => return Some(()),
            '\\' => {
                rest.next()?;
            }
            '[' => {
                if let Some(kind) = rest.next_if(|c| matches!(c, ':' | '.' | '=')) {
                    while rest.next_if(|c| c.is_ascii_alphanumeric()).is_some() {}
                    rest.next_if_eq(&kind)?;
                    rest.next_if_eq(&']')?;
                }
            }
            _ => {}
        }
    }
}
