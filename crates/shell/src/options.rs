//! Declared options of a program, and a strict reading of its arguments. An option that is not declared, also
//! a shortened one, makes the arguments unreadable: its effect and the number of words it takes are unknown.

use super::word::Word;

/// Options of a program, separated by blanks: `-v`; `-n:` with a value, attached or as the next word; `-e?`
/// with a value that is attached or missing; `-#` for a number such as `-20`; the same for `--long` options
/// and for long ones with a single dash. A trailing `>` marks a value that names a file to write, and a
/// trailing `!` a value that is a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar(pub(super) &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    Attached,
}

/// Meaning of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Plain,
    /// The value names a file that is written.
    Writes,
    /// The value is a command.
    Runs,
}

impl Grammar {
    fn find(self, option: &str) -> Option<(Takes, Meaning)> {
        self.0.split_whitespace().find_map(|known| {
            let (known, meaning) = match (known.strip_suffix('>'), known.strip_suffix('!')) {
                (Some(known), _) => (known, Meaning::Writes),
                (_, Some(known)) => (known, Meaning::Runs),
                _ => (known, Meaning::Plain),
            };
            let (name, takes) = match (known.strip_suffix(':'), known.strip_suffix('?')) {
                (Some(name), _) => (name, Takes::Value),
                (_, Some(name)) => (name, Takes::Attached),
                _ => (known, Takes::Nothing),
            };
            (name == option).then_some((takes, meaning))
        })
    }
}

fn find(groups: &[Grammar], option: &str) -> Option<(Takes, Meaning)> {
    groups.iter().find_map(|grammar| grammar.find(option))
}

/// An option as given, without dashes, and its value.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Option<Word>,
    pub(super) meaning: Meaning,
}

/// Reason arguments are unreadable, with the word in question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unclear {
    /// The option is not declared.
    Option(String),
    /// The word is only known at run time, and may be an option or several words.
    Word(String),
}

impl Unclear {
    pub(super) fn word(&self) -> &str {
        match self {
            Self::Option(word) | Self::Word(word) => word,
        }
    }
}

/// Options and operands of a program.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) given: Vec<Given>,
    pub(super) operands: Vec<Word>,
}

impl Parsed {
    /// Returns true if one of these options is given. Names are without dashes.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.option(names).is_some()
    }

    /// Returns the last of these options.
    pub(super) fn option(&self, names: &[&str]) -> Option<&Given> {
        self.given
            .iter()
            .rev()
            .find(|given| names.contains(&given.name.as_str()))
    }
}

/// Splits arguments into leading options and the rest.
pub(super) fn parse(grammar: Grammar, words: &[Word]) -> Result<(Vec<Given>, &[Word]), Unclear> {
    let mut given = Vec::new();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        if !may_be_option(word) && !word.may_be_several() {
            break;
        }
        rest = after;
        match step(&[grammar], word, &mut rest, &mut given)? {
            Step::Option => {}
            Step::End => break,
            // A lone dash is an operand of most programs, and an option of `env`.
            Step::Operand => given.push(Given {
                name: String::new(),
                value: None,
                meaning: Meaning::Plain,
            }),
        }
    }
    Ok((given, rest))
}

/// Splits arguments into options and operands in any order. With `ends_early`, the options end at the first
/// operand.
pub(super) fn parse_all(grammar: Grammar, words: &[Word], ends_early: bool) -> Result<Parsed, Unclear> {
    split(&[grammar], words, ends_early)
}

/// Splits arguments into options of several groups and operands in any order.
pub(super) fn parse_groups(groups: &[Grammar], words: &[Word]) -> Result<Parsed, Unclear> {
    split(groups, words, false)
}

fn split(grammar: &[Grammar], words: &[Word], ends_early: bool) -> Result<Parsed, Unclear> {
    let mut parsed = Parsed::default();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let step = if may_be_option(word) || word.may_be_several() {
            step(grammar, word, &mut rest, &mut parsed.given)?
        } else {
            Step::Operand
        };
        match step {
            Step::Option => {}
            Step::Operand => {
                parsed.operands.push(word.clone());
                if ends_early {
                    break;
                }
            }
            Step::End => break,
        }
    }
    parsed.operands.extend(rest.iter().cloned());
    Ok(parsed)
}

