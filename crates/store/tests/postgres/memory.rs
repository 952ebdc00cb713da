//! Memory across sessions.

use std::sync::Arc;

use windlass_core::clock::Timestamp;
use windlass_core::log::{
    MemoryChange, MemoryKind, MemoryMiss, MemoryQuery, MemorySource, NewUnit, Store, UnitVector,
};
use windlass_core::message::Role;
use windlass_testkit::PostgresServer;

use super::bed::{Bed, append, open, said, the_end};

fn unit(text: &str, time: u64) -> NewUnit {
    let mut words: Vec<(String, u32)> = Vec::new();
    for word in windlass_core::words::words(text) {
        match words.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => words.push((word, 1)),
        }
    }
    NewUnit {
        kind: MemoryKind::Said,
        speaker: "user".to_owned(),
        seq: 1,
        text: text.to_owned(),
        time: Timestamp(time),
        pinned: false,
        confirmed: false,
        words,
    }
}

fn source(scope: &str, session: Option<&str>) -> MemorySource {
    MemorySource {
        scope: scope.to_owned(),
        session: session.map(Into::into),
    }
}

/// MEM-2, DIST-2: units are kept once per entry, found by their words and listed, and vectors belong to one model.
#[tokio::test]
async fn units_are_kept_and_found() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    append(
        &bed.store,
        &opened.lease,
        1,
        vec![said(Role::User, "x"), the_end("y")],
    )
    .await;
    let unread = bed.store.unread("/project").await.unwrap();
    assert_eq!((unread.len(), unread[0].after, unread[0].last), (1, 0, 2));
    let from = source("/project", Some("one"));
    let units = vec![
        unit("the ring buffer overflows", 1),
        unit("the buffer of rings, the buffer", 2),
    ];
    let ids = bed.store.keep_units(&from, units.clone(), 2).await.unwrap();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0] + 1, ids[1], "neighbours have consecutive numbers");
    let twice = bed.again().keep_units(&from, units, 2).await.unwrap();
    assert!(twice.is_empty(), "another process read the same entries");
    assert!(bed.store.unread("/project").await.unwrap().is_empty());
    let words = ["buffer", "ring", "absent"].map(str::to_owned);
    let found = bed.store.postings("/project", &words, 100).await.unwrap();
    assert_eq!((found.units, found.length), (2, 10));
    let words: Vec<_> = found
        .words
        .iter()
        .map(|word| (word.word.as_str(), word.units))
        .collect();
    assert_eq!(words, [("ring", 1), ("buffer", 2)]);
    assert_eq!(found.words[1].places, [(ids[0], 1, 4), (ids[1], 2, 6)]);
    let vector = |unit| UnitVector {
        unit,
        sketch: vec![1, 2],
        vector: vec![3, 4],
    };
    let vectors = vec![vector(ids[1]), vector(1)];
    bed.store.keep_vectors("m", vectors).await.unwrap();
    assert_eq!(
        bed.store.vectors("m", &ids).await.unwrap(),
        [(ids[1], vector(ids[1]).vector)]
    );
    assert!(bed.store.vectors("other", &ids).await.unwrap().is_empty());
    assert_eq!(
        bed.store.sketches("m", "/project", 0, 10).await.unwrap(),
        [(ids[1], vec![1, 2])]
    );
    let missing = bed
        .store
        .without_vector("m", &["/project".to_owned()], 10)
        .await
        .unwrap();
    assert_eq!(missing.iter().map(|unit| unit.id).collect::<Vec<_>>(), [ids[0]]);
    let pin = MemoryChange {
        pinned: Some(true),
        confirmed: None,
    };
    assert!(bed.store.change_unit(ids[0], pin).await.unwrap());
    let pinned = MemoryQuery {
        scopes: vec!["/project".to_owned()],
        pinned: true,
        ..MemoryQuery::default()
    };
    let listed = bed.store.list_units(&pinned).await.unwrap();
    assert_eq!(listed.iter().map(|unit| unit.id).collect::<Vec<_>>(), [ids[0]]);
    let stats = bed.store.memory_stats().await.unwrap();
    assert_eq!(stats.units, [("/project".to_owned(), "said".to_owned(), 2)]);
}

