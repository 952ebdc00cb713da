//! The tables, as `docs/store.md` describes them.

use bytes::Bytes;
use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{Batch, DraftChange, Exchange, NewExchange, NewSession, RecordedAnswer};
use windlass_core::message::{Message, Part, Role};
use windlass_testkit::{Flush, PostgresServer};

use super::bed::{Bed, append, open, said};

/// DIST-2: the log is partitioned by session from the first day, the entries of one session are in one part, and events
/// are stored as their text.
#[tokio::test]
async fn the_log_is_partitioned() {
    let bed = Bed::new();
    let parts = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'windlass.entry'::regclass";
    assert_eq!(bed.sql(parts), "16");
    for number in 0..64 {
        let opened = bed.session(&format!("session-{number}")).await;
        for seq in 1..=2 {
            append(&bed.store, &opened.lease, seq, vec![said(Role::User, "x")]).await;
        }
    }
    let split = "SELECT count(*) FROM (SELECT FROM windlass.entry GROUP BY session HAVING count(DISTINCT tableoid) > 1) AS s";
    assert_eq!(bed.sql(split), "0");
    let used = bed.sql("SELECT count(DISTINCT tableoid) FROM windlass.entry");
    assert!(used.parse::<u64>().unwrap() > 8, "{used} parts are used");
    let kind = "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'windlass.entry'::regclass AND \
                attname = 'payload'";
    assert_eq!(bed.sql(kind), "text");
}

/// DIST-2: drafts cost no log of the database: their table is the only one that is not logged.
#[tokio::test]
async fn only_drafts_are_not_logged() {
    let bed = Bed::new();
    let unlogged = "SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'windlass'::regnamespace AND \
                    relkind = 'r' AND relpersistence = 'u'";
    assert_eq!(bed.sql(unlogged), "draft");
    for table in ["lease", "descendants", "beat"] {
        let there = bed.sql(&format!("SELECT to_regclass('windlass.{table}') IS NOT NULL"));
        assert_eq!(there, "f", "{table}");
    }
}

/// DIST-2, SES-4: a crash of the server loses the reply that was being received, and nothing else.
#[test]
fn a_crash_loses_only_the_draft() {
    let mut server = PostgresServer::start(Flush::On);
    let url = server.url(&server.empty());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = open(&url).unwrap();
    let new = NewSession {
        id: Some("one".into()),
        ..NewSession::default()
    };
    let opened = runtime.block_on(store.create(new, "first")).unwrap();
    runtime.block_on(append(&store, &opened.lease, 1, vec![said(Role::User, "go")]));
    let parts = vec![Part::text("half a")];
    let half = Message::new(&SessionId::from("one"), Role::Assistant, parts, Timestamp(1));
    let draft = Batch {
        first_seq: 2,
        draft: DraftChange::Set(Box::new(half)),
        ..Batch::default()
    };
    runtime.block_on(store.append(&opened.lease, draft)).unwrap();
    server.crash();
    server.resume();
    runtime.block_on(store.release(&opened.lease)).unwrap();
    let again = runtime.block_on(store.open(&"one".into(), "second")).unwrap();
    assert_eq!((again.draft, again.entries.len()), (None, 1));
}

/// OBS-2: an exchange that is sent twice is kept once, and one that builds on an exchange which a crash of the server lost is
/// not kept; the next one, which is whole, is.
#[tokio::test]
async fn exchanges_build_on_what_is_there() {
    let bed = Bed::new();
    bed.session("one").await;
    let keep = async |number: u64, shared: u64| {
        let exchange = Exchange {
            time: Timestamp(number),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            request: Bytes::from_static(b"request"),
            digest: format!("d{number}"),
            before: Some((format!("d{}", number - 1), shared)),
            last: None,
            answer: RecordedAnswer::default(),
            frame: None,
        };
        let new = NewExchange { exchange, shared };
        bed.store.keep_exchange(&"one".into(), new, 1_000).await.unwrap()
    };
    assert!(keep(1, 0).await && keep(2, 3).await && keep(2, 3).await);
    let kept = "SELECT string_agg(digest, ' ' ORDER BY number) FROM windlass.exchange";
    assert_eq!(bed.sql(kept), "d1 d2");
    bed.sql("DELETE FROM windlass.exchange WHERE number = 2; UPDATE windlass.session SET exchanges = 1");
    assert!(!keep(3, 3).await);
    assert!(keep(4, 0).await && keep(5, 3).await);
    assert_eq!(bed.sql(kept), "d1 d4 d5");
    assert_eq!(bed.sql("SELECT exchanges FROM windlass.session"), "3");
}
