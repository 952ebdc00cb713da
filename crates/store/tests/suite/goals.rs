//! The registry of goals.

use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, GoalCompletion, GoalEvent, GoalRun, GoalState, GoalStop, SessionEvent};
use windlass_core::log::{Booking, GoalInfo, NewSession, Verification};
use windlass_core::model::Usage;

use super::bed::{Bed, batch};

fn work(event: GoalEvent) -> Event {
    Event::Session(SessionEvent::Work(event))
}

fn run(text: &str) -> Event {
    work(GoalEvent::GoalRun(GoalRun {
        text: text.to_owned(),
        criteria: Vec::new(),
        plan: false,
        max_turns: 5,
        max_cost_usd: None,
        before_usd: 0.0,
        before_tokens: 0,
    }))
}

fn state(state: GoalState, reason: Option<GoalStop>) -> Event {
    work(GoalEvent::GoalState {
        state,
        reason,
        message: String::new(),
        at: Timestamp(1),
        until: None,
    })
}

async fn only(bed: &Bed) -> GoalInfo {
    let goals = bed.store.goals(false).await.unwrap();
    assert_eq!(goals.len(), 1);
    goals.into_iter().next().unwrap()
}

/// GOAL-5: the registry follows the events of a session, in their transaction.
#[tokio::test]
async fn the_registry_follows_events() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let mut seq = 1;
    let mut append = async |events: Vec<Event>| {
        let count = events.len() as u64;
        bed.store.append(&opened.lease, batch(seq, events)).await.unwrap();
        seq += count;
    };
    append(vec![run("ship"), state(GoalState::Active, None)]).await;
    append(vec![work(GoalEvent::GoalTurn { number: 2 })]).await;
    let verdict = GoalEvent::GoalVerdict {
        turn: 2,
        achieved: false,
        reason: "no".to_owned(),
    };
    append(vec![work(verdict)]).await;
    let info = only(&bed).await;
    assert_eq!(
        (info.state, info.turns, info.max_turns),
        (GoalState::Active, 2, 5)
    );
    assert_eq!(info.verification, Some(Verification::NotYet));
    assert_eq!(bed.store.goals(true).await.unwrap().len(), 1);
    append(vec![state(GoalState::Paused, Some(GoalStop::ProcessEnded))]).await;
    assert!(only(&bed).await.is_orphaned());
    assert!(bed.store.goals(true).await.unwrap().is_empty());
    // The same goal again keeps its turns, another one starts over.
    append(vec![run("ship"), state(GoalState::Active, None)]).await;
    assert_eq!(only(&bed).await.turns, 2);
    let reached = Event::Session(SessionEvent::GoalCompleted {
        text: "ship".to_owned(),
        how: GoalCompletion::Verified,
    });
    append(vec![reached, state(GoalState::Completed, None)]).await;
    let info = only(&bed).await;
    assert_eq!(
        info.verification,
        Some(Verification::Reached(GoalCompletion::Verified))
    );
    append(vec![run("rest"), state(GoalState::Active, None)]).await;
    let info = only(&bed).await;
    assert_eq!((info.turns, info.verification), (0, None));
}

/// GOAL-9: unattended cost is what sessions and their children booked while they worked without input.
#[tokio::test]
async fn unattended_cost_is_that_of_active_times() {
    let bed = Bed::new();
    let opened = bed.session("parent").await;
    let new = NewSession {
        id: Some("child".into()),
        parent: Some("parent".into()),
        ..NewSession::default()
    };
    bed.store.create(new, "me").await.unwrap();
    bed.session("other").await;
    let at = async |seq: u64, time: u64, events: Vec<Event>| {
        let mut batch = batch(seq, events);
        batch.time = Timestamp(time);
        bed.store.append(&opened.lease, batch).await.unwrap();
    };
    at(1, 1_000, vec![run("g"), state(GoalState::Active, None)]).await;
    at(3, 2_000, vec![state(GoalState::Paused, Some(GoalStop::User))]).await;
    at(4, 5_000, vec![state(GoalState::Active, None)]).await;
    for (session, time, cost) in [
        ("parent", 500, 1.0),
        ("parent", 1_500, 2.0),
        ("child", 1_600, 4.0),
        ("parent", 3_000, 8.0),
        ("parent", 6_000, 16.0),
        ("other", 1_500, 32.0),
    ] {
        let booking = Booking {
            time: Timestamp(time),
            provider: "p".into(),
            model: "m".into(),
            cause: "turn".into(),
            usage: Usage::default(),
            cost_usd: Some(cost),
        };
        bed.store.book(&session.into(), booking).await.unwrap();
    }
    for (since, expected) in [(0, 22.0), (1_600, 20.0), (5_500, 16.0), (9_000, 0.0)] {
        let cost = bed.store.unattended_cost(Timestamp(since)).await.unwrap();
        assert!((cost - expected).abs() < 1e-9, "since {since}: {cost}");
    }
}
