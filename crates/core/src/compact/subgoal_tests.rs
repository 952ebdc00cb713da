//! The registry compared with a model that tags every message.

use proptest::prelude::*;

use super::*;

fn said(current: &str) -> Extracted {
    Extracted {
        current: Some(current.to_owned()),
        is_completed: false,
    }
}

fn tiers(registry: &Registry) -> String {
    let sign = |place| match registry.tier(place) {
        Tier::Active => 'A',
        Tier::Completed => 'c',
        Tier::Outdated => '-',
    };
    (0..registry.length).map(sign).collect()
}

/// CTX-7: the first subgoal gets the earlier messages; a new subgoal completes the old one; a completed one
/// stays completed.
#[test]
fn subgoals_come_and_go() {
    let mut registry = Registry::default();
    registry.extend(4);
    assert_eq!(tiers(&registry), "----");
    registry.update(said("find it"));
    assert_eq!(tiers(&registry), "-AAA");
    registry.extend(2);
    registry.update(said("find it"));
    assert_eq!(tiers(&registry), "-AAAAA");
    registry.update(said("fix it"));
    registry.extend(3);
    assert_eq!(tiers(&registry), "-cccccAAA");
    assert_eq!(registry.active().map(|goal| goal.text.as_str()), Some("fix it"));
    registry.update(Extracted {
        current: None,
        is_completed: true,
    });
    registry.extend(2);
    assert_eq!(tiers(&registry), "-cccccccc--");
    registry.update(said("tell"));
    registry.extend(1);
    assert_eq!(tiers(&registry), "-cccccccc--A");
    assert_eq!(Tier::Active.relevance(), 1.0);
}

/// CTX-7: answers of a model are parsed as intended.
#[test]
fn answers_are_read() {
    for (reply, current, is_completed) in [
        (
            "CURRENT: fix the parser\nCOMPLETED: NONE",
            Some("fix the parser"),
            false,
        ),
        ("current : a\n  Completed: find the bug", Some("a"), true),
        ("COMPLETED: all of it", None, true),
        ("CURRENT: none\nCOMPLETED: none", None, false),
        ("Fixing the parser", Some("Fixing the parser"), false),
        ("", None, false),
        ("CURRENT: a\u{1b}[2Jb", Some("a [2Jb"), false),
    ] {
        let read = Extracted::read(reply);
        assert_eq!(
            (read.current.as_deref(), read.is_completed),
            (current, is_completed),
            "{reply:?}"
        );
    }
    assert_eq!(
        Extracted::read(&"x".repeat(9_000)).current.map(|text| text.len()),
        Some(500)
    );
}

#[derive(Debug, Clone)]
enum Step {
    Extend(usize),
    Goal,
    Done,
    Replace(usize, usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_usize..5).prop_map(Step::Extend),
        2 => Just(Step::Goal),
        1 => Just(Step::Done),
        2 => (0_usize..30, 0_usize..12, 0_usize..3).prop_map(|(from, count, inserted)| Step::Replace(from, count, inserted)),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    /// CTX-7: after any extensions, subgoals and compactions, every remaining message has the tier it would
    /// have if it had been tagged individually.
    #[test]
    fn places_are_right_after_compaction(steps in steps()) {
        let mut registry = Registry::default();
        // Each message with the number of its subgoal; `None` for an inserted message, which may belong to
        // any.
        let mut tags: Vec<Option<Option<usize>>> = Vec::new();
        let (mut count, mut active) = (0, None);
        for step in steps {
            match step {
                Step::Extend(new) => {
                    registry.extend(new);
                    tags.extend(vec![Some(active); new]);
                }
                Step::Goal => {
                    registry.update(said(&format!("goal {count}")));
                    if count == 0 {
                        for tag in tags.iter_mut().skip(1) {
                            *tag = tag.map(|_| Some(0));
                        }
                    }
                    active = Some(count);
                    count += 1;
                }
                Step::Done => {
                    registry.update(Extracted { current: None, is_completed: true });
                    active = None;
                }
                Step::Replace(from, gone, inserted) => {
                    let from = from.min(tags.len());
                    let to = (from + gone).min(tags.len());
                    registry.rebuild(from..to, inserted);
                    tags.splice(from..to, vec![None; inserted]);
                }
            }
            prop_assert_eq!(registry.length, tags.len());
            let mut end = 0;
            for goal in registry.subgoals() {
                prop_assert!(goal.span.start >= end && goal.span.start <= goal.span.end && goal.span.end <= tags.len());
                end = goal.span.end;
            }
            for (place, tag) in tags.iter().enumerate() {
                let Some(tag) = tag else { continue };
                let expected = match tag {
                    Some(goal) if Some(*goal) == active => Tier::Active,
                    Some(_) => Tier::Completed,
                    None => Tier::Outdated,
                };
                prop_assert_eq!(registry.tier(place), expected, "message {} of {:?} in {:?}", place, tags, registry);
            }
        }
    }
}
