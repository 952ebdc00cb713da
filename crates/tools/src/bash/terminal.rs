//! Detects programs that need a terminal, which commands do not have.

use windlass_shell::{Analysis, SimpleCommand};

/// Note for a model whose command needed a terminal.
pub(super) const NOTE: &str = "[there is no terminal and no stdin; use non-interactive options]";

/// Phrases that programs print when they miss a terminal.
const SIGNS: &[&str] = &[
    "not a terminal",
    "not a tty",
    "Inappropriate ioctl",
    "failed tty get",
    "no tty present",
    "terminal is required",
    "Error opening terminal",
];

/// Programs that need a terminal, and the options with which they do not.
const FULL_SCREEN: &[(&str, &[&str])] = &[
    ("vi", &["-es", "-Es"]),
    ("vim", &["-es", "-Es"]),
    ("nvim", &["-es", "-Es", "--headless"]),
    ("view", &[]),
    ("nano", &[]),
    ("pico", &[]),
    ("emacs", &["--batch", "-batch"]),
    ("less", &[]),
    ("more", &[]),
    ("top", &["-b"]),
    ("htop", &[]),
    ("watch", &[]),
    ("screen", &[]),
    ("tmux", &[]),
    ("mc", &[]),
    ("ssh", &[]),
    ("sftp", &["-b"]),
    ("scp", &[]),
    ("telnet", &[]),
    ("ftp", &[]),
    ("su", &[]),
    ("passwd", &[]),
];

/// Programs that start a prompt when they have no arguments.
const PROMPTS: &[&str] = &[
    "python", "python3", "node", "irb", "ghci", "lua", "php", "sqlite3", "mysql", "psql", "bc", "gdb", "R",
];

/// Options that give `git commit` its message.
const HAS_MESSAGE: &[&str] = &["message", "file", "reuse-message", "no-edit", "fixup"];

/// Returns true if an output complains about a missing terminal.
pub(super) fn is_missed(output: &str) -> bool {
    SIGNS.iter().any(|sign| output.contains(sign))
}

/// Returns true if a program of the command needs a terminal.
pub(super) fn is_wanted(analysis: &Analysis) -> bool {
    analysis.commands.iter().any(wants)
}

fn wants(command: &SimpleCommand) -> bool {
    let Some(program) = command.program.as_deref() else {
        return false;
    };
    let arguments: Vec<&str> = command.words.iter().skip(1).map(|word| word.source()).collect();
    if let Some((_, without)) = FULL_SCREEN.iter().find(|(name, _)| *name == program) {
        return !arguments.iter().any(|argument| without.contains(argument));
    }
    match (program, arguments.as_slice()) {
        (_, []) => PROMPTS.contains(&program),
        ("git", ["commit", rest @ ..]) => !rest.iter().any(|argument| gives_message(argument)),
        ("git", ["rebase" | "add", rest @ ..]) => rest
            .iter()
            .any(|argument| ["-i", "-p", "--interactive", "--patch"].contains(argument)),
        _ => false,
    }
}

/// Matches `-m`, `-am`, `-mtext`, `--message`, `--message=text`.
fn gives_message(argument: &str) -> bool {
    if let Some(long) = argument.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        return HAS_MESSAGE.contains(&name);
    }
    argument
        .strip_prefix('-')
        .is_some_and(|letters| letters.contains(['m', 'F', 'C']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_shell::{Blocklist, analyse};

    /// TOOL-9: interactive commands are distinguished from those that only look interactive.
    #[test]
    fn programs_that_want_a_person() {
        let cases = [
            ("vim a.txt", true),
            ("vim -es a.txt", false),
            ("emacs --batch -f x", false),
            ("top", true),
            ("top -b -n 1", false),
            ("python3", true),
            ("python3 run.py", false),
            ("echo 1 && python3", true),
            ("git commit", true),
            ("git commit --amend", true),
            ("git commit --amend --no-edit", false),
            ("git commit -am 'x'", false),
            ("git commit --message=x", false),
            ("git rebase -i HEAD~2", true),
            ("git add -p", true),
            ("git add .", false),
            ("git log", false),
            ("ssh host ls", true),
            ("ls | wc", false),
        ];
        for (command, expected) in cases {
            let analysis = analyse(command, &Blocklist::default());
            assert_eq!(is_wanted(&analysis), expected, "{command}");
        }
    }
}
