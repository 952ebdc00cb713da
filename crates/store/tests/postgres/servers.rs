//! Servers of a cluster, as the store sees them.

use std::time::Duration;

use futures_util::StreamExt;
use windlass_core::log::{NewSession, Notice, ServerInfo};
use windlass_core::message::Role;
use windlass_testkit::PATIENCE;

use super::bed::{Bed, append, said, the_end};

/// Lease of the servers here.
const LEASE: Duration = Duration::from_secs(6);

fn server() -> ServerInfo {
    ServerInfo {
        id: "a-server".to_owned(),
        address: "127.0.0.1:1".to_owned(),
        places: vec!["any".to_owned()],
        slots: 10,
        ..ServerInfo::default()
    }
}

/// DIST-3: a heartbeat says whether a session of the server has unfinished work, so that servers at rest need to ask
/// nothing else.
#[tokio::test]
async fn a_heartbeat_knows_unfinished_work() {
    let bed = Bed::new();
    let cluster = bed.store.cluster().unwrap();
    let has_own = async || cluster.beat(&server(), LEASE, 0).await.unwrap().has_own;
    assert!(!has_own().await);
    let new = NewSession {
        id: Some("one".into()),
        place: "/project".into(),
        ..NewSession::default()
    };
    let opened = bed.store.create(new, "a-server").await.unwrap();
    assert!(!has_own().await, "a session without a turn");
    append(&bed.store, &opened.lease, 1, vec![said(Role::User, "go")]).await;
    assert!(has_own().await);
    append(&bed.store, &opened.lease, 2, vec![the_end("done")]).await;
    assert!(!has_own().await, "its turn has ended");
    let other = bed.session("two").await;
    append(&bed.store, &other.lease, 1, vec![said(Role::User, "go")]).await;
    assert!(!has_own().await, "the session of another owner");
}

/// DIST-3: a heartbeat tells when the next lease of another server ends, so that a takeover need not wait for the heartbeat
/// after that.
#[tokio::test]
async fn a_heartbeat_knows_the_next_end_of_a_lease() {
    let bed = Bed::new();
    let cluster = bed.store.cluster().unwrap();
    let alone = cluster.beat(&server(), LEASE, 0).await.unwrap();
    assert_eq!(alone.ends_ms, None, "its own does not count");
    let other = |name: &str| ServerInfo {
        id: name.to_owned(),
        ..server()
    };
    cluster.beat(&other("long"), LEASE * 100, 0).await.unwrap();
    cluster.beat(&other("short"), LEASE * 10, 0).await.unwrap();
    cluster.beat(&other("gone"), Duration::ZERO, 0).await.unwrap();
    let ends = cluster.beat(&server(), LEASE, 0).await.unwrap().ends_ms;
    let longest = u64::try_from((LEASE * 10).as_millis()).unwrap();
    assert!(ends.is_some_and(|ends| 0 < ends && ends <= longest), "{ends:?}");
}

/// SRV-3, DIST-4: servers hear that a small value changed, such as a credential, whoever changed it.
#[tokio::test]
async fn changed_values_are_told() {
    let bed = Bed::new();
    let mut notices = bed.store.cluster().unwrap().notices("a-server");
    let mut next = async || tokio::time::timeout(PATIENCE, notices.next()).await.unwrap();
    assert_eq!(next().await, Some(Notice::Again));
    let other = bed.again();
    other
        .set_preference("scope", "name", Some("value"))
        .await
        .unwrap();
    assert_eq!(next().await, Some(Notice::Preference));
    other.set_preference("scope", "name", None).await.unwrap();
    assert_eq!(next().await, Some(Notice::Preference));
}

/// SRV-6: the store counts the appends of this process, and the transactions that stored them.
#[tokio::test]
async fn appends_are_counted() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    append(&bed.store, &opened.lease, 1, vec![said(Role::User, "go")]).await;
    append(&bed.store, &opened.lease, 2, vec![the_end("done")]).await;
    let text = bed.store.metrics();
    for line in [
        "windlass_store_append_seconds_bucket{le=\"+Inf\"} 2\n",
        "windlass_store_append_seconds_count 2\n",
        "windlass_store_append_groups_total 2\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
