//! Writes a session and reads it back.

use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, SessionEvent};
use windlass_core::id::MessageId;
use windlass_core::log::{DraftChange, History, LogError, SessionStatus};
use windlass_core::message::{Message, Part, Role};

use super::bed::{Bed, append, batch, said, the_end};

/// SES-1, SES-5: acknowledged entries are there when the store is reopened, in order and unchanged.
#[tokio::test]
async fn what_is_appended_is_read_back() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let events = vec![
        said(Role::User, "go"),
        Event::Start {
            provider: "p".into(),
            model: "m".into(),
        },
        said(Role::Assistant, "gone"),
        the_end("gone"),
    ];
    append(&bed.store, &opened.lease, 1, events.clone()).await;
    let read = bed.again().entries(&"one".into(), 0, 100).await.unwrap();
    let found: Vec<&Event> = read.iter().map(|entry| &entry.event).collect();
    assert_eq!(found, events.iter().collect::<Vec<_>>());
    assert_eq!(
        read.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
    let part = bed.store.entries(&"one".into(), 2, 1).await.unwrap();
    assert_eq!(part.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [3]);
    let info = bed.store.get(&"one".into()).await.unwrap().unwrap();
    assert_eq!((info.totals.messages, info.last_seq), (2, 4));
    assert_eq!(info.standing, SessionStatus::Answered);
    assert_eq!(info.model, Some(("p".to_owned(), "m".to_owned())));
}

/// SES-5: a batch is written as a whole or not at all.
#[tokio::test]
async fn a_batch_is_all_or_nothing() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    append(&bed.store, &opened.lease, 1, vec![said(Role::User, "go")]).await;
    // The second number is taken.
    let clash = batch(0, vec![said(Role::User, "zero"), said(Role::User, "one again")]);
    assert!(bed.store.append(&opened.lease, clash).await.is_err());
    let read = bed.store.entries(&"one".into(), 0, 100).await.unwrap();
    assert_eq!(read.len(), 1);
    append(&bed.store, &opened.lease, 2, vec![the_end("x")]).await;
}

/// SES-4: the draft is there until an entry replaces it.
#[tokio::test]
async fn a_draft_lives_until_its_entry() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let draft = Message::new(
        &"one".into(),
        Role::Assistant,
        vec![Part::text("so far")],
        Timestamp(5),
    );
    for text in ["so", "so far"] {
        let mut change = batch(1, Vec::new());
        let mut draft = draft.clone();
        draft.parts = vec![Part::text(text)];
        change.draft = DraftChange::Set(Box::new(draft));
        bed.store.append(&opened.lease, change).await.unwrap();
    }
    bed.store.release(&opened.lease).await.unwrap();
    let again = bed.store.open(&"one".into(), "other").await.unwrap();
    assert_eq!(again.draft.as_ref(), Some(&draft));
    let mut last = batch(1, vec![said(Role::Assistant, "so far and on")]);
    last.draft = DraftChange::Clear;
    bed.store.append(&again.lease, last).await.unwrap();
    bed.store.release(&again.lease).await.unwrap();
    let again = bed.store.open(&"one".into(), "other").await.unwrap();
    assert_eq!(again.draft, None);
}

/// SES-7, CTX-5: after a compaction a session is opened from the first message that was kept; the messages it
/// replaces are still in the record.
#[tokio::test]
async fn opening_reads_from_the_last_summary() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let mut ids: Vec<MessageId> = Vec::new();
    let mut events = Vec::new();
    for number in 0..50 {
        let event = said(Role::User, &format!("message {number}"));
        if let Event::Message { message } = &event {
            ids.push(message.id.clone());
        }
        events.push(event);
    }
    let summary = said(Role::User, "what happened");
    let Event::Message { message } = &summary else {
        panic!()
    };
    let kept = vec![ids[48].clone(), message.id.clone(), ids[49].clone()];
    events.push(summary.clone());
    events.push(Event::Session(SessionEvent::Compaction {
        before: 9,
        after: 1,
        history: kept.clone(),
        fidelity: None,
    }));
    append(&bed.store, &opened.lease, 1, events).await;
    bed.store.release(&opened.lease).await.unwrap();
    let again = bed
        .store
        .open(&"one".into(), &windlass_store::owner())
        .await
        .unwrap();
    assert_eq!(again.entries.len(), 4, "not the whole log");
    let history: Vec<_> = History::read(&again.entries)
        .into_messages()
        .iter()
        .map(|message| message.id.clone())
        .collect();
    assert_eq!(history, kept);
    assert_eq!(again.info.summary, Some(kept[1].clone()));
    let all = bed.store.entries(&"one".into(), 0, 1000).await.unwrap();
    assert_eq!(all.len(), 52);
}

/// SES-5: an entry that cannot be read is named, and the others can still be read.
#[tokio::test]
async fn a_damaged_entry_is_named() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    append(
        &bed.store,
        &opened.lease,
        1,
        vec![
            said(Role::User, "a"),
            said(Role::User, "b"),
            said(Role::User, "c"),
        ],
    )
    .await;
    bed.store.sync().await.unwrap();
    bed.damage(2);
    let error = bed.store.entries(&"one".into(), 0, 10).await.unwrap_err();
    assert!(
        matches!(&error, LogError::Damaged { what, .. } if what.contains("entry 2")),
        "{error}"
    );
    assert_eq!(bed.store.entries(&"one".into(), 2, 10).await.unwrap().len(), 1);
}

/// SES-1: preferences are stored by name.
#[tokio::test]
async fn preferences() {
    let bed = Bed::new();
    bed.store
        .set_preference("cli", "provider", Some("x"))
        .await
        .unwrap();
    bed.store
        .set_preference("cli", "provider", Some("y"))
        .await
        .unwrap();
    assert_eq!(
        bed.again()
            .preference("cli", "provider")
            .await
            .unwrap()
            .as_deref(),
        Some("y")
    );
    bed.store.set_preference("cli", "provider", None).await.unwrap();
    assert_eq!(bed.store.preference("cli", "provider").await.unwrap(), None);
}
