//! DIST-7: users: owners of sessions and spending, and the audit log.

use windlass_core::clock::Timestamp;
use windlass_core::id::SessionId;
use windlass_core::log::{
    AuditQuery, AuditRecord, Booking, MemoryKind, MemoryQuery, MemorySource, NewSession, NewUnit,
    SessionQuery, SpentBy, Store, UserName,
};
use windlass_core::message::Role;
use windlass_core::model::Usage;
use windlass_users::{AuditFault, PRUNED, row_hash, verify};

use super::bed::{Bed, append, said, the_end};

fn user(name: &str) -> UserName {
    name.parse().unwrap()
}

async fn session(bed: &Bed, id: &str, owner: &str, parent: Option<&str>) {
    let new = NewSession {
        id: Some(id.into()),
        place: "/project".into(),
        time: Timestamp(1),
        user: user(owner),
        parent: parent.map(SessionId::from),
        ..NewSession::default()
    };
    let opened = bed.store.create(new, "me").await.unwrap();
    let events = vec![said(Role::User, "the parser fails"), the_end("done")];
    append(&bed.store, &opened.lease, 1, events).await;
    bed.store.release(&opened.lease).await.unwrap();
    bed.store.sync().await.unwrap();
}

/// DIST-7: sessions, their text and what they cost belong to a user; a sub-agent belongs to the user of the session
/// above, and spending outlives its session.
#[tokio::test]
async fn sessions_and_costs_have_owners() {
    let bed = Bed::new();
    session(&bed, "of-ann", "ann", None).await;
    session(&bed, "below", "local", Some("of-ann")).await;
    session(&bed, "of-bob", "bob", None).await;
    session(&bed, "own", "local", None).await;
    let listed = async |owner: Option<&str>| {
        let query = SessionQuery {
            user: owner.map(user),
            children: true,
            ..SessionQuery::default()
        };
        let found = bed.store.list(&query).await.unwrap();
        let mut ids: Vec<String> = found.iter().map(|info| info.id.to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(listed(Some("ann")).await, ["below", "of-ann"]);
    assert_eq!(listed(Some("bob")).await, ["of-bob"]);
    assert_eq!(listed(Some("local")).await, ["own"]);
    assert_eq!(listed(None).await.len(), 4);
    let found = bed.store.search("parser", Some(&user("bob")), 10).await.unwrap();
    assert_eq!(
        found
            .iter()
            .map(|found| found.session.as_str())
            .collect::<Vec<_>>(),
        ["of-bob"]
    );
    assert_eq!(bed.store.search("parser", None, 10).await.unwrap().len(), 4);

    for (id, time, cost) in [
        ("of-ann", 5, 0.5),
        ("below", 20, 0.25),
        ("of-bob", 20, 1.0),
        ("own", 20, 2.0),
    ] {
        let booking = Booking {
            time: Timestamp(time),
            provider: "p".into(),
            model: "m".into(),
            cause: "turn".into(),
            usage: Usage {
                input: 10,
                ..Usage::default()
            },
            cost_usd: Some(cost),
        };
        bed.store.book(&id.into(), booking).await.unwrap();
    }
    bed.store.delete(&"below".into()).await.unwrap();
    let spent = async |name: &str, since: u64| {
        let rows = bed
            .store
            .spent_by(&user(name), Timestamp(since), SpentBy::Cause)
            .await;
        let rows = rows.unwrap();
        rows.iter()
            .map(|row| (row.calls, row.cost_usd))
            .collect::<Vec<_>>()
    };
    assert_eq!(spent("ann", 0).await, [(2, 0.75)]);
    assert_eq!(spent("ann", 10).await, [(1, 0.25)]);
    assert_eq!(spent("bob", 0).await, [(1, 1.0)]);
    assert_eq!(spent("local", 0).await, [(1, 2.0)]);
    let rows = bed.store.spent(None, SpentBy::User).await.unwrap();
    let rows: Vec<_> = rows.iter().map(|row| (row.of.as_str(), row.calls)).collect();
    assert_eq!(rows, [("local", 1), ("bob", 1), ("ann", 2)]);
}

async fn keep(store: &dyn Store, scope: &str, session: Option<&str>, text: &str) -> u64 {
    let source = MemorySource {
        scope: scope.to_owned(),
        session: session.map(SessionId::from),
    };
    let unit = NewUnit {
        kind: MemoryKind::Note,
        speaker: "user".into(),
        seq: 0,
        text: text.to_owned(),
        time: Timestamp(1),
        pinned: false,
        confirmed: true,
        words: vec![("parser".to_owned(), 1)],
    };
    let ids = store.keep_units(&source, vec![unit], 0).await.unwrap();
    ids[0]
}

/// DIST-7: memory of a user is kept apart, and forgetting a text leaves the same text of other users alone.
#[tokio::test]
async fn memory_has_owners() {
    let bed = Bed::new();
    session(&bed, "of-ann", "ann", None).await;
    session(&bed, "own", "local", None).await;
    let (ann, own) = (user("ann").scoped("/project"), "/project");
    let unread = async |scope: &str| {
        let found = bed.store.unread(scope).await.unwrap();
        found
            .into_iter()
            .map(|found| found.session.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(unread(&ann).await, ["of-ann"]);
    assert_eq!(unread(own).await, ["own"]);
    assert_eq!(unread(&user("bob").scoped("/project")).await, [""; 0]);
    let text = "the parser fails";
    let first = keep(&*bed.store, &ann, None, text).await;
    let other = keep(&*bed.store, own, None, text).await;
    let words = ["parser".to_owned()];
    for scope in [ann.as_str(), own] {
        assert_eq!(bed.store.postings(scope, &words, 10).await.unwrap().units, 1);
    }
    assert_eq!(bed.store.forget_units(&[first]).await.unwrap(), 1);
    let query = MemoryQuery::default();
    let left: Vec<u64> = bed
        .store
        .list_units(&query)
        .await
        .unwrap()
        .iter()
        .map(|unit| unit.id)
        .collect();
    assert_eq!(left, [other]);
    let said = async |id: &str| {
        let entries = bed.store.entries(&id.into(), 0, 10).await.unwrap();
        serde_json::to_string(&entries).unwrap().contains(text)
    };
    assert!(!said("of-ann").await);
    assert!(said("own").await);
}

fn record(action: &str, time: u64, owner: &str) -> AuditRecord {
    AuditRecord {
        time: Timestamp(time),
        user: user(owner),
        front_end: "test".into(),
        server: "host".into(),
        session: Some("s".into()),
        action: action.into(),
        ..AuditRecord::default()
    }
}

/// DIST-7: rows of the audit log are chained, so that a check finds one that was changed or removed; old ones can go.
#[tokio::test]
async fn the_audit_log_is_chained() {
    let bed = Bed::new();
    let records = (1..=4).map(|time| record("login", time * 100, if time == 3 { "bob" } else { "ann" }));
    bed.store.audit(records.collect(), row_hash).await.unwrap();
    bed.store
        .audit(vec![record("logout", 500, "ann")], row_hash)
        .await
        .unwrap();
    let whole = verify(&*bed.store, None).await.unwrap();
    assert_eq!((whole.rows, whole.last.0, whole.pruned), (5, 5, 0));
    let numbers = async |query: AuditQuery| {
        let rows = bed.store.audited(&query).await.unwrap();
        rows.iter().map(|row| row.number).collect::<Vec<_>>()
    };
    let bob = AuditQuery {
        user: Some(user("bob")),
        ..AuditQuery::default()
    };
    assert_eq!(numbers(bob).await, [3]);
    let last = AuditQuery {
        is_latest: true,
        limit: 2,
        session: Some("s".into()),
        ..AuditQuery::default()
    };
    assert_eq!(numbers(last).await, [4, 5]);
    let ended = AuditQuery {
        action: Some("logout".into()),
        since: Some(Timestamp(450)),
        ..AuditQuery::default()
    };
    assert_eq!(numbers(ended).await, [5]);

    // Nothing is changed by accident.
    assert!(
        bed.raw("UPDATE {audit} SET content = '{}' WHERE number = 3")
            .is_err()
    );
    assert!(bed.raw("DELETE FROM {audit} WHERE number = 3").is_err());
    assert_eq!(bed.store.prune_audit(Timestamp(250)).await.unwrap(), 2);
    assert_eq!(verify(&*bed.store, None).await, Err(AuditFault::Unrecorded(2)));
    let removal = vec![record(PRUNED, 600, "ann")];
    bed.store.audit(removal, row_hash).await.unwrap();
    let pruned = verify(&*bed.store, Some((5, &whole.last.1))).await.unwrap();
    assert_eq!((pruned.rows, pruned.pruned), (4, 2));
    let wrong = "0".repeat(64);
    let other = Err(AuditFault::Other(2));
    assert_eq!(verify(&*bed.store, Some((2, &wrong))).await, other);
    let too_old = Err(AuditFault::TooOld(1, 2));
    assert_eq!(verify(&*bed.store, Some((1, &wrong))).await, too_old);
    assert_eq!(bed.store.prune_audit(Timestamp(250)).await.unwrap(), 0);

    // Somebody with access to the database can remove the protection, and is found out.
    bed.unprotect_audit();
    bed.raw("UPDATE {audit} SET content = replace(content, 'bob', 'eve') WHERE number = 3")
        .unwrap();
    assert_eq!(verify(&*bed.store, None).await, Err(AuditFault::Changed(3)));
    bed.raw("UPDATE {audit} SET content = replace(content, 'eve', 'bob') WHERE number = 3")
        .unwrap();
    assert!(verify(&*bed.store, None).await.is_ok());
    // The columns that rows are selected by say the same as the content.
    for (column, wrong, right) in [
        ("user_name", "'eve'", "'bob'"),
        ("session", "NULL", "'s'"),
        ("action", "'logout'", "'login'"),
        ("time", "1", "300"),
    ] {
        let set = |value: &str| {
            bed.raw(&format!(
                "UPDATE {{audit}} SET {column} = {value} WHERE number = 3"
            ))
        };
        set(wrong).unwrap();
        let changed = Err(AuditFault::Changed(3));
        assert_eq!(verify(&*bed.store, None).await, changed, "{column}");
        set(right).unwrap();
        assert!(verify(&*bed.store, None).await.is_ok(), "{column}");
    }
    bed.raw("DELETE FROM {audit} WHERE number = 4").unwrap();
    assert_eq!(verify(&*bed.store, None).await, Err(AuditFault::Missing(4, 4)));
    bed.raw("DELETE FROM {audit} WHERE number > 4").unwrap();
    assert_eq!(verify(&*bed.store, None).await, Err(AuditFault::Missing(4, 6)));
    // Even if the store is told that these rows never were.
    bed.raw("UPDATE {audit}_head SET number = 3, hash = (SELECT hash FROM {audit} WHERE number = 3)")
        .unwrap();
    assert_eq!(verify(&*bed.store, None).await, Err(AuditFault::Unrecorded(2)));
    let noted = Some((5, whole.last.1.as_str()));
    assert_eq!(verify(&*bed.store, noted).await, Err(AuditFault::Missing(4, 5)));
    // A log that is emptied as if all of it had been too old is not the one that was noted.
    bed.raw("UPDATE {audit}_head SET number = 5, pruned = 5, hash = 'junk', pruned_hash = 'junk'")
        .unwrap();
    bed.raw("DELETE FROM {audit}").unwrap();
    assert_eq!(verify(&*bed.store, noted).await, Err(AuditFault::Other(5)));
    assert_eq!(verify(&*bed.store, None).await, Err(AuditFault::Unrecorded(5)));
}
