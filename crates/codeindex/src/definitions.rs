//! Definitions in source files: functions, types, modules, constants.

mod grammar;
mod scanner;

use crate::language::Language;

/// Maximum number of definitions of a file.
const MAX_DEFINITIONS: usize = 4_000;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 200;

/// Kind of a [`Definition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DefinitionKind {
    /// A function, method, procedure or macro.
    Function = 0,
    /// A type: class, struct, enum, interface, trait.
    Type = 1,
    /// A module or namespace.
    Module = 2,
    /// A constant or a variable of a module.
    Constant = 3,
}

impl DefinitionKind {
    /// Returns the kind with a number, as the file of the index has it.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Function, Self::Type, Self::Module, Self::Constant]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A definition in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Name, as written.
    pub name: String,
    /// Kind.
    pub kind: DefinitionKind,
    /// First line, from 1.
    pub line: u32,
}

/// Finds definitions; reuses its parsers.
#[derive(Default)]
pub(crate) struct Finder {
    grammars: grammar::Parsers,
}

impl Finder {
    /// Returns the definitions of a file in the order of their lines.
    pub(crate) fn find(&mut self, language: Language, text: &str) -> Vec<Definition> {
        let mut found = match language {
            Language::Prose | Language::Data => Vec::new(),
            Language::Other => scanner::scan(text),
            // A file that the grammar cannot read in reasonable time is scanned for keywords.
            language => self
                .grammars
                .parse(language, text)
                .unwrap_or_else(|| scanner::scan(text)),
        };
        found.retain(|definition| !definition.name.is_empty() && definition.name.len() <= MAX_NAME);
        found.sort_by_key(|definition| definition.line);
        found.truncate(MAX_DEFINITIONS);
        found
    }
}

#[cfg(test)]
#[path = "definitions_tests.rs"]
mod tests;
