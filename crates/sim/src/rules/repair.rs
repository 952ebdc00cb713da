//! Fixes a failing test: runs it, reads the function it names, repairs one line, and runs it again.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use super::act;
use super::{Done, Move, Situation};

/// One kind of mistake: the functions it occurs in, its pattern, and its replacement.
struct Mistake {
    function: &'static str,
    wrong: &'static str,
    right: &'static str,
    name: &'static str,
}

/// Tried in this order; the first that fits a line of the named function is applied.
const MISTAKES: &[Mistake] = &[
    Mistake {
        function: "",
        wrong: r"/ \((\$?\w+) [-+] 1\)",
        right: "/ ${1}",
        name: "it divides by a count that is off by one",
    },
    Mistake {
        function: "max|largest|maximum",
        wrong: r"-lt|-le",
        right: "-gt",
        name: "its comparison is the wrong way round",
    },
    Mistake {
        function: "min|smallest|minimum",
        wrong: r"-gt|-ge",
        right: "-lt",
        name: "its comparison is the wrong way round",
    },
    Mistake {
        function: "sum|add|total",
        wrong: r"(\w+) [-*] (\w+)",
        right: "${1} + ${2}",
        name: "it does not add",
    },
    Mistake {
        function: "product|multiply",
        wrong: r"(\w+) [-+] (\w+)",
        right: "${1} * ${2}",
        name: "it does not multiply",
    },
    Mistake {
        function: "sum|count|total",
        wrong: r"^(\s*\w+)=1$",
        right: "${1}=0",
        name: "it starts at 1 instead of 0",
    },
    Mistake {
        function: "",
        wrong: r"(\$?\w+) [-+] 1\b",
        right: "${1}",
        name: "it is off by one",
    },
];

static FAILURE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^FAIL: (\w+).*$").ok());
static SOURCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[\w./-]*\w\.(?:sh|py|rs|js|ts|rb|go|c)\b").ok());
static NUMBERED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s*\d+(?:\t|→|\| ?|: ?)").ok());

/// A repair of one line.
#[derive(Clone, Debug, PartialEq)]
struct Repair {
    old: String,
    new: String,
    reason: &'static str,
}

pub(super) fn next(situation: &Situation<'_>) -> Move {
    let missing = || {
        Move::Say(
            "I would run the tests and read the code, but this session does not offer the tools.".to_owned(),
        )
    };
    let done = &situation.done;
    if let Some(last) = done.last()
        && last.failed()
        && last.call.name != "bash"
    {
        return Move::Say(format!(
            "`{}` failed, so I stop here:\n\n{}",
            last.call.name,
            act::excerpt(last.text())
        ));
    }
    match done.as_slice() {
        [] => act::list(situation, ".").unwrap_or_else(missing),
        [listing] => run_tests(situation, listing).unwrap_or_else(missing),
        [_, test] => look_at(situation, test).unwrap_or_else(missing),
        [_, test, source] => fix(situation, test, source),
        [_, test, _, _] => Move::Call("bash", test.call.args.clone()),
        [_, first, .., last] => report(first, last),
    }
}

fn run_tests(situation: &Situation<'_>, listing: &Done<'_>) -> Option<Move> {
    let Some(command) = act::test_command(listing.text()) else {
        return Some(Move::Say(format!(
            "I found no test here. These are the files:\n\n{}",
            act::excerpt(listing.text())
        )));
    };
    situation
        .offers("bash")
        .then(|| Move::Call("bash", json!({"command": command})))
}

fn look_at(situation: &Situation<'_>, test: &Done<'_>) -> Option<Move> {
    let shown = act::excerpt(test.text());
    let Some((line, _)) = failure(test.text()) else {
        return Some(Move::Say(format!(
            "I ran the tests and found no failure that I understand:\n\n{shown}"
        )));
    };
    match SOURCE.as_ref().and_then(|pattern| pattern.find(line)) {
        Some(path) => act::read(situation, path.as_str()),
        None => Some(Move::Say(format!(
            "A test fails, but it does not name a file:\n\n{shown}"
        ))),
    }
}

fn fix(situation: &Situation<'_>, test: &Done<'_>, source: &Done<'_>) -> Move {
    let Some((line, function)) = failure(test.text()) else {
        return Move::Say("The failure is gone.".to_owned());
    };
    let path = SOURCE.as_ref().and_then(|pattern| pattern.find(line));
    let text = without_numbers(source.text());
    match (find(&text, function), path) {
        (Some(repair), Some(path)) if situation.offers("edit_file") => Move::Call(
            "edit_file",
            json!({"path": path.as_str(), "old_string": repair.old, "new_string": repair.new}),
        ),
        (Some(repair), Some(path)) => Move::Say(format!(
            "In `{}`, {}: `{}` should be `{}`. I was not given a tool to change it.",
            path.as_str(),
            repair.reason,
            repair.old,
            repair.new
        )),
        _ => Move::Say(format!(
            "`{function}` gives a wrong result, but I found none of the mistakes I know in it:\n\n{line}"
        )),
    }
}

