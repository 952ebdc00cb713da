//! Renders `docs/conformance.md`.

use std::fmt::Write as _;

use super::register::{Area, Register, Requirement, State};
use super::scan::NamedTest;

const INTRODUCTION: &str = "\
# Conformance

Every requirement of Windlass has an id, and a test that shows it names that id in its doc comment. This page
joins the two. It is written by `cargo xtask conformance` from the tests themselves and checked with every run of
the tests, so a requirement is listed as done only while a test shows it. *planned* means not promised yet, even
where first tests exist.
";

pub(crate) fn render(register: &Register, tests: &[NamedTest]) -> String {
    let all = register.requirements().count();
    let done = register
        .requirements()
        .filter(|requirement| requirement.state == State::Done)
        .count();
    let areas = register.areas.iter().map(|area| table(area, tests));
    format!(
        "{INTRODUCTION}\n{done} of {all} are done.\n{}",
        areas.collect::<String>()
    )
}

fn table(area: &Area, tests: &[NamedTest]) -> String {
    let mut text = format!(
        "\n## {} · {}\n\n| id | what | tests |\n|---|---|---|\n",
        area.name, area.title
    );
    for state in [State::Done, State::Planned] {
        for requirement in area
            .requirements
            .iter()
            .filter(|requirement| requirement.state == state)
        {
            text.push_str(&row(requirement, tests));
        }
    }
    text
}

fn row(requirement: &Requirement, tests: &[NamedTest]) -> String {
    let Requirement {
        id,
        title,
        aliases,
        state,
        ..
    } = requirement;
    let mut row = format!("| {id}");
    if !aliases.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(row, " ({})", aliases.join(", "));
    }
    let planned = (*state == State::Planned).then(|| "planned".to_owned());
    let shown = tests.iter().filter(|test| test.ids.contains(id));
    let mut shown: Vec<String> = shown
        .map(|test| format!("`{}::{}`", test.path, test.name))
        .collect();
    shown.sort();
    let cells: Vec<String> = planned.into_iter().chain(shown).collect();
    let _ = writeln!(row, " | {} | {} |", title.replace('|', "\\|"), cells.join("<br>"));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_comes_first_and_planned_is_marked() {
        let register = Register::parse(
            "[[area]]\nname = \"LOOP\"\ntitle = \"the loop\"\nrequirements = [\n\
             { id = \"LOOP-1\", state = \"planned\", title = \"one\" },\n\
             { id = \"LOOP-2\", state = \"done\", title = \"two\", aliases = [\"S5.1\"] },\n]\n",
        )
        .expect("the fixture is a register");
        let test = |name: &str, id: &str| NamedTest {
            path: "a.rs".to_owned(),
            line: 1,
            name: name.to_owned(),
            ids: vec![id.to_owned()],
        };
        let page = render(
            &register,
            &[
                test("late", "LOOP-2"),
                test("early", "LOOP-2"),
                test("first", "LOOP-1"),
            ],
        );
        let expected = "1 of 2 are done.\n\n## LOOP · the loop\n\n| id | what | tests |\n|---|---|---|\n\
                        | LOOP-2 (S5.1) | two | `a.rs::early`<br>`a.rs::late` |\n\
                        | LOOP-1 | one | planned<br>`a.rs::first` |\n";
        assert_eq!(
            page.strip_prefix(INTRODUCTION).map(str::trim_start),
            Some(expected)
        );
    }
}
