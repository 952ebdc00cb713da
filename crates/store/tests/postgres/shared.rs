//! Several processes on one database.

use std::sync::Arc;

use windlass_core::clock::Timestamp;
use windlass_core::log::{
    AgentBudget, AgentJob, AgentLimits, Claimed, JobQuery, LogError, NewAgent, NewSession, NewSlot,
    SessionQuery, SlotCause, SlotEnd, SlotKey, SlotSession, SlotState, SpawnError,
};
use windlass_core::message::Role;

use super::bed::{Bed, append, batch, said};

/// SES-2, DIST-2: a lease that another process took over refuses every later write of the first, and a group in which one
/// batch is refused stores the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refused_batch_harms_no_other() {
    let bed = Bed::new();
    let mut opened = Vec::new();
    for number in 0..40 {
        opened.push(bed.session(&format!("s{number}")).await);
    }
    // Every fourth is taken over.
    let other = bed.again();
    for opened in opened.iter().step_by(4) {
        bed.store.release(&opened.lease).await.unwrap();
        other.open(&opened.info.id, "another").await.unwrap();
    }
    let writes = opened.iter().map(|opened| {
        let (store, lease) = (Arc::clone(&bed.store), opened.lease.clone());
        tokio::spawn(async move { store.append(&lease, batch(1, vec![said(Role::User, "x")])).await })
    });
    let writes: Vec<_> = writes.collect();
    for (number, write) in writes.into_iter().enumerate() {
        let id = opened[number].info.id.clone();
        let expected = if number % 4 == 0 {
            Err(LogError::Lost(id))
        } else {
            Ok(())
        };
        assert_eq!(write.await.unwrap(), expected, "{number}");
    }
    assert_eq!(bed.problems(), Vec::<String>::new());
}

/// SES-5, DIST-2: batches of one session that are not waited for are stored in order, and a batch that does not follow the
/// last entry is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn numbers_have_no_gap() {
    let bed = Bed::new();
    let opened = bed.session("one").await;
    let gap = bed
        .store
        .append(&opened.lease, batch(3, vec![said(Role::User, "x")]))
        .await;
    assert!(matches!(gap, Err(LogError::Damaged { .. })), "{gap:?}");
    for number in 1..=50 {
        append(&bed.store, &opened.lease, number, vec![said(Role::User, "x")]).await;
    }
    assert_eq!(bed.problems(), Vec::<String>::new());
}

fn slot(owner: &str) -> NewSlot {
    NewSlot {
        key: SlotKey {
            job: "nightly".to_owned(),
            slot: Timestamp(60_000),
        },
        cause: SlotCause::Schedule,
        state: SlotState::Running,
        owner: owner.to_owned(),
        until: Timestamp(u64::MAX >> 8),
        session: Some(SlotSession {
            place: "/project".to_owned(),
            title: "Nightly".to_owned(),
            key: None,
        }),
        max_running: 1,
        detail: String::new(),
        time: Timestamp(60_001),
    }
}

