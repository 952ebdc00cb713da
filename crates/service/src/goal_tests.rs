//! Goals are set, completed and cleared.

use std::sync::Arc;

use windlass_core::clock::Timestamp;
use windlass_core::message::Role;

use super::*;

fn set(text: &str) -> Event {
    Event::Session(SessionEvent::Goal {
        text: Some(text.to_owned()),
        explicit: false,
    })
}

fn clear() -> Event {
    Event::Session(SessionEvent::Goal {
        text: None,
        explicit: false,
    })
}

fn active(text: &str, explicit: bool) -> Goal {
    Goal::Active {
        text: text.to_owned(),
        explicit,
    }
}

fn reached(text: &str) -> Event {
    Event::Session(SessionEvent::GoalCompleted {
        text: text.to_owned(),
        how: GoalCompletion::Command,
    })
}

fn rewind(to: u64) -> Event {
    Event::Session(SessionEvent::Rewind { to })
}

fn message(parts: &[&str]) -> Message {
    let part = |text: &&str| match *text {
        "ENVIRONMENT" => Part::context(windlass_core::message::FragmentSource::Environment, "x"),
        text => Part::text(text),
    };
    let parts = parts.iter().map(part).collect();
    Message::new(&"s".into(), Role::User, parts, Timestamp(1))
}

fn read(events: Vec<Event>) -> Goal {
    let entry = |(seq, event)| Entry {
        seq,
        time: Timestamp(1),
        event,
    };
    let entries: Vec<Entry> = (1..).zip(events).map(entry).collect();
    Goal::read(&entries)
}

/// GOAL-1: idle, active, completed, active again, and idle; a rewind takes the goal along.
#[test]
fn a_goal_is_a_fold_over_the_record() {
    let active = |text: &str| active(text, false);
    let completed = |text: &str| Goal::Completed(text.to_owned());
    let said = || Event::Message {
        message: Arc::new(message(&["hi"])),
    };
    for (events, expected) in [
        (vec![], Goal::Idle),
        (vec![said()], Goal::Idle),
        (vec![set("a")], active("a")),
        (vec![set("a"), said(), set("b")], active("b")),
        (vec![set("a"), reached("a")], completed("a")),
        (vec![set("a"), reached("a"), set("b")], active("b")),
        (vec![set("a"), clear()], Goal::Idle),
        (vec![set("a"), reached("a"), rewind(1)], active("a")),
        (vec![said(), set("a"), rewind(1)], Goal::Idle),
        (vec![set("a"), reached("a"), rewind(1), rewind(2)], completed("a")),
        (vec![set("a"), rewind(0), set("b"), rewind(2)], Goal::Idle),
    ] {
        assert_eq!(read(events.clone()), expected, "{events:?}");
    }
}

/// GOAL-1: the user's first message is the goal, in full; later ones extend it, replace it, or leave it as it is. A goal
/// that a command set stays. A message without text sets none.
#[test]
fn messages_begin_goals() {
    let long = "word ".repeat(1000);
    let (extend, replace, keep) = (LaterMessages::Extend, LaterMessages::Replace, LaterMessages::Keep);
    let cases: [(Goal, LaterMessages, &[&str], Option<&str>); 11] = [
        (Goal::Idle, keep, &[" fix it\nnow "], Some("fix it\nnow")),
        (
            Goal::Idle,
            keep,
            &["ENVIRONMENT", "fix it", "as JSON"],
            Some("fix it"),
        ),
        (Goal::Idle, extend, &[&long], Some(long.trim())),
        (Goal::Idle, extend, &[], None),
        (Goal::Idle, extend, &["ENVIRONMENT"], None),
        (active("a", false), keep, &["and this"], None),
        (active("a", false), extend, &["and this"], Some("a\nand this")),
        (active("a", false), extend, &[&long], None),
        (active("a", false), replace, &["and this"], Some("and this")),
        (active("a", true), replace, &["and this"], None),
        (Goal::Completed("a".into()), keep, &["and this"], Some("and this")),
    ];
    for (goal, later, parts, expected) in cases {
        assert_eq!(
            goal.told_by(&message(parts), later),
            expected.map(set),
            "{goal:?}, {parts:?}"
        );
    }
}

/// GOAL-2: only an active goal can be completed.
#[test]
fn only_active_goals_are_completed() {
    let completed = |goal: Goal| goal.completed(GoalCompletion::Command);
    assert_eq!(completed(Goal::Idle), None);
    assert_eq!(completed(Goal::Completed("a".into())), None);
    assert_eq!(completed(active("a", true)), Some(reached("a")));
}
