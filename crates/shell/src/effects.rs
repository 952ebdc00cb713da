//! Judges a program by its declaration in the table of programs that only read.

use windlass_core::tool::Category;

use super::options::{self, Meaning, Parsed, Unclear};
use super::reader::Reader;
use super::readers::{self, Operands, Otherwise, ReadProgram};
use super::word::Word;

/// Programs that look at the name or the attributes of a file, and do not open it.
const NAMES_ONLY: &[&str] = &[
    "ls", "stat", "file", "du", "df", "basename", "dirname", "realpath", "readlink", "which", "lsof", "seq",
    "expr", "id", "ps", "pgrep", "whereis",
];

/// Judges a declared program; returns false if it is not declared.
pub(super) fn judge(reader: &mut Reader<'_>, program: &str, arguments: &[Word]) -> bool {
    let Some(row) = readers::find(program) else {
        return false;
    };
    let otherwise = match row.otherwise {
        Otherwise::Harmless | Otherwise::Writes => Category::Write,
        Otherwise::Runs => Category::Admin,
    };
    // Some versions read no option after an operand, so that it is one more operand.
    let ends_early = matches!(row.operands, Operands::Most(_));
    match options::parse_all(row.options, arguments, ends_early) {
        Ok(parsed) => declared(reader, row, &parsed, otherwise),
        Err(Unclear::Word(_)) if row.otherwise == Otherwise::Harmless => {
            // Every reading of the words is harmless, except for a file that is a device.
            devices(reader, program, arguments);
        }
        Err(_) => {
            if row.otherwise == Otherwise::Runs {
                for word in arguments {
                    reader.foreign_code(word.prefix(), otherwise);
                }
            }
            reader.raise(otherwise);
        }
    }
    true
}

fn declared(reader: &mut Reader<'_>, row: &ReadProgram, parsed: &Parsed, otherwise: Category) {
    values(reader, parsed);
    if !fits(row.operands, &parsed.operands) {
        reader.raise(otherwise);
        let output = match row.operands {
            Operands::Most(most) => parsed.operands.get(most).and_then(Word::value),
            _ => None,
        };
        if let Some(path) = output {
            reader.writes_to(path);
        }
    }
    if row.name == "bat" && parsed.operands.first().and_then(Word::value) == Some("cache") {
        reader.raise(Category::Write);
    }
    devices(reader, row.name, &parsed.operands);
}

/// Judges the values of options that name output files or commands.
pub(super) fn values(reader: &mut Reader<'_>, parsed: &Parsed) {
    for given in &parsed.given {
        let value = given.value.as_ref();
        match given.meaning {
            Meaning::Plain => {}
            Meaning::Writes => {
                reader.raise(Category::Write);
                if let Some(path) = value.and_then(Word::value) {
                    reader.writes_to(path);
                }
            }
            Meaning::Runs => {
                reader.foreign_code(value.map_or("", Word::prefix), Category::Admin);
            }
        }
    }
}

fn fits(rule: Operands, operands: &[Word]) -> bool {
    match rule {
        Operands::Any => true,
        Operands::Most(most) => {
            let grows = operands
                .iter()
                .any(|word| word.may_be_several() || word.is_glob());
            operands.len() <= most && !grows
        }
        Operands::Without(start) => operands
            .iter()
            .all(|word| !word.starts_with(start) && !word.may_be_option()),
        Operands::Only(start) => operands.iter().all(|word| word.starts_with(start)),
    }
}

/// A device is not a file to read: a terminal belongs to the user, and reading from some devices takes effect.
fn devices(reader: &mut Reader<'_>, program: &str, operands: &[Word]) {
    let opens = !NAMES_ONLY.contains(&program);
    let is_device = |word: &Word| super::is_device(&reader.place.path(word.prefix()));
    if opens && operands.iter().any(is_device) {
        reader.raise(Category::Admin);
    }
}
