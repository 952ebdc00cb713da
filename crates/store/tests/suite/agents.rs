//! The ledger of sub-agents.

use std::sync::Arc;

use windlass_core::clock::Timestamp;
use windlass_core::event::{AgentEvent, Event, FailureKind};
use windlass_core::id::SessionId;
use windlass_core::log::{
    AgentBudget, AgentJob, AgentLimits, AgentQuery, AgentState, Booking, NewAgent, SpawnError, Spawned,
};
use windlass_core::message::FinishReason;
use windlass_core::model::Usage;

use super::bed::{Bed, batch};

fn limits() -> AgentLimits {
    AgentLimits {
        max_spawn_depth: 2,
        max_children: 3,
        max_concurrent: 4,
        max_agents: 6,
        budget: AgentBudget {
            tokens: Some(900),
            cost_usd: Some(9.0),
            turns: Some(90),
            seconds: None,
        },
    }
}

fn agent(id: &str, parent: &str) -> NewAgent {
    NewAgent {
        parent: parent.into(),
        call: None,
        job: AgentJob {
            kind: "task".into(),
            task: "look\nat it".into(),
            ..AgentJob::default()
        },
        asks: AgentBudget::default(),
        limits: limits(),
        session: id.into(),
        time: Timestamp(1_000),
    }
}

async fn spawn(bed: &Bed, id: &str, parent: &str) -> Result<Spawned, SpawnError> {
    bed.store.spawn(agent(id, parent), "me").await
}

fn ended(state: AgentState, result: &str) -> Vec<Event> {
    let ended = AgentEvent::AgentEnded {
        state,
        reason: None,
        result: result.into(),
        claims: Vec::new(),
    };
    let end = Event::Failed {
        reason: FailureKind::Stopped,
        message: String::new(),
        hint: None,
        finish: FinishReason::Error,
    };
    vec![ended.into_event(), end]
}

async fn undelivered(bed: &Bed, parent: &str) -> Vec<u32> {
    let query = AgentQuery::Undelivered(parent.into());
    let rows = bed.store.agents(&query).await.unwrap();
    rows.iter().map(|row| row.family.number).collect()
}

/// SUB-4: the row is there before the child starts, and changes in the transactions of the events: its end with its
/// last batch, its delivery with the parent's.
#[tokio::test]
async fn rows_follow_events() {
    let bed = Bed::new();
    let root = bed.session("root").await;
    let child = spawn(&bed, "child", "root").await.unwrap();
    assert_eq!(
        (child.row.family.number, child.row.job.name.as_str()),
        (1, "task")
    );
    let info = bed.store.get(&"child".into()).await.unwrap().unwrap();
    assert_eq!(info.label.key.as_deref(), Some("agent:child:sub:1:root"));
    let state = async || bed.store.agent(&"child".into()).await.unwrap().unwrap().status;
    assert_eq!(state().await.state, AgentState::Queued);
    let start = Event::Start {
        provider: "p".into(),
        model: "m".into(),
    };
    bed.store
        .append(&child.opened.lease, batch(1, vec![start]))
        .await
        .unwrap();
    assert_eq!(state().await.state, AgentState::Running);
    assert!(undelivered(&bed, "root").await.is_empty());
    bed.store
        .append(&child.opened.lease, batch(2, ended(AgentState::Done, "found")))
        .await
        .unwrap();
    assert_eq!(
        (state().await.state, state().await.result.as_deref()),
        (AgentState::Done, Some("found"))
    );
    assert_eq!(undelivered(&bed, "root").await, [1]);
    let delivered = |agent: &str| {
        let agents = vec![SessionId::from(agent)];
        vec![AgentEvent::AgentDelivered { agents }.into_event()]
    };
    // Only the parent can take delivery.
    let other = bed.session("other").await;
    bed.store
        .append(&other.lease, batch(1, delivered("child")))
        .await
        .unwrap();
    assert_eq!(undelivered(&bed, "root").await, [1]);
    bed.store
        .append(&root.lease, batch(1, delivered("child")))
        .await
        .unwrap();
    assert!(undelivered(&bed, "root").await.is_empty());
    let again = AgentEvent::AgentStarted {
        wake: true,
        replaces: false,
    }
    .into_event();
    bed.store
        .append(&child.opened.lease, batch(4, vec![again]))
        .await
        .unwrap();
    let now = state().await;
    assert_eq!(
        (now.state, now.delivered, now.result),
        (AgentState::Running, false, None)
    );
}