fn report(first: &Done<'_>, last: &Done<'_>) -> Move {
    let function = failure(first.text()).map_or("a function", |(_, function)| function);
    let shown = act::excerpt(last.text());
    Move::Say(if failure(last.text()).is_some() || last.failed() {
        format!("I changed `{function}`, but the tests still fail:\n\n{shown}")
    } else {
        format!("I fixed `{function}`. The tests now print:\n\n{shown}")
    })
}

/// Returns the first line that reports a failure, and the function it names.
fn failure(output: &str) -> Option<(&str, &str)> {
    let found = FAILURE.as_ref()?.captures(output)?;
    Some((found.get(0)?.as_str(), found.get(1)?.as_str()))
}

/// Looks for a known mistake in the body of a function.
fn find(source: &str, function: &str) -> Option<Repair> {
    let body = body_of(source, function);
    MISTAKES
        .iter()
        .filter(|mistake| {
            mistake.function.is_empty() || mistake.function.split('|').any(|part| function.contains(part))
        })
        .find_map(|mistake| {
            let wrong = Regex::new(mistake.wrong).ok()?;
            let line = body.iter().find(|line| wrong.is_match(line))?;
            Some(Repair {
                old: line.trim().to_owned(),
                new: wrong.replace(line, mistake.right).trim().to_owned(),
                reason: mistake.name,
            })
        })
}

/// Returns the lines of a function, from the one that names it to the one that closes it.
fn body_of<'text>(source: &'text str, function: &str) -> Vec<&'text str> {
    let opens = |line: &str| {
        let line = line.trim_start();
        ["", "function ", "def ", "fn ", "pub fn "]
            .iter()
            .any(|word| line.starts_with(&format!("{word}{function}(")))
    };
    source
        .lines()
        .skip_while(|line| !opens(line))
        .skip(1)
        .take_while(|line| *line != "}" && !line.starts_with("def "))
        .collect()
}

/// Removes the line numbers that a tool may have put before each line.
fn without_numbers(text: &str) -> String {
    let Some(pattern) = NUMBERED.as_ref() else {
        return text.to_owned();
    };
    let numbered = text.lines().filter(|line| pattern.is_match(line)).count();
    if numbered * 2 < text.lines().count() {
        return text.to_owned();
    }
    let lines: Vec<_> = text.lines().map(|line| pattern.replace(line, "")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use regex::Regex;

    use super::{MISTAKES, find, without_numbers};

    /// PROV-5: the table of known mistakes, each with a line that shows it.
    #[test]
    fn known_mistakes_are_fixed() {
        let cases = [
            (
                "average",
                "echo $((total / (count - 1)))",
                "echo $((total / count))",
            ),
            (
                "average",
                "echo $((total / (count + 1)))",
                "echo $((total / count))",
            ),
            (
                "max",
                r#"if [ "$n" -lt "$m" ]; then"#,
                r#"if [ "$n" -gt "$m" ]; then"#,
            ),
            (
                "min",
                r#"if [ "$n" -gt "$m" ]; then"#,
                r#"if [ "$n" -lt "$m" ]; then"#,
            ),
            ("sum", "total=$((total - number))", "total=$((total + number))"),
            ("sum", "total=1", "total=0"),
            ("product", "all=$((all + number))", "all=$((all * number))"),
            ("last", "echo $((count - 1))", "echo $((count))"),
        ];
        for (function, wrong, right) in cases {
            let source = format!("{function}() {{\n    {wrong}\n}}\n");
            let repair = find(&source, function).unwrap();
            assert_eq!((repair.old.as_str(), repair.new.as_str()), (wrong, right));
        }
    }

    /// PROV-5: only the named function is touched, and every pattern compiles.
    #[test]
    fn other_functions_are_left_alone() {
        let source = "sum() {\n    echo $((a - b))\n}\nmax() {\n    echo 1\n}\n";
        assert_eq!(find(source, "max"), None);
        assert!(MISTAKES.iter().all(|mistake| Regex::new(mistake.wrong).is_ok()));
    }

    /// PROV-5: line numbers before a file's lines are not part of the file.
    #[test]
    fn line_numbers_are_taken_off() {
        assert_eq!(
            without_numbers("     1\tsum() {\n     2\t    x\n"),
            "sum() {\n    x"
        );
        assert_eq!(without_numbers("1→a\n2→b"), "a\nb");
        assert_eq!(without_numbers("sum() {\n}"), "sum() {\n}");
    }
}
