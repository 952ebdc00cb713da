//! GOAL-6: a plan as a Markdown checklist, which people edit.

use std::fmt::Write;

use windlass_api::{Plan, PlanStep, StepState};
use windlass_core::text::one_line;

use super::plan::validate;

/// Lines above the steps that explain the format.
const GUIDE: &str = "\
<!-- One line for each step: `- [ ] id: title`. `[x]` marks a step that is done. Below it, indented:
     `after: id, id` names the steps that come first, and `check: command` succeeds once the step is done. -->
";
/// Columns of a key below a step.
const INDENT: &str = "      ";

/// Writes a plan.
pub(crate) fn write(plan: &Plan) -> String {
    let mut text = format!("# {}\n\n{GUIDE}\n", one_line(&plan.goal));
    for step in &plan.steps {
        let mark = mark(step.status);
        let _ = writeln!(text, "- [{mark}] {}: {}", step.id, one_line(&step.title));
        if !step.depends_on.is_empty() {
            let _ = writeln!(text, "{INDENT}after: {}", step.depends_on.join(", "));
        }
        if let Some(check) = &step.check {
            // The further lines of a command are below the first.
            let check = check.trim().replace('\n', &format!("\n{INDENT}{INDENT} "));
            let _ = writeln!(text, "{INDENT}check: {check}");
        }
    }
    text
}

/// Returns the sign of a state in a checklist.
pub(super) fn mark(state: StepState) -> char {
    match state {
        StepState::Open => ' ',
        StepState::Active => '>',
        StepState::Done => 'x',
    }
}

/// Reads a plan.
///
/// # Errors
/// Names the line that is wrong, and what was expected.
pub(super) fn read(text: &str, goal: &str) -> Result<Plan, String> {
    let (plan, lines) = parse(text, goal)?;
    match validate(&plan) {
        Ok(()) => Ok(plan),
        Err(flaw) => match flaw.step.and_then(|step| lines.get(step)) {
            Some(line) => Err(format!("line {line}: {}", flaw.text)),
            None => Err(flaw.text),
        },
    }
}

/// Reads the steps, each with its line. The graph is not checked.
fn parse(text: &str, goal: &str) -> Result<(Plan, Vec<usize>), String> {
    let mut plan = Plan {
        goal: goal.to_owned(),
        steps: Vec::new(),
    };
    let mut lines = Vec::new();
    let mut is_comment = false;
    // Columns before the key of a command that may continue in the next line.
    let mut check = None;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim();
        let wrong = |why: String| format!("line {number}: {why}");
        if is_comment || content.starts_with("<!--") {
            is_comment = !content.ends_with("-->");
        } else if content.is_empty() {
            check = None;
        } else if let Some(title) = content.strip_prefix('#').filter(|_| plan.steps.is_empty()) {
            title.trim_start_matches('#').trim().clone_into(&mut plan.goal);
        } else if let Some(item) = item(line) {
            plan.steps.push(step(item).map_err(wrong)?);
            lines.push(number);
            check = None;
        } else {
            let step = plan.steps.last_mut().filter(|_| line.starts_with([' ', '\t']));
            let step = step.ok_or_else(|| wrong(format!("expected `- [ ] id: title`, found `{content}`")))?;
            check = detail(step, line, check).map_err(wrong)?;
        }
    }
    Ok((plan, lines))
}

