//! Many writers on one database.

use std::sync::Arc;

use windlass_core::clock::Timestamp;
use windlass_core::log::{NewSession, SessionQuery};
use windlass_core::message::Role;

use super::bed::{Bed, append, said};

/// SES-2, SES-5: many stores on one file, each with its own sessions, lose nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_share_a_database() {
    let bed = Arc::new(Bed::new());
    let mut tasks = Vec::new();
    for number in 0..16 {
        let bed = Arc::clone(&bed);
        tasks.push(tokio::spawn(async move {
            let store = bed.again();
            let id = format!("session-{number}");
            let new = NewSession {
                id: Some(id.as_str().into()),
                time: Timestamp(1),
                ..NewSession::default()
            };
            let opened = store.create(new, &windlass_store::owner()).await.unwrap();
            for seq in 1..=20 {
                append(&store, &opened.lease, seq, vec![said(Role::User, "x")]).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let all = bed.store.list(&SessionQuery::default()).await.unwrap();
    assert_eq!(all.len(), 16);
    assert!(
        all.iter()
            .all(|info| info.last_seq == 20 && info.totals.messages == 20)
    );
    assert_eq!(bed.problems(), Vec::<String>::new());
}
