//! `awk`, whose programs can write files and run commands.

use windlass_core::tool::Category;

use super::builtins::is_stream;
use super::options::{self, Grammar};
use super::reader::{Input, Reader};
use super::sed;
use super::word::Word;

/// Options without an effect. Others load code, write files, or take the program from a file.
const OPTIONS: Grammar = Grammar("-F: -v: --field-separator: --assign: --re-interval --posix --traditional");

/// Judges `awk`: a read, unless its program writes a file or runs a command.
pub(super) fn judge(reader: &mut Reader<'_>, arguments: &[Word]) {
    let program = options::parse_all(OPTIONS, arguments, true)
        .ok()
        .and_then(|parsed| match parsed.operands.split_first() {
            Some((program, files)) => Some((program.fixed()?.to_owned(), files.to_vec())),
            None => parsed
                .has(&["help", "version"])
                .then(|| (String::new(), Vec::new())),
        });
    let Some((program, files)) = program else {
        if arguments.iter().any(|word| {
            is_stream(
                word.prefix()
                    .trim_start_matches("-f")
                    .trim_start_matches("--file="),
            )
        }) {
            reader.takes_code_from(Input::Program);
        }
        for word in arguments {
            if word.value().is_none() && !word.may_be_several() || runs(word.prefix()) {
                reader.foreign_code(word.prefix(), Category::Admin);
            }
        }
        reader.raise(Category::Write);
        return;
    };
    if files.iter().any(|file| super::is_device(file.prefix())) {
        reader.raise(Category::Admin);
    }
    match effect(&program) {
        Effect::None => {}
        Effect::Writes => reader.raise(Category::Write),
        Effect::Runs => reader.foreign_code(&program, Category::Admin),
    }
}

/// Returns true if a text may be a program that runs a command.
fn runs(text: &str) -> bool {
    matches!(effect(text), Effect::Runs)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// Writes a file, or is not understood.
    Writes,
    /// Runs a command, or loads code.
    Runs,
}

/// Keywords after which a slash may begin a pattern as well as divide.
const KEYWORDS: &[&str] = &[
    "BEGIN", "END", "case", "delete", "do", "else", "exit", "for", "function", "getline", "if", "in",
    "print", "printf", "return", "while",
];

/// Returns the effect of a program. The strings and patterns in it are skipped, because they are only text.
pub(super) fn effect(program: &str) -> Effect {
    let mut tokens = Tokens {
        rest: program.chars().peekable(),
        last: Last::Start,
    };
    let mut found = Effect::None;
    // True in a statement that prints, where `>` is a redirection and not a comparison.
    let mut prints = false;
    while let Some(token) = tokens.next() {
        match token {
            Token::Unclear => {
                let hidden = program.contains(['|', '@']) || program.contains("system");
                return worse(found, if hidden { Effect::Runs } else { Effect::Writes });
            }
            Token::Word(word) => match word.as_str() {
                "system" => found = Effect::Runs,
                "getline" => found = worse(found, Effect::Writes),
                "print" | "printf" => prints = true,
                _ => {}
            },
            Token::Sign('|') | Token::Sign('@') => found = Effect::Runs,
            Token::Sign('>') if prints => found = worse(found, Effect::Writes),
            Token::Append => found = worse(found, Effect::Writes),
            Token::Sign(';' | '{' | '}' | '\n') => prints = false,
            Token::Sign(_) | Token::Other => {}
        }
    }
    found
}

fn worse(one: Effect, other: Effect) -> Effect {
    if one == Effect::Runs || other == Effect::Runs {
        Effect::Runs
    } else {
        Effect::Writes
    }
}

enum Token {
    Word(String),
    Sign(char),
    /// `>>`
    Append,
    Other,
    Unclear,
}

/// Token before the current one. It decides whether a slash divides or begins a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Start,
    Operand,
    Unclear,
}

struct Tokens<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    last: Last,
}

impl Tokens<'_> {
    fn next(&mut self) -> Option<Token> {
        while self.rest.next_if(|c| matches!(c, ' ' | '\t' | '\r')).is_some() {}
        let c = self.rest.next()?;
        let token = match c {
            '"' => {
                self.last = Last::Operand;
                return Some(self.string());
            }
            '#' => {
                while self.rest.next_if(|c| *c != '\n').is_some() {}
                return Some(Token::Other);
            }
            '/' => return Some(self.slash()),
            '\\' => {
                // A line continuation; anything else is not awk.
                return Some(match self.rest.next() {
                    Some('\n') => Token::Other,
                    _ => Token::Unclear,
                });
            }
            '|' if self.rest.next_if_eq(&'|').is_some() => Token::Other,
            '>' if self.rest.next_if_eq(&'=').is_some() => Token::Other,
            '>' if self.rest.next_if_eq(&'>').is_some() => Token::Append,
            _ if c.is_ascii_alphabetic() || c == '_' => return Some(self.word(c)),
            _ if c.is_ascii_digit() || c == '.' => {
                while self
                    .rest
                    .next_if(|c| c.is_ascii_alphanumeric() || *c == '.')
                    .is_some()
                {}
                self.last = Last::Operand;
                return Some(Token::Other);
            }
            _ => Token::Sign(c),
        };
        self.last = match c {
            ']' => Last::Operand,
            ')' | '+' | '-' | '$' => Last::Unclear,
            _ => Last::Start,
        };
        Some(token)
    }

    fn word(&mut self, first: char) -> Token {
        let mut word = String::from(first);
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            word.push(c);
        }
        self.last = if KEYWORDS.contains(&word.as_str()) {
            Last::Unclear
        } else {
            Last::Operand
        };
        Token::Word(word)
    }

    fn string(&mut self) -> Token {
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return Token::Other,
                '\\' => {
                    self.rest.next();
                }
                '\n' => break,
                _ => {}
            }
        }
        Token::Unclear
    }

    fn slash(&mut self) -> Token {
        match self.last {
            Last::Operand => {
                self.last = Last::Start;
                return Token::Other;
            }
            Last::Unclear => return Token::Unclear,
            Last::Start => {}
        }
        self.last = Last::Operand;
        match sed::pattern(&mut self.rest, '/') {
            Some(()) => Token::Other,
            None => Token::Unclear,
        }
    }
}