/// Returns the text of a list item that is not indented: `- x`, `* x`, `+ x`, `1. x`.
fn item(line: &str) -> Option<&str> {
    let bullet = line.strip_prefix(['-', '*', '+']);
    let numbered = || {
        let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
        rest.strip_prefix(['.', ')']).filter(|_| rest.len() < line.len())
    };
    let rest = bullet.or_else(numbered)?;
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

/// Reads `[ ] id: title`.
fn step(item: &str) -> Result<PlanStep, String> {
    let expected = || format!("expected `[ ] id: title` in the list item, found `{item}`");
    let rest = item.strip_prefix('[').ok_or_else(expected)?;
    let (mark, rest) = rest.split_once(']').ok_or_else(expected)?;
    let status = match mark.trim() {
        "" => StepState::Open,
        "x" | "X" => StepState::Done,
        ">" => StepState::Active,
        other => {
            return Err(format!(
                "`[{other}]` is no state of a step; expected `[ ]`, `[x]` or `[>]`"
            ));
        }
    };
    let (id, title) = rest.split_once(':').ok_or_else(expected)?;
    let (id, title) = (id.trim(), title.trim());
    if title.is_empty() {
        return Err(format!("step `{id}` has no title; expected `- [ ] {id}: title`"));
    }
    Ok(PlanStep {
        id: id.to_owned(),
        title: title.to_owned(),
        status,
        depends_on: Vec::new(),
        check: None,
    })
}

/// Reads an indented line below a step. A line further to the right than `check` continues that command. Returns the
/// columns before the key of a command.
fn detail(step: &mut PlanStep, line: &str, check: Option<usize>) -> Result<Option<usize>, String> {
    let content = line.trim();
    let indent = line.len() - line.trim_start().len();
    if let (Some(command), true) = (&mut step.check, check.is_some_and(|columns| indent > columns)) {
        let _ = write!(command, "\n{content}");
        return Ok(check);
    }
    let (key, value) = content.split_once(':').unwrap_or((content, ""));
    let value = value.trim();
    match (key.trim(), &step.check) {
        ("after", _) => {
            let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
            step.depends_on.extend(names.map(str::to_owned));
            Ok(None)
        }
        ("check", _) if value.is_empty() => Err("`check` needs a command".to_owned()),
        ("check", None) => {
            step.check = Some(value.to_owned());
            Ok(Some(indent))
        }
        ("check", Some(_)) => Err(format!("step `{}` has two checks; join them with `&&`", step.id)),
        (key, _) => Err(format!(
            "`{key}` is not known below step `{}`; expected `after: id, id` or `check: command`",
            step.id
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GOAL-6: a plan that was written is read again as it was.
    #[test]
    fn a_plan_survives_its_file() {
        let step = |id: &str, depends_on: &[&str], check: Option<&str>, status| PlanStep {
            id: id.into(),
            title: format!("do {id}: now"),
            depends_on: depends_on.iter().map(|id| (*id).to_owned()).collect(),
            check: check.map(str::to_owned),
            status,
        };
        let plan = Plan {
            goal: "build it".into(),
            steps: vec![
                step("a", &[], Some("test -s a: && true"), StepState::Done),
                step("b", &["a"], Some("cat <<X\nafter: all\nX"), StepState::Active),
                step("c", &["a", "b"], None, StepState::Open),
            ],
        };
        let text = write(&plan);
        assert_eq!(read(&text, "other"), Ok(plan), "{text}");
    }

    /// GOAL-6: mistakes are named with their line.
    #[test]
    fn mistakes_have_a_line() {
        for (text, words) in [
            (
                "# g\n\nsome words",
                "line 3: expected `- [ ] id: title`, found `some words`",
            ),
            (
                "- [ ] a",
                "line 1: expected `[ ] id: title` in the list item, found `[ ] a`",
            ),
            ("- a: b", "line 1: expected `[ ] id: title`"),
            ("- [?] a: b", "line 1: `[?]` is no state of a step"),
            ("- [ ] a:", "line 1: step `a` has no title"),
            (
                "- [ ] a: b\n  chekc: x",
                "line 2: `chekc` is not known below step `a`; expected `after",
            ),
            ("- [ ] a: b\n  check:", "line 2: `check` needs a command"),
            (
                "- [ ] a: b\n  check: x\n  check: y",
                "line 3: step `a` has two checks",
            ),
            (
                "- [ ] a: b\n\n- [ ] c: d\n  check: x\n  after: e",
                "line 3: step `c` depends on `e`",
            ),
            (
                "- [ ] a: b\n  after: c\n- [ ] c: d\n  after: a",
                "line 1: the steps depend on each other in a circle",
            ),
        ] {
            let error = read(text, "").unwrap_err();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }

    /// GOAL-6: other bullets, numbers and comments are understood.
    #[test]
    fn other_lists_are_read() {
        let text = "<!-- a\nb -->\n## ship it\n1. [X] a: b\n\n* [ ] c: d\n\tafter: a\n";
        let plan = read(text, "").unwrap();
        let ids: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
        assert_eq!((plan.goal.as_str(), ids), ("ship it", vec!["a", "c"]));
        assert_eq!(plan.steps[1].depends_on, ["a"]);
    }
}