/// Returns true if a word, once expanded, may start with a dash.
fn may_be_option(word: &Word) -> bool {
    word.starts_with('-') || word.may_be_option() || word.starts_with_pattern()
}

enum Step {
    Option,
    Operand,
    /// `--`
    End,
}

/// Reads one word that may be an option, and its value.
fn step(
    grammar: &[Grammar],
    word: &Word,
    rest: &mut &[Word],
    given: &mut Vec<Given>,
) -> Result<Step, Unclear> {
    let unknown = || Unclear::Word(word.source().to_owned());
    if word.may_be_several() || !word.starts_with('-') || word.is_glob() {
        return Err(unknown());
    }
    let text = word.prefix();
    let open = word.value().is_none();
    match text {
        "--" if open => return Err(unknown()),
        "--" => return Ok(Step::End),
        "-" if !open => return Ok(Step::Operand),
        _ => {}
    }
    let next = match text.strip_prefix("--") {
        Some(_) => long_option(grammar, text, open, given),
        None if text.len() > 2 && find(grammar, text.split('=').next().unwrap_or(text)).is_some() => {
            long_option(grammar, text, open, given)
        }
        None => short_options(grammar, text.trim_start_matches('-'), open, given),
    };
    match next {
        Some(NextWord::Untouched) => {}
        Some(NextWord::Value) => {
            let Some((value, after)) = rest.split_first() else {
                return Ok(Step::Option);
            };
            if value.may_be_several() || value.is_glob() {
                return Err(Unclear::Word(value.source().to_owned()));
            }
            if let Some(last) = given.last_mut() {
                last.value = Some(value.clone());
            }
            *rest = after;
        }
        None if open => return Err(unknown()),
        None => return Err(Unclear::Option(text.to_owned())),
    }
    Ok(Step::Option)
}

enum NextWord {
    Untouched,
    Value,
}

/// Reads `--name`, `--name=value` or the same with a single dash. `open` means that the word goes on with text
/// that is only known at run time.
fn long_option(grammar: &[Grammar], text: &str, open: bool, given: &mut Vec<Given>) -> Option<NextWord> {
    let (option, value) = match text.split_once('=') {
        Some((option, value)) => (option, Some(value)),
        None => (text, None),
    };
    let (takes, meaning) = match option {
        "--help" | "--version" => (Takes::Nothing, Meaning::Plain),
        _ => find(grammar, option)?,
    };
    if value.is_some() && takes == Takes::Nothing || open && value.is_none() {
        return None;
    }
    given.push(Given {
        name: option.trim_start_matches('-').to_owned(),
        value: value.map(|value| attached(value, open)),
        meaning,
    });
    let wants_next = takes == Takes::Value && value.is_none();
    Some(if wants_next {
        NextWord::Value
    } else {
        NextWord::Untouched
    })
}

fn attached(value: &str, open: bool) -> Word {
    if open {
        Word::unknown(value, false)
    } else {
        Word::literal(value)
    }
}

fn short_options(grammar: &[Grammar], cluster: &str, open: bool, given: &mut Vec<Given>) -> Option<NextWord> {
    let digits = !cluster.is_empty() && cluster.chars().all(|c| c.is_ascii_digit());
    if digits && !open && find(grammar, "-#").is_some() {
        given.push(Given {
            name: "#".to_owned(),
            value: None,
            meaning: Meaning::Plain,
        });
        return Some(NextWord::Untouched);
    }
    let mut chars = cluster.chars();
    while let Some(option) = chars.next() {
        let (takes, meaning) = find(grammar, &format!("-{option}"))?;
        let mut entry = Given {
            name: option.to_string(),
            value: None,
            meaning,
        };
        if takes == Takes::Nothing {
            given.push(entry);
            continue;
        }
        let rest = chars.as_str();
        if !rest.is_empty() || open {
            entry.value = Some(attached(rest, open));
        }
        let wants_next = takes == Takes::Value && entry.value.is_none();
        given.push(entry);
        return Some(if wants_next {
            NextWord::Value
        } else {
            NextWord::Untouched
        });
    }
    // A cluster that goes on at run time may have any option in it.
    (!open).then_some(NextWord::Untouched)
}
