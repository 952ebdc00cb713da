//! Task graphs.

use super::*;

/// Ids with the ids they depend on.
type Steps<'a> = &'a [(&'a str, &'a [&'a str])];

fn plan(steps: Steps<'_>) -> Plan {
    let step = |(id, before): &(&str, &[&str])| PlanStep {
        id: (*id).to_owned(),
        title: format!("do {id}"),
        depends_on: before.iter().map(|id| (*id).to_owned()).collect(),
        check: None,
        status: StepState::Open,
    };
    Plan {
        goal: "g".to_owned(),
        steps: steps.iter().map(step).collect(),
    }
}

/// GOAL-6: a plan is read from an answer with words and a fence around it.
#[test]
fn plans_are_read() {
    let text = "Here it is:\n```json\n{\"steps\": [{\"id\": \"a\", \"title\": \"first\"}, {\"id\": \"b\", \"title\": \
                \"then\", \"depends_on\": [\"a\"], \"check\": \"make\"}]}\n```\n";
    let plan = read(text, "ship").unwrap();
    assert_eq!(
        listing(&plan),
        "1. [ ] a: first\n2. [ ] b: then (after a) — check: `make`\n"
    );
    assert_eq!(plan.goal, "ship");
}

/// GOAL-6: bad graphs are refused with the reason.
#[test]
fn bad_graphs_are_refused() {
    let many: Vec<(String, &[&str])> = (0..=MOST_STEPS).map(|n| (format!("s{n}"), &[][..])).collect();
    let many: Vec<(&str, &[&str])> = many.iter().map(|(id, before)| (id.as_str(), *before)).collect();
    let cases: &[(Steps<'_>, &str)] = &[
        (&[], "the plan has no steps"),
        (&many, "the plan has 21 steps; at most 20 are possible"),
        (&[("a", &["a"])], "in a circle: a → a"),
        (
            &[("a", &["c"]), ("b", &["a"]), ("c", &["b"]), ("d", &["a"])],
            "in a circle: a → c → b → a",
        ),
        (&[("a", &["x"])], "step `a` depends on `x`, which does not exist"),
        (&[("a", &[]), ("a", &[])], "two steps have the id `a`"),
        (&[("a b", &[])], "`a b` is not a step id"),
    ];
    for (steps, words) in cases {
        let error = validate(&plan(steps)).unwrap_err().text;
        assert!(error.contains(words), "{error}");
    }
    for text in [
        "no",
        "{\"steps\": 3}",
        "{\"steps\": [{\"id\": \"a\", \"title\": \"t\", \"extra\": 1}]}",
    ] {
        assert!(read(text, "g").is_err(), "{text}");
    }
}

/// GOAL-6: steps become ready when everything before them is done.
#[test]
fn steps_become_ready_in_order() {
    let mut plan = plan(&[("c", &["a", "b"]), ("a", &[]), ("b", &[])]);
    let ids = |plan: &Plan| -> Vec<String> { ready(plan).iter().map(|step| step.id.clone()).collect() };
    assert_eq!(ids(&plan), ["a", "b"]);
    plan.steps[2].status = StepState::Active;
    assert_eq!(ids(&plan), ["b", "a"]);
    plan.steps[1].status = StepState::Done;
    plan.steps[2].status = StepState::Done;
    assert_eq!(ids(&plan), ["c"]);
    plan.steps[0].status = StepState::Done;
    assert_eq!(ids(&plan), Vec::<String>::new());
}

/// GOAL-6: a dropped step leaves the order of the others as it was.
#[test]
fn steps_can_be_dropped() {
    let plan = plan(&[("a", &[]), ("b", &["a"]), ("c", &["b", "a"])]);
    let left = without(&plan, "2").unwrap();
    assert_eq!(listing(&left), "1. [ ] a: do a\n2. [ ] c: do c (after a)\n");
    assert_eq!(without(&plan, "b").unwrap(), left);
    assert!(without(&plan, "4").is_err() && without(&plan, "0").is_err() && without(&plan, "x").is_err());
}
