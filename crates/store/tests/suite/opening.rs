//! Opens sessions with a long history.

use windlass_core::event::{Event, GoalCompletion, SessionEvent, Waiting};
use windlass_core::id::MessageId;
use windlass_core::log::{History, Opened};
use windlass_core::message::{Part, Role};

use super::bed::{Bed, append, said, the_end};

fn id(event: &Event) -> MessageId {
    match event {
        Event::Message { message } => message.id.clone(),
        other => panic!("{other:?}"),
    }
}

fn compaction(history: &[&Event]) -> Event {
    Event::Session(SessionEvent::Compaction {
        before: 9,
        after: 1,
        history: history.iter().map(|event| id(event)).collect(),
        fidelity: None,
    })
}

/// Releases and reopens the session; returns the texts a model would see.
async fn reopened(bed: &Bed, opened: &Opened) -> (Opened, Vec<String>) {
    bed.store.release(&opened.lease).await.unwrap();
    let session = &opened.info.id;
    let again = bed.store.open(session, &windlass_store::owner()).await.unwrap();
    let history = History::read(&again.entries).into_messages();
    let seen = history.iter().map(|message| message.text()).collect();
    // A reader of the whole log sees the same.
    let all = bed.store.entries(session, 0, usize::MAX).await.unwrap();
    let whole = History::read(&all).into_messages();
    let whole: Vec<String> = whole.iter().map(|message| message.text()).collect();
    assert_eq!(seen, whole);
    (again, seen)
}

/// Two turns, the second of which starts with a summary of the first, as the summarizing strategy makes it.
async fn summarized(bed: &Bed) -> Opened {
    let opened = bed.session("one").await;
    let first = said(Role::User, "first");
    let mut events = vec![first.clone()];
    events.extend((0..100).map(|number| said(Role::Assistant, &format!("answer {number}"))));
    events.push(the_end("answer"));
    let (asked, summary) = (said(Role::User, "second"), said(Role::User, "summary"));
    let waiting = Event::Waiting(Waiting::Queue {
        messages: Vec::new(),
        steers: Vec::new(),
    });
    let kept = compaction(&[&first, &summary, &asked]);
    events.extend([asked, waiting, summary, kept]);
    events.extend([said(Role::Assistant, "well"), the_end("well")]);
    append(&bed.store, &opened.lease, 1, events).await;
    opened
}

/// SES-7, CTX-5: a summary keeps the very first message. The messages between the two are not read.
#[tokio::test]
async fn the_first_message_does_not_bring_the_others() {
    let bed = Bed::new();
    let opened = summarized(&bed).await;
    let (again, seen) = reopened(&bed, &opened).await;
    assert_eq!(seen, ["first", "summary", "second", "well"]);
    let numbers: Vec<u64> = again.entries.iter().map(|entry| entry.seq).collect();
    // The queue at the time of the summary is read as well.
    assert_eq!(numbers, [1, 103, 104, 105, 106, 107, 108]);
}

/// SES-7: a rewind to after a summary reads only the entries since then; a rewind to before it reads
/// everything.
#[tokio::test]
async fn rewinds_bring_back_what_they_need() {
    let bed = Bed::new();
    let opened = summarized(&bed).await;
    let rewind = |to| vec![Event::Session(SessionEvent::Rewind { to })];
    append(&bed.store, &opened.lease, 109, vec![said(Role::User, "third")]).await;
    append(&bed.store, &opened.lease, 110, rewind(108)).await;
    let (again, seen) = reopened(&bed, &opened).await;
    assert_eq!(seen, ["first", "summary", "second", "well"]);
    assert_eq!(again.entries.len(), 9);
    let info = bed.store.get(&"one".into()).await.unwrap().unwrap();
    assert!(info.summary.is_some());
    append(&bed.store, &again.lease, 111, rewind(102)).await;
    let (again, seen) = reopened(&bed, &again).await;
    assert_eq!(seen.len(), 101);
    append(&bed.store, &again.lease, 112, rewind(109)).await;
    let (again, seen) = reopened(&bed, &again).await;
    assert_eq!(seen, ["first", "summary", "second", "well", "third"]);
    let last = said(Role::User, "summary of all");
    let kept = compaction(&[&last]);
    append(&bed.store, &again.lease, 113, vec![last, kept]).await;
    let (again, seen) = reopened(&bed, &again).await;
    assert_eq!(seen, ["summary of all"]);
    assert_eq!(again.entries.len(), 2 + 3, "the rewinds, too");
}

/// SES-7: an abandoned version of a message does not come back with the next summary.
#[tokio::test]
async fn versions_left_behind_stay_there() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let first = said(Role::User, "whole");
    let Event::Message { message } = &first else {
        panic!()
    };
    let mut shorter = (**message).clone();
    shorter.parts = vec![Part::text("cut")];
    let shorter = Event::Message {
        message: shorter.into(),
    };
    let (second, third) = (said(Role::User, "second"), said(Role::User, "third"));
    let events = vec![
        first.clone(),
        the_end("1"),
        second,
        shorter,
        compaction(&[&first]),
    ];
    append(&bed.store, &opened.lease, 1, events).await;
    let (again, seen) = reopened(&bed, &opened).await;
    assert_eq!(seen, ["cut"]);
    let rewind = Event::Session(SessionEvent::Rewind { to: 2 });
    let kept = compaction(&[&first, &third]);
    append(&bed.store, &again.lease, 6, vec![rewind, third, kept]).await;
    let (again, seen) = reopened(&bed, &again).await;
    assert_eq!(seen, ["whole", "third"]);
    let rewind = Event::Session(SessionEvent::Rewind { to: 5 });
    append(&bed.store, &again.lease, 9, vec![rewind]).await;
    assert_eq!(reopened(&bed, &again).await.1, ["cut"]);
}

/// GOAL-1: goal entries are read, however old they are.
#[tokio::test]
async fn goals_are_read_whenever_they_were_set() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let goal = |text: &str| {
        Event::Session(SessionEvent::Goal {
            text: Some(text.to_owned()),
            explicit: false,
        })
    };
    let reached = Event::Session(SessionEvent::GoalCompleted {
        text: "a".to_owned(),
        how: GoalCompletion::Command,
    });
    let (first, second) = (said(Role::User, "first"), said(Role::User, "second"));
    let kept = compaction(&[&second]);
    let events = vec![
        first,
        goal("a"),
        the_end("1"),
        reached,
        second,
        goal("b"),
        kept,
        goal("c"),
    ];
    append(&bed.store, &opened.lease, 1, events).await;
    let (again, seen) = reopened(&bed, &opened).await;
    assert_eq!(seen, ["second"]);
    let numbers: Vec<u64> = again.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(numbers, [2, 4, 5, 6, 7, 8]);
}
