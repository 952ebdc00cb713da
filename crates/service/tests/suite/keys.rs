//! Channels and their sessions.

use windlass_api::{Begin, Client, ClientError, SessionKey};
use windlass_core::log::SessionQuery;
use windlass_core::script::Scene;

use super::bed::{Bed, answer};

fn keyed(key: &str) -> Begin {
    Begin::Keyed {
        key: key.parse::<SessionKey>().unwrap(),
        place: "/project".to_owned(),
    }
}

/// SES-9: a key leads to one session, in this process and in the next; another key leads to another one.
#[tokio::test]
async fn a_key_leads_to_its_session() {
    let bed = Bed::new([Scene::text("first"), Scene::text("second")]);
    let service = bed.service();
    let main = service.begin(keyed("agent:main:main")).await.unwrap();
    assert_eq!(main.label.key.as_deref(), Some("agent:main:main"));
    answer(&service, &main.id, "one").await;
    let group = service
        .begin(keyed("agent:main:chat:group:room:1"))
        .await
        .unwrap();
    assert_ne!(group.id, main.id);
    assert_eq!(service.begin(keyed("agent:main:main")).await.unwrap().id, main.id);
    service.close().await;
    let again = bed.service();
    let same = again.begin(keyed("agent:main:main")).await.unwrap();
    assert_eq!((same.id.clone(), same.totals.messages), (main.id, 2));
    answer(&again, &same.id, "two").await;
    assert!(bed.provider.seen()[1].contains("user: one"));
}

/// SES-9: processes that route the same key at the same time create one session; the second process finds it
/// busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_race_makes_one_session() {
    let bed = Bed::new([]);
    let services: Vec<_> = (0..8).map(|_| bed.service()).collect();
    let tasks = services
        .iter()
        .cloned()
        .map(|service| tokio::spawn(async move { service.begin(keyed("agent:main:chat:group:x")).await }));
    let tasks: Vec<_> = tasks.collect();
    let mut begun = Vec::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(info) => begun.push(info.id),
            Err(ClientError::Busy(session)) => begun.push(session),
            Err(other) => panic!("{other}"),
        }
    }
    let stored = bed.store().list(&SessionQuery::default()).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert!(begun.iter().all(|id| *id == stored[0].id), "{begun:?}");
}
