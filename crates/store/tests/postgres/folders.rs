//! Folders of sessions in the database, and sessions that go to another place.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::clock::Timestamp;
use windlass_core::event::{Event, SessionEvent};
use windlass_core::log::{ClusterStore, FolderRecord, KeptFor, LogError, Opened, Relocation, ServerInfo};
use windlass_core::message::Role;

use super::bed::{Bed, append, said};

fn address(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

fn record(opened: &Opened, folder: &str, parts: &[&[u8]]) -> FolderRecord {
    FolderRecord {
        session: opened.info.id.clone(),
        owner: opened.lease.owner.clone(),
        folder: folder.to_owned(),
        document: format!("{} parts", parts.len()),
        parts: parts.iter().map(|part| address(part)).collect(),
    }
}

async fn put(store: &Arc<dyn ClusterStore>, kept: &KeptFor, content: &[u8]) {
    let content = vec![(address(content), content.to_vec())];
    store.put(kept, content).await.unwrap();
}

fn relocation(opened: &Opened, last_seq: u64) -> Relocation {
    Relocation {
        session: opened.info.id.clone(),
        fence: opened.lease.fence,
        last_seq,
        place: "host:beta".to_owned(),
        folder: "/elsewhere".to_owned(),
        event: Event::Session(SessionEvent::Title {
            title: "moved".to_owned(),
        }),
    }
}

/// DIST-5: contents of a folder are kept as long as a session in it exists; those of a description are replaced by the
/// next one. What is attached or kept by somebody else stays.
#[tokio::test]
async fn contents_are_kept_as_long_as_somebody_needs_them() {
    let bed = Bed::new();
    let store = bed.store.cluster().unwrap();
    let (one, two) = (bed.session("one").await, bed.session("two").await);
    let folder = |opened: &Opened| KeptFor::Folder(opened.info.id.clone(), "here /project".to_owned());
    let blobs = || bed.sql("SELECT count(*) FROM windlass.blob");
    let content = address(b"content");
    assert_eq!(
        store
            .keep(&folder(&one), std::slice::from_ref(&content))
            .await
            .unwrap(),
        std::slice::from_ref(&content)
    );
    put(&store, &folder(&one), b"content").await;
    assert!(
        store
            .keep(&folder(&two), std::slice::from_ref(&content))
            .await
            .unwrap()
            .is_empty()
    );
    put(&store, &KeptFor::Session("one".into()), b"part 1").await;
    store
        .describe(record(&one, "here /project", &[b"part 1"]))
        .await
        .unwrap();
    put(&store, &KeptFor::Session("one".into()), b"part 2").await;
    assert_eq!(blobs(), "3");
    store
        .describe(record(&one, "here /project", &[b"part 2"]))
        .await
        .unwrap();
    assert_eq!(blobs(), "2");
    let described = store.description(&"one".into()).await.unwrap();
    assert_eq!(described.as_deref(), Some("1 parts"));
    let addresses = [content.clone(), address(b"part 2"), address(b"missing")];
    let mut found = store.contents(&addresses).await.unwrap();
    found.sort();
    let mut expected = vec![
        (content, b"content".to_vec()),
        (address(b"part 2"), b"part 2".to_vec()),
    ];
    expected.sort();
    assert_eq!(found, expected);
    for (opened, left) in [(one, "1"), (two, "0")] {
        bed.store.release(&opened.lease).await.unwrap();
        bed.store.delete(&opened.info.id).await.unwrap();
        assert_eq!(blobs(), left);
    }
    assert_eq!(bed.sql("SELECT count(*) FROM windlass.kept"), "0");
}

/// DIST-5: a session that somebody else has had cannot be described by its former owner, but one that was released can.
#[tokio::test]
async fn only_the_last_owner_describes_a_folder() {
    let bed = Bed::new();
    let store = bed.store.cluster().unwrap();
    let opened = bed.session("one").await;
    let described = async |opened: &Opened| store.describe(record(opened, "/project", &[])).await;
    assert_eq!(described(&opened).await, Ok(()));
    bed.store.release(&opened.lease).await.unwrap();
    assert_eq!(described(&opened).await, Ok(()));
    let taken = bed.again().open(&"one".into(), "another").await.unwrap();
    assert_eq!(described(&opened).await, Err(LogError::Lost("one".into())));
    assert_eq!(described(&taken).await, Ok(()));
}

/// DIST-5: a session moves only if nobody works in it, and nobody has worked in it since it was looked at; its place, its
/// folder and the entry change together.
#[tokio::test]
async fn a_session_moves_only_as_it_was_seen() {
    let bed = Bed::new();
    let store = bed.store.cluster().unwrap();
    let opened = bed.session("one").await;
    append(&bed.store, &opened.lease, 1, vec![said(Role::User, "x")]).await;
    let busy = store.relocate(relocation(&opened, 1)).await;
    assert!(matches!(busy, Err(LogError::Busy { .. })), "{busy:?}");
    bed.store.release(&opened.lease).await.unwrap();
    let lost = store.relocate(relocation(&opened, 0)).await;
    assert_eq!(lost, Err(LogError::Lost("one".into())));
    let before = bed.store.get(&"one".into()).await.unwrap().unwrap();
    assert_eq!(
        (before.place.as_str(), before.last_seq, before.waits),
        ("/project", 1, None)
    );
    store.relocate(relocation(&opened, 1)).await.unwrap();
    let after = bed.store.get(&"one".into()).await.unwrap().unwrap();
    assert_eq!((after.place.as_str(), after.last_seq), ("/elsewhere", 2));
    // No server has ever had the place.
    let wait = after.waits.unwrap();
    assert_eq!((wait.place.as_str(), wait.since), ("host:beta", None));
    let entries = bed.store.entries(&"one".into(), 1, 10).await.unwrap();
    assert!(
        matches!(&entries[..], [entry] if matches!(&entry.event, Event::Session(SessionEvent::Title { .. })))
    );
    let again = store.relocate(relocation(&opened, 1)).await;
    assert_eq!(again, Err(LogError::Lost("one".into())));
    assert_eq!(bed.problems(), Vec::<String>::new());
}

/// DIST-5: a place is gone since its last server left, or since the lease of that server ended, also when its row is gone.
#[tokio::test]
async fn a_place_is_gone_since_its_last_server_left() {
    let bed = Bed::new();
    let store = bed.store.cluster().unwrap();
    let opened = bed.session("one").await;
    bed.store.release(&opened.lease).await.unwrap();
    store.relocate(relocation(&opened, 0)).await.unwrap();
    let beta = ServerInfo {
        id: "b-1".to_owned(),
        places: vec!["host:beta".to_owned()],
        ..ServerInfo::default()
    };
    let gone = async || {
        let found = store.whereabouts(&"one".into()).await.unwrap().unwrap();
        found.waits.map(|wait| wait.since)
    };
    assert_eq!(gone().await, Some(None));
    store.beat(&beta, Duration::from_secs(600), 0).await.unwrap();
    assert_eq!(gone().await, None);
    bed.sql("UPDATE windlass.server SET until = 5000");
    assert_eq!(gone().await, Some(Some(Timestamp(5_000))));
    store.beat(&beta, Duration::from_secs(600), 0).await.unwrap();
    store.give_back("b-1", None).await.unwrap();
    let since = gone().await.flatten().unwrap();
    assert!(since > Timestamp(1_700_000_000_000), "{since:?}");
    assert_eq!(
        bed.store
            .get(&"one".into())
            .await
            .unwrap()
            .unwrap()
            .waits
            .unwrap()
            .since,
        Some(since)
    );
}
