//! Options of a wrapper: the wrapped command starts after the last one.

use super::word::Word;

/// Options of a program, separated by blanks: `-v`; `-n:` with a value, attached or as the next word; `-e?`
/// with a value that is attached or missing; the same for `--long` options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar(pub(super) &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    Attached,
}

impl Grammar {
    fn takes(self, option: &str) -> Option<Takes> {
        self.0.split_whitespace().find_map(|known| {
            let (name, takes) = match (known.strip_suffix(':'), known.strip_suffix('?')) {
                (Some(name), _) => (name, Takes::Value),
                (_, Some(name)) => (name, Takes::Attached),
                _ => (known, Takes::Nothing),
            };
            (name == option).then_some(takes)
        })
    }
}

/// An option as given, without dashes, and its value.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Option<Word>,
}

/// Splits arguments into options and the rest. Fails with the word that makes the end of the options
/// ambiguous.
pub(super) fn parse(grammar: Grammar, words: &[Word]) -> Result<(Vec<Given>, &[Word]), String> {
    let mut given = Vec::new();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        if !word.starts_with('-') && !word.may_be_option() && !word.may_be_several() {
            break;
        }
        let Some(text) = word.fixed() else {
            return Err(word.source().to_owned());
        };
        rest = after;
        if text == "--" {
            break;
        }
        let value = match text.strip_prefix("--") {
            Some(long) => long_option(grammar, long, &mut given),
            None => short_options(grammar, text.trim_start_matches('-'), &mut given),
        };
        match value {
            Some(NextWord::Untouched) => {}
            Some(NextWord::Value) => {
                let Some((value, after)) = rest.split_first() else {
                    break;
                };
                if value.may_be_several() {
                    return Err(value.source().to_owned());
                }
                if let Some(last) = given.last_mut() {
                    last.value = Some(value.clone());
                }
                rest = after;
            }
            None => return Err(text.to_owned()),
        }
    }
    Ok((given, rest))
}

enum NextWord {
    Untouched,
    Value,
}

fn long_option(grammar: Grammar, long: &str, given: &mut Vec<Given>) -> Option<NextWord> {
    if let Some((name, value)) = long.split_once('=') {
        given.push(Given {
            name: name.to_owned(),
            value: Some(Word::literal(value)),
        });
        return Some(NextWord::Untouched);
    }
    given.push(Given {
        name: long.to_owned(),
        value: None,
    });
    if matches!(long, "help" | "version") {
        return Some(NextWord::Untouched);
    }
    match grammar.takes(&format!("--{long}"))? {
        Takes::Value => Some(NextWord::Value),
        Takes::Nothing | Takes::Attached => Some(NextWord::Untouched),
    }
}

fn short_options(grammar: Grammar, cluster: &str, given: &mut Vec<Given>) -> Option<NextWord> {
    let mut chars = cluster.chars();
    while let Some(option) = chars.next() {
        let mut entry = Given {
            name: option.to_string(),
            value: None,
        };
        let takes = grammar.takes(&format!("-{option}"));
        if matches!(takes, Some(Takes::Value | Takes::Attached)) {
            let attached = chars.as_str();
            if !attached.is_empty() {
                entry.value = Some(Word::literal(attached));
            }
            given.push(entry);
            let next = takes == Some(Takes::Value) && attached.is_empty();
            return Some(if next {
                NextWord::Value
            } else {
                NextWord::Untouched
            });
        }
        given.push(entry);
        takes?;
    }
    Some(NextWord::Untouched)
}
