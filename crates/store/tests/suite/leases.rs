//! One owner at a time.

use windlass_core::log::LogError;
use windlass_core::message::Role;

use super::bed::{Bed, batch, said};

/// SES-2: a second owner is refused while the first lives, with the name of the first; after a release it
/// succeeds.
#[tokio::test]
async fn a_session_has_one_owner() {
    let bed = Bed::new();
    let first = bed.session("one").await;
    let other = windlass_store::owner();
    let error = bed.again().open(&"one".into(), &other).await.unwrap_err();
    assert!(
        matches!(&error, LogError::Busy { owner, .. } if *owner == first.lease.owner),
        "{error}"
    );
    assert!(matches!(
        bed.store.delete(&"one".into()).await,
        Err(LogError::Busy { .. })
    ));
    bed.store.renew(&first.lease).await.unwrap();
    bed.store.release(&first.lease).await.unwrap();
    let second = bed.again().open(&"one".into(), &other).await.unwrap();
    assert!(second.lease.fence > first.lease.fence);
}

/// SES-2: an owner that lost its lease writes nothing more.
#[tokio::test]
async fn an_older_fence_is_refused() {
    let bed = Bed::new();
    let first = bed.session("one").await;
    bed.store.release(&first.lease).await.unwrap();
    let second = bed.store.open(&"one".into(), "second").await.unwrap();
    let late = bed
        .store
        .append(&first.lease, batch(1, vec![said(Role::User, "late")]))
        .await;
    assert_eq!(late, Err(LogError::Lost("one".into())));
    assert_eq!(
        bed.store.renew(&first.lease).await,
        Err(LogError::Lost("one".into()))
    );
    bed.store
        .append(&second.lease, batch(1, vec![said(Role::User, "now")]))
        .await
        .unwrap();
}

/// SES-2, LIB-2: the lease of a dead process is taken over at once, even if another process has its pid now; where the
/// system does not tell the two apart, when its term ends.
#[tokio::test]
async fn a_dead_owner_is_replaced() {
    let bed = Bed::new();
    let own = windlass_store::owner();
    let (host, rest) = own.split_once('/').unwrap();
    let pid = rest.split('/').next().unwrap();
    let id = rest.rsplit('/').next().unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    let gone_pid = gone.id();
    gone.wait().unwrap();
    let tells_apart = cfg!(all(target_os = "linux", not(windlass_portable)));
    for (owner, is_dead) in [
        (format!("{host}/{gone_pid}/12345/{id}"), true),
        (format!("{host}/{pid}/1/{id}"), tells_apart),
        // Nothing is known about another machine until its term ends.
        ("elsewhere/1/1/x".to_owned(), false),
    ] {
        let name = owner.replace('/', "-");
        let new = windlass_core::log::NewSession {
            id: Some(name.as_str().into()),
            ..Default::default()
        };
        bed.store.create(new, &owner).await.unwrap();
        let taken = bed.store.open(&name.as_str().into(), &own).await;
        assert_eq!(taken.is_ok(), is_dead, "{owner}");
    }
    assert!(matches!(
        bed.store.open(&"nothing".into(), &own).await,
        Err(LogError::Unknown(_))
    ));
}
