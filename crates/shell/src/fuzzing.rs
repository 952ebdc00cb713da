//! Checks that `cargo xtask fuzz` runs on arbitrary bytes, and that the tests run on the stored inputs.
//!
//! Each function takes the bytes of one input and panics when a check fails. Nothing here runs a program.

mod reading;

use windlass_core::tool::Category;

pub use self::reading::read_commands;
use crate::{Analysis, Blocklist, RedirectKind, SimpleCommand, Word, analyse};

/// Reads a shell command. If the command is not refused, every program has a name and the pieces cover every
/// command.
pub fn shell(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let blocklist = Blocklist::default();
    let reading = analyse(&text, &blocklist);
    assert_eq!(
        reading,
        analyse(&text, &blocklist),
        "the same command is read the same way"
    );
    let pieces = reading.pieces();
    let _ = (reading.write_targets(), reading.needs());
    if reading.refusal.is_some() {
        assert_eq!(
            reading.category,
            Category::Admin,
            "a refused command is always `Admin`"
        );
        return;
    }
    if reading.category == Category::Read {
        assert_read(&reading, &blocklist);
    }
    for command in reading.commands.iter().filter(|one| !one.words.is_empty()) {
        let program = command.program.as_deref().unwrap_or_default();
        assert!(!program.is_empty(), "no program in {:?}", command.text);
        assert!(
            pieces.contains(&command.text),
            "no piece covers {:?}",
            command.text
        );
        assert_one_spelling(command, &blocklist);
    }
}

/// Asserts that a read names no file to write, needs no further access, and consists of reads.
fn assert_read(reading: &Analysis, blocklist: &Blocklist) {
    let written: Vec<&str> = reading.write_targets();
    assert!(written.is_empty(), "a read that writes {written:?}");
    let needs = reading.needs();
    assert!(!needs.outside, "a read that writes outside");
    for redirect in reading
        .redirects
        .iter()
        .filter(|it| it.kind != RedirectKind::Read)
    {
        assert!(redirect.target.is_some(), "a read that writes to an unknown file");
    }
    let known = |command: &&SimpleCommand| {
        !command.words.is_empty() && command.words.iter().all(|word| word.value().is_some())
    };
    for command in reading.commands.iter().filter(known) {
        let alone = analyse(&command.text, blocklist);
        assert!(
            alone.refusal.is_some() || alone.category == Category::Read,
            "{:?} is a read only together with others",
            command.text
        );
    }
}

/// Asserts that the text matched by rules means the same program with the same arguments when it is read
/// again.
fn assert_one_spelling(command: &SimpleCommand, blocklist: &Blocklist) {
    // As part of the grammar, `[` is not a command.
    if command.program.as_deref() == Some("[") {
        return;
    }
    let again = analyse(&command.text, blocklist);
    let values = |command: &SimpleCommand| {
        let arguments = command.words.iter().skip(1);
        let known = |word: &Word| word.value().filter(|_| !word.is_glob()).map(str::to_owned);
        arguments.map(known).collect::<Option<Vec<_>>>()
    };
    let (Some(known), None) = (values(command), &again.refusal) else {
        return;
    };
    let first = again.commands.first();
    let read = first.map(|first| (first.program.as_ref(), values(first)));
    assert_eq!(
        read,
        Some((command.program.as_ref(), Some(known))),
        "{:?} is read as it is written",
        command.text
    );
}