/// SUB-3, SUB-5: depth, width, concurrency and the number of a tree's children are counted in the store, for every
/// node of the tree.
#[tokio::test]
async fn limits_are_the_trees() {
    let bed = Bed::new();
    bed.session("root").await;
    for id in ["a", "b", "c"] {
        spawn(&bed, id, "root").await.unwrap();
    }
    let refused = spawn(&bed, "d", "root").await.unwrap_err();
    assert_eq!(refused, SpawnError::Children { running: 3, most: 3 });
    let below = spawn(&bed, "a1", "a").await.unwrap();
    assert_eq!(
        (below.row.family.depth, below.row.family.root.as_str()),
        (2, "root")
    );
    assert_eq!(below.row.family.number, 4);
    let refused = spawn(&bed, "b1", "b").await.unwrap_err();
    assert_eq!(refused, SpawnError::Concurrent { running: 4, most: 4 });
    bed.store
        .append(&below.opened.lease, batch(1, ended(AgentState::Done, "x")))
        .await
        .unwrap();
    let refused = spawn(&bed, "a11", "a1").await.unwrap_err();
    assert_eq!(refused, SpawnError::Depth { depth: 3, most: 2 });
    for id in ["a2", "a3"] {
        let more = spawn(&bed, id, "a").await.unwrap();
        bed.store
            .append(&more.opened.lease, batch(1, ended(AgentState::Done, "x")))
            .await
            .unwrap();
    }
    let refused = spawn(&bed, "a4", "a").await.unwrap_err();
    assert_eq!(refused, SpawnError::Agents { made: 6, most: 6 });
    assert!(
        bed.store.get(&"a4".into()).await.unwrap().is_none(),
        "nothing was written"
    );
}

/// SUB-5: a child's share comes out of what its parent has left; a running child holds its share, an ended one only
/// what it used.
#[tokio::test]
async fn shares_come_from_the_parent() {
    let bed = Bed::new();
    bed.session("root").await;
    let first = spawn(&bed, "a", "root").await.unwrap();
    assert_eq!(
        (first.row.budget.tokens, first.row.budget.turns),
        (Some(300), Some(30))
    );
    assert_eq!(
        (first.left.running, first.left.agents, first.left.budget.tokens),
        (2, 5, Some(600))
    );
    let mut greedy = agent("b", "root");
    greedy.asks.tokens = Some(601);
    let refused = bed.store.spawn(greedy, "me").await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "the budget does not suffice: 601 tokens asked for, 600 left of 900"
    );
    let below = spawn(&bed, "a1", "a").await.unwrap();
    assert_eq!(
        below.row.budget.tokens,
        Some(100),
        "a third of what its parent has"
    );
    let used = Booking {
        time: Timestamp(1),
        provider: "p".into(),
        model: "m".into(),
        cause: "turn".into(),
        usage: Usage {
            input: 40,
            output: 10,
            ..Usage::default()
        },
        cost_usd: Some(0.5),
    };
    bed.store.book(&"a".into(), used).await.unwrap();
    let left = bed.store.budget_left(&"a".into()).await.unwrap();
    assert_eq!(
        (left.tokens, left.turns),
        (Some(150), Some(19)),
        "without its own use and the share below"
    );
    bed.store
        .append(&below.opened.lease, batch(1, ended(AgentState::Done, "x")))
        .await
        .unwrap();
    bed.store
        .append(&first.opened.lease, batch(1, ended(AgentState::Done, "x")))
        .await
        .unwrap();
    let next = spawn(&bed, "c", "root").await.unwrap();
    assert_eq!(
        next.left.budget.tokens,
        Some(850 - 283),
        "an ended child counts with what it used"
    );
}

/// SUB-3, SUB-5: limits and the rest of the budget are checked in the transaction in which a child starts again, so that
/// any number of calls at the same time cannot exceed them.
#[tokio::test]
async fn restarts_keep_the_limits() {
    let bed = Bed::new();
    bed.session("root").await;
    let children = ["a", "b", "c", "d", "e"];
    for id in children {
        let child = spawn(&bed, id, "root").await.unwrap();
        let end = batch(1, ended(AgentState::Done, "x"));
        bed.store.append(&child.opened.lease, end).await.unwrap();
    }
    let limits = limits();
    let tasks = children.map(|id| {
        let (store, limits) = (Arc::clone(&bed.store), limits.clone());
        tokio::spawn(async move { store.restart(&id.into(), &limits).await })
    });
    let (mut running, mut refused) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.await.unwrap() {
            Ok(row) => running.push(row),
            Err(error) => refused.push(error),
        }
    }
    assert_eq!(running.len(), 3, "{running:?}");
    for refused in refused {
        assert_eq!(refused, SpawnError::Children { running: 3, most: 3 });
    }
    let active = bed
        .store
        .agents(&AgentQuery::Active("root".into()))
        .await
        .unwrap();
    assert_eq!(active.len(), 3);
    let again = bed.store.restart(&active[0].session, &limits).await.unwrap_err();
    assert_eq!(
        again,
        SpawnError::Active {
            title: active[0].title(),
            state: AgentState::Queued
        }
    );
}

/// SUB-5: a child that has used up its budget does not start again.
#[tokio::test]
async fn a_used_up_child_stays_ended() {
    let bed = Bed::new();
    bed.session("root").await;
    let child = spawn(&bed, "a", "root").await.unwrap();
    bed.store.book(&"a".into(), used(400)).await.unwrap();
    let end = batch(1, ended(AgentState::Failed, "x"));
    bed.store.append(&child.opened.lease, end).await.unwrap();
    let refused = bed.store.restart(&"a".into(), &limits()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the budget of agent 1 task is used up: no tokens left of 300 tokens, $3.00, 30 turns"
    );
}

