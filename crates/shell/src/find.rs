//! `find`, which lists files and can run any program.

use windlass_core::tool::Category;

use super::reader::Reader;
use super::word::Word;

/// Tests and options without an effect that take no value.
const PLAIN: &[&str] = &[
    "-a",
    "-and",
    "-d",
    "-daystart",
    "-depth",
    "-E",
    "-empty",
    "-executable",
    "-false",
    "-follow",
    "-H",
    "-help",
    "--help",
    "-ignore_readdir_race",
    "-L",
    "-ls",
    "-mount",
    "-nogroup",
    "-noignore_readdir_race",
    "-noleaf",
    "-not",
    "-nouser",
    "-nowarn",
    "-o",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-or",
    "-P",
    "-print",
    "-print0",
    "-prune",
    "-quit",
    "-readable",
    "-s",
    "-true",
    "-version",
    "--version",
    "-warn",
    "-writable",
    "-x",
    "-X",
    "-xdev",
    "--",
    "-",
];

/// Tests, options and actions without an effect that take a value.
const VALUED: &[&str] = &[
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-context",
    "-ctime",
    "-D",
    "-f",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-iname",
    "-inum",
    "-ipath",
    "-iregex",
    "-iwholename",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-mmin",
    "-mtime",
    "-name",
    "-newer",
    "-path",
    "-perm",
    "-printf",
    "-regex",
    "-regextype",
    "-samefile",
    "-size",
    "-type",
    "-uid",
    "-used",
    "-user",
    "-wholename",
    "-xattrname",
    "-xtype",
];

/// Returns true if a program is `find`.
pub(super) fn is_find(program: &str) -> bool {
    matches!(program, "find" | "gfind" | "bfs")
}

/// Reads a `find` command; returns true if the program is `find`.
pub(super) fn read(reader: &mut Reader<'_>, program: &str, arguments: &[Word], via: &[String]) -> bool {
    if !is_find(program) {
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
            Some(test) if VALUED.contains(&test) || test.starts_with("-newer") => {
                rest = after.get(1..).unwrap_or_default();
                match after.first() {
                    Some(value) if value.may_be_several() => unknown(reader, value, after.get(1)),
                    Some(value) if value.starts_with_pattern() => reader.raise(Category::Write),
                    _ => {}
                }
            }
            Some(test) if test.starts_with('-') && !PLAIN.contains(&test) => reader.raise(Category::Write),
            Some(_) if word.starts_with_pattern() => reader.raise(Category::Write),
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
