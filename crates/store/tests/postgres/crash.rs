//! Servers that crash, and connections that are cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windlass_core::clock::Timestamp;
use windlass_core::log::{Booking, NewSession, SpentBy, Store};
use windlass_core::message::Role;
use windlass_core::model::Usage;
use windlass_testkit::{Flush, PATIENCE, PostgresServer, eventually};

use super::bed::{batch, open, said};

/// Sessions that write at the same time.
const SESSIONS: u64 = 6;

/// Crashes of the server, and cut connections.
const FAULTS: usize = 6;

/// Appends to a session until told to stop. Returns the number of acknowledged entries.
async fn write(store: Arc<dyn Store>, number: u64, stop: Arc<AtomicBool>, written: Arc<AtomicU64>) -> u64 {
    let id = format!("session-{number}");
    let new = NewSession {
        id: Some(id.as_str().into()),
        time: Timestamp(1),
        ..NewSession::default()
    };
    let opened = store.create(new, &windlass_store::owner()).await.unwrap();
    let mut last = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut next = batch(last + 1, vec![said(Role::User, "x"), said(Role::Assistant, "y")]);
        next.bookings = vec![Booking {
            time: Timestamp(1),
            provider: "p".to_owned(),
            model: "m".to_owned(),
            cause: "turn".to_owned(),
            usage: Usage {
                input: 1,
                ..Usage::default()
            },
            cost_usd: None,
        }];
        store.append(&opened.lease, next).await.unwrap();
        last += 2;
        written.fetch_add(1, Ordering::Relaxed);
    }
    last
}

/// DIST-2, SES-5: when the server crashes or connections are cut in the middle of commits, appends wait, everything
/// acknowledged is stored, and nothing is stored twice.
#[test]
fn nothing_acknowledged_is_lost() {
    let mut server = PostgresServer::start(Flush::On);
    let database = server.empty();
    let url = server.url(&database);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let store = open(&url).unwrap();
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writers: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let (store, stop, written) = (Arc::clone(&store), Arc::clone(&stop), Arc::clone(&written));
            runtime.spawn(write(store, number, stop, written))
        })
        .collect();
    for fault in 0..FAULTS {
        let before = written.load(Ordering::Relaxed);
        let goes_on = || written.load(Ordering::Relaxed) >= before + 20;
        assert!(eventually(PATIENCE, goes_on), "appends go on");
        if fault % 2 == 0 {
            server.crash();
            server.resume();
        } else {
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'windlass'";
            server.sql("postgres", sql);
        }
    }
    stop.store(true, Ordering::Relaxed);
    let acknowledged: Vec<u64> = writers
        .into_iter()
        .map(|writer| runtime.block_on(writer).unwrap())
        .collect();
    for (number, last) in acknowledged.iter().enumerate() {
        let id = format!("session-{number}").as_str().into();
        let entries = runtime
            .block_on(windlass_core::log::record(&*store, &id))
            .unwrap();
        let numbers: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
        assert_eq!(numbers, (1..=*last).collect::<Vec<_>>());
        let info = runtime.block_on(store.get(&id)).unwrap().unwrap();
        assert_eq!(
            (info.totals.messages, info.totals.prompt_tokens),
            (*last, *last / 2)
        );
        let spent = runtime.block_on(store.spent(Some(&id), SpentBy::Cause)).unwrap();
        assert_eq!(spent[0].calls, *last / 2, "booked once");
    }
}
