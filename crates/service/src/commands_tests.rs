use std::collections::HashSet;

use super::*;

/// CMD-1: every command describes itself, and no two share a name.
#[test]
fn the_table_is_whole() {
    let mut names = HashSet::new();
    for command in COMMANDS {
        for name in std::iter::once(&command.name).chain(command.aliases) {
            assert!(names.insert(*name), "{name} stands there twice");
            let line = format!("/{name}");
            let parsed = command_line(&line).map(|line| line.name);
            assert_eq!(parsed, Some(*name), "{name} can be typed");
        }
        let help = command.help;
        assert!(
            help.len() > 10 && help.starts_with(char::is_uppercase) && !help.ends_with('.'),
            "{}: {help:?}",
            command.name
        );
        assert!(!command.arguments.contains('\n'));
    }
    for name in [
        "help",
        "exit",
        "quit",
        "clear",
        "new",
        "compact",
        "session",
        "provider",
        "model",
        "status",
        "cost",
        "tools",
        "permissions",
        "plan",
        "mode",
        "checkpoint",
        "undo",
        "redo",
        "rename",
    ] {
        assert!(names.contains(name), "{name} is missing");
    }
}

/// CMD-1: commands are found by whole words; close names are suggested, distant ones are not.
#[test]
fn the_nearest_is_suggested() {
    assert!(find("cost").is_some() && find("costly").is_none() && find("cos").is_none());
    let defined = [DefinedCommand {
        name: "git:commit".to_owned(),
        description: String::new(),
        hint: String::new(),
        body: String::new(),
        source: CommandSource::User,
        file: String::new(),
        runs_in: None,
    }];
    for (typed, meant) in [
        ("sessoin", Some("session")),
        ("hlep", Some("help")),
        ("perm", Some("permissions")),
        ("costly", Some("cost")),
        ("git:comit", Some("git:commit")),
        ("quti", Some("quit")),
        ("zebra", None),
        ("x", None),
    ] {
        let text = unknown(typed, &defined);
        let hint = meant.map(|meant| format!("did you mean /{meant}?"));
        match hint {
            Some(hint) => assert!(text.contains(&hint), "{text}"),
            None => assert!(!text.contains("did you mean"), "{text}"),
        }
        assert!(text.contains("/help"), "{text}");
    }
}

/// CMD-1: a built-in command reads the words and flags of its own line.
#[test]
fn lines_become_words() {
    let words = Words::of("checkpoint", "rewind 3 --force\nand more");
    assert_eq!(
        (words.get(0), words.get(1), words.get(2)),
        (Some("rewind"), Some("3"), None)
    );
    assert!(words.has("--force") && !words.has("--conversation"));
    assert!(words.check(2, &["--force"]).is_ok());
    assert!(words.check(1, &["--force"]).is_err() && words.check(2, &[]).is_err());
}
