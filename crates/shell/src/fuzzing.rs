//! Checks that `cargo xtask fuzz` runs on arbitrary bytes, and that the tests run on the stored inputs.
//!
//! Each function takes the bytes of one input and panics when a check fails. Nothing here runs a program.

use windlass_core::tool::Category;

use crate::{Blocklist, SimpleCommand, Word, analyse};

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
