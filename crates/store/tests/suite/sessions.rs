//! Finds sessions.

use windlass_core::clock::Timestamp;
use windlass_core::log::{Label, LogError, NewSession, SessionQuery};
use windlass_core::message::Role;

use super::bed::{Bed, append, said, the_end};

/// SES-10: sessions are listed by their last change, by folder, by name and by the start of an id, without
/// those that were only created.
#[tokio::test]
async fn sessions_are_found() {
    let bed = Bed::new();
    for (number, (id, place)) in [("aa1", "/x"), ("aa2", "/x"), ("bb3", "/y")]
        .into_iter()
        .enumerate()
    {
        let new = NewSession {
            id: Some(id.into()),
            place: place.into(),
            time: Timestamp(number as u64),
            parent: (id == "aa2").then(|| "aa1".into()),
            ..NewSession::default()
        };
        let opened = bed.store.create(new, "me").await.unwrap();
        append(&bed.store, &opened.lease, 1, vec![said(Role::User, "hello")]).await;
    }
    let ids = async |query: SessionQuery| -> Vec<String> {
        let found = bed.store.list(&query).await.unwrap();
        found.iter().map(|info| info.id.to_string()).collect()
    };
    assert_eq!(ids(SessionQuery::default()).await, ["bb3", "aa1"]);
    let all = SessionQuery {
        children: true,
        limit: 2,
        ..SessionQuery::default()
    };
    assert_eq!(ids(all).await, ["bb3", "aa2"]);
    let place = SessionQuery {
        place: Some("/x".into()),
        ..SessionQuery::default()
    };
    assert_eq!(ids(place).await, ["aa1"]);
    let label = Label {
        name: Some("mine".into()),
        title: Some("About cats".into()),
        key: None,
    };
    bed.store.label(&"bb3".into(), &label).await.unwrap();
    for called in ["mine", "bb", "bb3"] {
        let query = SessionQuery {
            called: Some(called.into()),
            ..SessionQuery::default()
        };
        assert_eq!(ids(query).await, ["bb3"], "{called}");
    }
    let empty = NewSession {
        id: Some("cc4".into()),
        time: Timestamp(900),
        ..NewSession::default()
    };
    bed.store.create(empty, "me").await.unwrap();
    let used = SessionQuery {
        used: true,
        ..SessionQuery::default()
    };
    assert_eq!(ids(used.clone()).await, ["bb3", "aa1"], "nothing happened in it");
    let named = Label {
        name: Some("for later".into()),
        ..Label::default()
    };
    bed.store.label(&"cc4".into(), &named).await.unwrap();
    assert_eq!(ids(used).await, ["cc4", "bb3", "aa1"]);
    let unknown = bed.store.label(&"zz".into(), &label).await;
    assert_eq!(unknown, Err(LogError::Unknown("zz".into())));
}

/// SES-14: words are found in messages, whatever punctuation is between them, and not in deleted sessions.
#[tokio::test]
async fn words_are_found() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    append(
        &bed.store,
        &opened.lease,
        1,
        vec![
            said(
                Role::User,
                "Where does the Überlauf of the ring buffer come from?",
            ),
            said(Role::Assistant, "It comes from \"head\" AND tail being equal."),
            the_end("done"),
        ],
    )
    .await;
    // Indexing runs after the append, and nobody waits for it.
    bed.store.sync().await.unwrap();
    let search = async |words: &str| bed.store.search(words, None, 10).await.unwrap();
    for words in [
        "ring buffer",
        "BUFFER ring",
        "uberlauf",
        "buff",
        "head AND tail",
        "\"head\"",
        "come from?",
        "ring nothing",
    ] {
        assert!(!search(words).await.is_empty(), "{words}");
    }
    for words in ["nothing", "", "*", "\"", "NEAR("] {
        assert!(search(words).await.is_empty(), "{words}");
    }
    let found = search("ring").await;
    assert!(found[0].snippet.contains("[ring]"), "{found:?}");
    assert_eq!(found[0].seq, 1);
    bed.store.release(&opened.lease).await.unwrap();
    bed.store.delete(&"one".into()).await.unwrap();
    assert!(search("ring").await.is_empty());
    assert_eq!(bed.store.get(&"one".into()).await.unwrap(), None);
    assert_eq!(
        bed.store.delete(&"one".into()).await,
        Err(LogError::Unknown("one".into()))
    );
}

/// DIST-1: of callers that settle a value at the same time, all get the same one, and a later one changes nothing.
#[tokio::test]
async fn a_value_is_settled_once() {
    let bed = Bed::new();
    let other = bed.again();
    let (one, two) = tokio::join!(
        bed.store.settle_preference("scope", "name", "one"),
        other.settle_preference("scope", "name", "two")
    );
    let settled = one.unwrap();
    assert_eq!(two.unwrap(), settled);
    let late = other.settle_preference("scope", "name", "three").await;
    assert_eq!(late.unwrap(), settled);
    assert_eq!(
        bed.store.preference("scope", "name").await.unwrap(),
        Some(settled)
    );
}
