//! `find`, which lists files and can run any program.

use windlass_core::tool::Category;

use super::reader::Reader;
use super::word::Word;

/// Reads a `find` command; returns true if the program is `find`.
pub(super) fn read(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) -> bool {
    if !matches!(program, "find" | "gfind" | "bfs") {
        return false;
    }
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        match word.value() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => rest = executed(reader, after, via),
            Some("-delete") => reader.raise(Category::Admin),
            Some("-fprint" | "-fprint0" | "-fprintf" | "-fls") => {
                reader.raise(Category::Write);
                if let Some(path) = after.first().and_then(Word::value) {
                    reader.writes_to(path);
                }
            }
            Some("-files0-from") => reader.raise(Category::Write),
            Some(_) => {}
            None => unknown(reader, word, after.first()),
        }
    }
    true
}

/// Handles a word that may be `-exec`, in which case the next word is a program.
fn unknown(reader: &mut Reader<'_>, word: &Word, next: Option<&Word>) {
    if !word.may_be_option() && !word.may_be_several() {
        return;
    }
    let harmless_next =
        next.is_none_or(|next| next.starts_with('-') || matches!(next.value(), Some("(" | "!" | ".")));
    if word.may_be_several() || !harmless_next {
        reader.unknown_program(&format!("find {}", word.source()));
    }
    reader.raise(Category::Write);
}

fn executed<'w>(reader: &mut Reader<'_>, words: &'w [Word], via: &[String]) -> &'w [Word] {
    let end = words
        .iter()
        .position(|word| matches!(word.value(), Some(";" | "+")));
    let (command, rest) = match end.and_then(|end| words.split_at_checked(end)) {
        Some((command, rest)) => (command, rest.get(1..).unwrap_or_default()),
        None => (words, [].as_slice()),
    };
    // `+` ends the command only right after `{}`; a program may receive one as an argument before that.
    let command = command.iter().map(|word| word.with_unknown("{}")).collect();
    reader.simple(command, Vec::new(), via);
    rest
}
