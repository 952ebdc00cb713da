//! Commands refused by the configuration.

use super::word::Word;

/// Commands refused by default.
pub const BLOCKED_COMMANDS: &[&str] = &[
    "rm",
    "sudo",
    "doas",
    "shutdown",
    "reboot",
    "halt",
    "poweroff",
    "mkfs",
    "mkfs.*",
    "dd",
    "chmod 777",
];

/// Commands that are refused wherever they appear: programs (`rm`, `mkfs.*`) and programs with arguments
/// (`chmod 777`, `git push --force`). The arguments match in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocklist {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    program: String,
    arguments: Vec<String>,
}

impl Default for Blocklist {
    fn default() -> Self {
        Self::new(BLOCKED_COMMANDS)
    }
}

impl Blocklist {
    /// Builds the list from configuration entries. Empty entries are ignored.
    pub fn new<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Self {
        let entries = entries.into_iter().filter_map(|entry| {
            let mut tokens = entry.as_ref().split_whitespace().map(str::to_owned);
            Some(Entry {
                program: tokens.next()?,
                arguments: tokens.collect(),
            })
        });
        Self {
            entries: entries.collect(),
        }
    }

    /// Returns the entry that refuses this program with these arguments.
    pub(super) fn hit(&self, program: &str, arguments: &[Word]) -> Option<String> {
        self.entries
            .iter()
            .find(|entry| entry.names(program) && entry.takes(arguments))
            .map(Entry::to_text)
    }

    /// Returns the entry whose program is named anywhere in a text that is not shell, or is shell for another
    /// machine.
    pub(super) fn named_in(&self, text: &str) -> Option<String> {
        let parts = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')));
        let names: Vec<&str> = parts.map(super::word::base_name).collect();
        self.entries
            .iter()
            .find(|entry| {
                names.iter().any(|name| entry.names(name))
                    && entry
                        .arguments
                        .iter()
                        .all(|wanted| names.contains(&wanted.as_str()))
            })
            .map(Entry::to_text)
    }
}

impl Entry {
    fn names(&self, program: &str) -> bool {
        match self.program.strip_suffix('*') {
            Some(start) => program.starts_with(start),
            None => program == self.program,
        }
    }

    fn takes(&self, arguments: &[Word]) -> bool {
        self.arguments.iter().all(|wanted| {
            // An argument that is not known yet counts as the wanted one, unless it can only be a file at the
            // end.
            let first_operand = arguments.iter().find(|word| !word.starts_with('-'));
            let unknown = first_operand.is_some_and(|word| word.value().is_none())
                || arguments.iter().any(|word| word.may_be_several());
            unknown
                || arguments
                    .iter()
                    .filter_map(Word::value)
                    .any(|value| value == wanted || (self.program == "chmod" && same_mode(value, wanted)))
        })
    }

    fn to_text(&self) -> String {
        let mut text = self.program.clone();
        for argument in &self.arguments {
            text.push(' ');
            text.push_str(argument);
        }
        text
    }
}

/// Returns true if two modes of `chmod` grant the same permissions: `0777` and `a+rwx` equal `777`.
fn same_mode(value: &str, wanted: &str) -> bool {
    let octal = |text: &str| u32::from_str_radix(text, 8).ok().map(|mode| mode & 0o777);
    match (octal(value), octal(wanted)) {
        (Some(left), Some(right)) => left == right,
        (None, Some(0o777)) => value.split(',').any(gives_everybody_everything),
        _ => false,
    }
}

fn gives_everybody_everything(clause: &str) -> bool {
    let Some((who, what)) = clause.split_once(['+', '=']) else {
        return false;
    };
    let everybody = who.is_empty() || who.contains('a') || "ugo".chars().all(|c| who.contains(c));
    everybody
        && "rwx"
            .chars()
            .all(|c| what.contains(c) || (c == 'x' && what.contains('X')))
}