/// MEM-2, DIST-2: a forgotten text is gone from memory, from the record and from its index.
#[tokio::test]
async fn forgotten_text_is_gone() {
    let bed = Bed::new();
    let secret = "my \"secret\" is a purple elephant";
    let opened = bed.session("one").await;
    append(
        &bed.store,
        &opened.lease,
        1,
        vec![said(Role::User, secret), the_end("noted")],
    )
    .await;
    bed.store.sync().await.unwrap();
    assert_eq!(
        bed.store.search("purple elephant", None, 5).await.unwrap().len(),
        1
    );
    let from = source("/project", Some("one"));
    let ids = bed
        .store
        .keep_units(&from, vec![unit(secret, 1)], 2)
        .await
        .unwrap();
    let miss = MemoryMiss {
        outcome_type: "memory_miss".to_owned(),
        query: secret.to_owned(),
        strategy: "fulltext".to_owned(),
        error: "no_results".to_owned(),
        session_id: "one".to_owned(),
        ts: 1,
    };
    bed.store.keep_miss(miss).await.unwrap();
    assert_eq!(bed.store.misses(5).await.unwrap().len(), 1);
    assert_eq!(bed.store.forget_units(&ids).await.unwrap(), 1);
    assert!(
        bed.store
            .search("purple elephant", None, 5)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(bed.store.misses(5).await.unwrap().is_empty());
    let words = ["purple".to_owned()];
    let found = bed.store.postings("/project", &words, 10).await.unwrap();
    assert_eq!((found.units, found.words.len()), (0, 0));
    let entries = bed.store.entries(&"one".into(), 0, 10).await.unwrap();
    let text = serde_json::to_string(&entries).unwrap();
    assert!(
        !text.contains("elephant") && text.contains("[forgotten]"),
        "{text}"
    );
}

/// MEM-2: where the server has pgvector, the database finds the nearest vectors itself, in the scopes and of the model that
/// are asked for. Vectors from before are copied, forgotten ones go, and without the extension sketches are used again.
#[tokio::test]
async fn pgvector_finds_the_nearest() {
    let Some(server) = PostgresServer::start_with_vectors() else {
        eprintln!("left out: there is no Postgres server with pgvector");
        return;
    };
    let database = server.empty();
    let url = server.url(&database);
    let store = open(&url).unwrap();
    let keep = async |scope: &str, texts: &[&str]| {
        let source = source(scope, None);
        let units = texts.iter().map(|text| unit(text, 1)).collect();
        store.keep_units(&source, units, 0).await.unwrap()
    };
    let here = keep("/here", &["the ring buffer", "the parser", "the linker"]).await;
    let there = keep("/there", &["another ring buffer"]).await;
    let vector = |unit: &u64, numbers: [i8; 3]| UnitVector {
        unit: *unit,
        sketch: vec![1],
        vector: [
            0.1f32.to_le_bytes().to_vec(),
            numbers.map(i8::cast_unsigned).to_vec(),
        ]
        .concat(),
    };
    let vectors = vec![
        vector(&here[0], [10, 0, 0]),
        vector(&here[1], [0, 10, 0]),
        vector(&here[2], [7, 7, 0]),
        vector(&there[0], [10, 1, 0]),
        vector(&12_345, [10, 0, 0]),
    ];
    store.keep_vectors("m", vectors).await.unwrap();
    let asked = [1.0, 0.1, 0.0];
    let nearest = async |store: &Arc<dyn Store>, model: &str, scopes: &[&str], vector: &[f32]| {
        let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        store.nearest(model, &scopes, vector, 2).await.unwrap()
    };
    assert_eq!(
        nearest(&store, "m", &["/here"], &asked).await,
        Some(vec![here[0], here[2]])
    );
    let both = nearest(&store, "m", &["/here", "/there"], &asked).await;
    assert_eq!(both, Some(vec![there[0], here[0]]));
    assert_eq!(nearest(&store, "other", &["/here"], &asked).await, Some(vec![]));
    assert_eq!(nearest(&store, "m", &["/here"], &[1.0]).await, Some(vec![]));

    // As if they had been made before the extension was installed.
    server.sql(&database, "TRUNCATE windlass.memory_near");
    let missing = store
        .without_vector("m", &["/here".to_owned()], 10)
        .await
        .unwrap();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(
        nearest(&store, "m", &["/here"], &asked).await,
        Some(vec![here[0], here[2]])
    );

    assert_eq!(store.forget_units(&[here[0]]).await.unwrap(), 1);
    assert_eq!(
        nearest(&store, "m", &["/here"], &asked).await,
        Some(vec![here[2], here[1]])
    );
    assert_eq!(
        server.sql(&database, "SELECT count(*) FROM windlass.memory_near"),
        "3"
    );

    server.sql(&database, "DROP EXTENSION vector CASCADE");
    assert_eq!(nearest(&store, "m", &["/here"], &asked).await, None);
    let sketches = store.sketches("m", "/here", 0, 10).await.unwrap();
    assert_eq!(sketches.len(), 2);
}

/// MEM-2: a server without pgvector keeps vectors all the same, and leaves the comparison to the process.
#[tokio::test]
async fn without_pgvector_sketches_are_compared() {
    let bed = Bed::new();
    let has = bed.sql("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'");
    let found = bed
        .store
        .nearest("m", &["/here".to_owned()], &[1.0], 1)
        .await
        .unwrap();
    assert_eq!(found.is_some(), has == "1");
}
