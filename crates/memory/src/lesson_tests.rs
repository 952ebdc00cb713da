use super::*;

#[track_caller]
fn check(expected: Option<MemoryKind>, texts: &[&str]) {
    for text in texts {
        assert_eq!(lesson(text, true), expected, "{text}");
    }
}

/// MEM-6: corrections are recognized by their form, in English and German.
#[test]
fn corrections_are_recognized() {
    check(
        Some(MemoryKind::Lesson),
        &[
            "No, use pnpm here, not npm.",
            "no - the config lives in etc/",
            "That's wrong: the tests live in spec/.",
            "That isn’t the right branch, work on develop",
            "Use tabs instead of spaces in Makefiles",
            "The port should be 8081",
            "We use pnpm here.",
            "It's called retry_policy, not retryPolicy",
            "You forgot to run the formatter",
            "Don't touch the generated files",
            "stop adding comments to every line",
            "I meant the staging database",
            "Undo that, I only wanted the README changed",
            "Why did you use npm? As I said, this project has pnpm.",
            "Didn't I tell you to use pnpm?",
            "Nein, hier bitte pnpm verwenden",
            "Das stimmt nicht, die Tests liegen in spec/",
            "Nimm Tabs statt Leerzeichen",
            "Ich meinte die Staging-Datenbank",
            "Du hast vergessen, den Formatter laufen zu lassen",
            "Wir verwenden hier pnpm",
            "Die Funktion heißt lade, nicht laden",
            "Hatte ich nicht gesagt, dass wir pnpm nutzen?",
        ],
    );
    assert_eq!(lesson("No, use pnpm here, not npm.", false), None);
}

/// MEM-6: so are preferences, also in the first message of a session.
#[test]
fn preferences_are_recognized() {
    let texts = [
        "I prefer short commit messages.",
        "From now on, write the tests first.",
        "Fix the login. Always run the linter before you finish.",
        "please never push to main",
        "Remember that the staging server has no GPU",
        "Going forward use ruff",
        "Ab jetzt bitte auf Deutsch antworten",
        "Ich bevorzuge kurze Commit-Nachrichten",
        "Bitte immer zuerst die Tests laufen lassen",
        "Nutze immer ruff zum Formatieren",
        "Merk dir: Releases gibt es nur donnerstags",
    ];
    check(Some(MemoryKind::Preference), &texts);
    for text in texts {
        assert_eq!(lesson(text, false), Some(MemoryKind::Preference), "{text}");
    }
}

/// MEM-6: tasks, thanks, questions and reports are no lessons.
#[test]
fn other_messages_are_no_lessons() {
    check(
        None,
        &[
            "No problem, go on with it",
            "no, that's fine, thanks",
            "Now add a test for the parser.",
            "Is that not wrong?",
            "Nothing to add from my side",
            "stop the server on port 3000",
            "The server always runs out of memory after an hour",
            "I always get an error when I start it",
            "It should be possible to cancel the upload",
            "Actually, that works fine now",
            "Never mind, it works now",
            "Note that the build is slow today",
            "Der Test schlägt immer noch fehl",
            "Nein danke, das reicht mir",
            "Kannst du das nicht einfacher machen?",
            "Warum läuft der Server nicht mehr?",
            "/memory save use pnpm",
            "no",
            "",
        ],
    );
    assert_eq!(lesson(&format!("no, {}", "x ".repeat(400)), true), None);
}