/// CRON-3, DIST-2: of many processes, one wins a slot, with its session in the same transaction; only it can end the slot,
/// and its result is delivered by one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_slot_has_one_winner() {
    let bed = Bed::new();
    let query = JobQuery {
        job: "nightly".to_owned(),
        definition: "daily".to_owned(),
        changed_at: Timestamp(1),
        day: Timestamp(0),
        keep_sessions: None,
    };
    let claims = (0..12).map(|number| {
        let (store, query) = (bed.again(), query.clone());
        tokio::spawn(async move {
            store.job_facts(&query).await.unwrap();
            let owner = format!("elsewhere/{number}/1/x");
            (owner.clone(), store.claim_slot(&slot(&owner)).await.unwrap())
        })
    });
    let claims: Vec<_> = claims.collect();
    let mut winners = Vec::new();
    for claim in claims {
        let (owner, claimed) = claim.await.unwrap();
        match claimed {
            Claimed::Won(session) => winners.push((owner, session.unwrap())),
            other => assert_eq!(other, Claimed::Taken),
        }
    }
    let [(winner, session)] = &winners[..] else {
        panic!("{winners:?}");
    };
    let sessions = bed.store.list(&SessionQuery::default()).await.unwrap();
    assert_eq!(
        sessions.iter().map(|info| &info.id).collect::<Vec<_>>(),
        [session]
    );
    let end = |owner: &str| SlotEnd {
        key: slot("").key,
        owner: owner.to_owned(),
        state: SlotState::Ran,
        detail: String::new(),
        output: "done".to_owned(),
        standing: None,
        deliveries: vec![("file:/x".to_owned(), "done".to_owned())],
        time: Timestamp(70_000),
    };
    assert!(!bed.store.end_slot(&end("somebody/1/1/x")).await.unwrap());
    assert!(bed.store.end_slot(&end(winner)).await.unwrap());
    let deliveries = (0..6).map(|_| {
        let store = bed.again();
        tokio::spawn(async move { store.due_delivery("me", Timestamp(80_000)).await.unwrap() })
    });
    let deliveries: Vec<_> = deliveries.collect();
    let mut taken = 0;
    for delivery in deliveries {
        taken += usize::from(delivery.await.unwrap().is_some());
    }
    assert_eq!(taken, 1);
}

/// SUB-4, SUB-5, DIST-2: limits of a tree hold, whichever processes start its sub-agents.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn limits_hold_across_processes() {
    let bed = Bed::new();
    bed.session("root").await;
    let starts = (0..12).map(|number| {
        let store = bed.again();
        tokio::spawn(async move {
            let new = NewAgent {
                parent: "root".into(),
                call: None,
                job: AgentJob {
                    kind: "explore".to_owned(),
                    task: "look".to_owned(),
                    ..AgentJob::default()
                },
                asks: AgentBudget::default(),
                limits: AgentLimits {
                    max_spawn_depth: 3,
                    max_children: 5,
                    max_concurrent: 9,
                    max_agents: 100,
                    budget: AgentBudget::default(),
                },
                session: format!("child{number}").into(),
                time: Timestamp(5),
            };
            store.spawn(new, &windlass_store::owner()).await
        })
    });
    let starts: Vec<_> = starts.collect();
    let (mut numbers, mut refused) = (Vec::new(), 0);
    for start in starts {
        match start.await.unwrap() {
            Ok(spawned) => numbers.push(spawned.row.family.number),
            Err(SpawnError::Children { running: 5, most: 5 }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    numbers.sort_unstable();
    assert_eq!((numbers, refused), (vec![1, 2, 3, 4, 5], 7));
}

/// SES-8, DIST-2: the costs of a deleted sub-agent stay with the session above it.
#[tokio::test]
async fn costs_outlive_their_session() {
    let bed = Bed::new();
    bed.session("root").await;
    let child = NewSession {
        id: Some("child".into()),
        parent: Some("root".into()),
        ..NewSession::default()
    };
    let child = bed.store.create(child, "me").await.unwrap();
    let booking = windlass_core::log::Booking {
        time: Timestamp(9),
        provider: "p".to_owned(),
        model: "m".to_owned(),
        cause: "turn".to_owned(),
        usage: windlass_core::model::Usage {
            input: 10,
            output: 5,
            ..Default::default()
        },
        cost_usd: Some(0.25),
    };
    bed.store.book(&"child".into(), booking).await.unwrap();
    let totals = async || bed.store.get(&"root".into()).await.unwrap().unwrap().totals;
    let before = totals().await;
    assert_eq!((before.prompt_tokens, before.completion_tokens), (10, 5));
    bed.store.release(&child.lease).await.unwrap();
    bed.store.delete(&"child".into()).await.unwrap();
    assert_eq!(totals().await, before);
}
