//! Commands that files define: a prompt with placeholders for the user's arguments.

use windlass_api::{CommandInfo, Part};

use super::{Said, Then};
use crate::environment::DefinedCommand;

/// Describes the command for the help.
pub(super) fn info(command: &DefinedCommand) -> CommandInfo {
    CommandInfo {
        name: command.name.clone(),
        aliases: Vec::new(),
        arguments: command.hint.clone(),
        help: command.description.clone(),
        source: command.source,
    }
}

/// Expands the command into the user's input.
pub(super) fn expand(command: &DefinedCommand, arguments: &str) -> Said {
    Said {
        text: String::new(),
        then: Then::Submit(vec![Part::text(filled(&command.body, arguments))]),
    }
}

/// Replaces `$ARGUMENTS`, `$1` to `$9` and `$$`. Arguments without a placeholder are appended. Nothing else
/// has a meaning: no command is run and no file is read.
fn filled(body: &str, arguments: &str) -> String {
    let words = split(arguments);
    let mut text = String::with_capacity(body.len() + arguments.len());
    let mut rest = body;
    let mut is_used = false;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let digit = after
            .chars()
            .next()
            .and_then(|first| first.to_digit(10))
            .filter(|digit| *digit > 0);
        if let Some(after) = after.strip_prefix("ARGUMENTS") {
            text.push_str(arguments);
            is_used = true;
            rest = after;
        } else if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            rest = after;
        } else if let Some(digit) = digit {
            let word = words.get(digit as usize - 1);
            text.push_str(word.map_or("", String::as_str));
            is_used = true;
            rest = after.get(1..).unwrap_or_default();
        } else {
            text.push('$');
            rest = after;
        }
    }
    text.push_str(rest);
    if !is_used && !arguments.is_empty() {
        text = format!("{}\n\n{arguments}", text.trim_end());
    }
    text
}

/// Splits arguments into words; a word in double quotes may contain spaces.
fn split(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut is_open, mut is_quoted) = (false, false);
    for letter in arguments.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                is_open = true;
            }
            letter if letter.is_whitespace() && !is_quoted => {
                if is_open {
                    words.push(std::mem::take(&mut word));
                }
                is_open = false;
            }
            letter => {
                word.push(letter);
                is_open = true;
            }
        }
    }
    if is_open {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CMD-1: a command's text takes the arguments, whole or word by word, and nothing else in it has a
    /// meaning.
    #[test]
    fn texts_are_filled() {
        let cases = [
            ("Look at $ARGUMENTS.", "a b", "Look at a b."),
            ("$2 before $1, no $3!", "one two", "two before one, no !"),
            ("$1|$2", "\"a b\" c", "a b|c"),
            ("costs $$5 and $$ARGUMENTS", "", "costs $5 and $ARGUMENTS"),
            ("$0 $x $", "", "$0 $x $"),
            ("Review it.\n", "src/a.rs", "Review it.\n\nsrc/a.rs"),
            ("Review it.\n", "", "Review it.\n"),
            ("!`date` @file $1", "$ARGUMENTS", "!`date` @file $ARGUMENTS"),
            ("é$1é", "ü", "éüé"),
        ];
        for (body, arguments, expected) in cases {
            assert_eq!(filled(body, arguments), expected, "{body:?} with {arguments:?}");
        }
    }
}
