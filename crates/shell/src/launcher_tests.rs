//! Programs that run commands in their options, operands and inputs.

use super::read_tests::{all, lines};

/// SAFE-2 (S6.5): a blocked command in an option, an operand or an input is found.
#[test]
fn blocked_commands_in_launchers_are_found() {
    lines(
        "x",
        include_str!("cases/blocked_commands_in_launchers_are_found.txt"),
    );
    all(
        "x",
        &[
            "ed f <<EOF\n!rm a\nEOF",
            "sqlite3 x <<EOF\n.shell rm a\nEOF",
            "python3 <<EOF\nimport os\nos.system('rm a')\nEOF",
            "python3 - <<'EOF'\nimport subprocess\nsubprocess.run(['rm','a'])\nEOF",
            "make -f - <<EOF\nx:\n\trm a\nEOF",
        ],
    );
}

/// SAFE-5: a launcher whose command cannot be judged asks.
#[test]
fn launchers_that_cannot_be_judged_ask() {
    lines(
        "ax",
        include_str!("cases/launchers_that_cannot_be_judged_ask.txt"),
    );
}

/// SAFE-5: development commands that start others as a matter of course stay writes, and do not ask.
#[test]
fn ordinary_development_does_not_ask() {
    lines("w", include_str!("cases/ordinary_development_does_not_ask.txt"));
    all(
        "w",
        &[
            "sqlite3 x <<EOF\nselect 1;\nEOF",
            "python3 - <<'EOF'\nprint(1)\nEOF",
        ],
    );
}