fn used(tokens: u64) -> Booking {
    Booking {
        time: Timestamp(1),
        provider: "p".into(),
        model: "m".into(),
        cause: "turn".into(),
        usage: Usage {
            input: tokens,
            ..Usage::default()
        },
        cost_usd: Some(0.5),
    }
}

/// SUB-7: a result that is not delivered when a child starts again is part of its next one, unless that replaces it.
#[tokio::test]
async fn an_undelivered_result_is_kept() {
    let bed = Bed::new();
    bed.session("root").await;
    let child = spawn(&bed, "a", "root").await.unwrap();
    let result = async |first: u64, replaces: bool, text: &str| {
        let again = AgentEvent::AgentStarted {
            wake: false,
            replaces,
        };
        let events = [vec![again.into_event()], ended(AgentState::Done, text)].concat();
        let stored = bed.store.append(&child.opened.lease, batch(first, events)).await;
        stored.unwrap();
        bed.store.agent(&"a".into()).await.unwrap().unwrap().status.result
    };
    assert_eq!(result(1, false, "one").await.as_deref(), Some("one"));
    assert_eq!(result(4, false, "two").await.as_deref(), Some("one\n\ntwo"));
    assert_eq!(result(7, true, "three").await.as_deref(), Some("three"));
}

/// SES-8, SUB-5: whatever happens in a tree, the totals of a session are its own and those of everything below it, and
/// the budget that is left is the one that adding up all rows gives.
#[tokio::test]
async fn running_sums_are_exact() {
    let mut seed = 20_261_116_u64;
    let mut roll = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    };
    /// One agent of the tree.
    struct Node {
        id: String,
        above: usize,
        lease: windlass_core::log::Lease,
        budget: u64,
        used: u64,
        last_seq: u64,
        is_active: bool,
    }
    let bed = Bed::new();
    let root = bed.session("root").await;
    let mut tree = vec![Node {
        id: "root".into(),
        above: 0,
        lease: root.lease,
        budget: 10_000_000,
        used: 0,
        last_seq: 0,
        is_active: true,
    }];
    let many = AgentLimits {
        max_spawn_depth: 5,
        max_children: 100,
        max_concurrent: 100,
        max_agents: 1_000,
        budget: AgentBudget {
            tokens: Some(10_000_000),
            ..AgentBudget::default()
        },
    };
    for step in 1..400 {
        let place = usize::try_from(roll(tree.len() as u64)).unwrap();
        let node = &mut tree[place];
        let id = SessionId::from(node.id.as_str());
        match roll(4) {
            0 => {
                let mut new = agent(&format!("agent-{step}"), &node.id);
                new.limits = many.clone();
                let budget = node.budget / 100;
                new.asks.tokens = Some(budget);
                let Ok(spawned) = bed.store.spawn(new, "me").await else {
                    continue;
                };
                tree.push(Node {
                    id: format!("agent-{step}"),
                    above: place,
                    lease: spawned.opened.lease,
                    budget,
                    used: 0,
                    last_seq: 0,
                    is_active: true,
                });
            }
            1 if place > 0 && node.is_active => {
                let end = batch(node.last_seq + 1, ended(AgentState::Done, "x"));
                node.last_seq += end.events.len() as u64;
                bed.store.append(&node.lease, end).await.unwrap();
                node.is_active = false;
            }
            2 if place > 0 && !node.is_active => {
                node.is_active = bed.store.restart(&id, &many).await.is_ok();
            }
            _ => {
                let tokens = roll(60);
                bed.store.book(&id, used(tokens)).await.unwrap();
                node.used += tokens;
            }
        }
    }
    let deepest = tree.iter().filter(|node| node.budget <= 10).count();
    assert!(tree.len() > 50 && deepest > 5, "{}, {deepest}", tree.len());
    let is_below = |mut place: usize, top: usize| {
        while place != top && place != 0 {
            place = tree[place].above;
        }
        place == top
    };
    let below = |top: usize| (0..tree.len()).filter(move |place| is_below(*place, top));
    let used = |top: usize| -> u64 { below(top).map(|place| tree[place].used).sum() };
    for (top, node) in tree.iter().enumerate() {
        let id = SessionId::from(node.id.as_str());
        let info = bed.store.get(&id).await.unwrap().unwrap();
        assert_eq!(info.totals.prompt_tokens, used(top), "{id}");
        if top == 0 {
            continue;
        }
        // Those that run, with nothing that runs between them and this one, hold the rest of their share.
        let mut held = 0;
        for place in below(top).filter(|place| *place != top && tree[*place].is_active) {
            let mut above = tree[place].above;
            while above != top && !tree[above].is_active {
                above = tree[above].above;
            }
            if above == top {
                held += tree[place].budget.saturating_sub(used(place));
            }
        }
        let left = bed.store.budget_left(&id).await.unwrap();
        assert_eq!(
            left.tokens,
            Some(node.budget.saturating_sub(used(top) + held)),
            "{id}"
        );
    }
}
