//! The ledger of sub-agents.

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
    let again = AgentEvent::AgentStarted { wake: true }.into_event();
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
