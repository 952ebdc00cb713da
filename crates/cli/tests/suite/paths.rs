//! Whatever is in the store, and however a session is resumed, the next request is valid.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use windlass_core::clock::{SystemClock, Timestamp};
use windlass_core::event::{Event, SessionEvent};
use windlass_core::log::{Batch, NewSession};
use windlass_core::message::{FinishReason, Message, Role};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{WIRES, Workspace};

use super::histories::history;
use super::support::with_replies;

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| tokio::runtime::Runtime::new().unwrap());

/// Id of the session that is put into the store.
const PLANTED: &str = "01900000-0000-7000-8000-000000000001";

/// Way in which a session is resumed.
#[derive(Debug, Clone, Copy)]
enum Path {
    /// Unchanged, in the middle of a turn or after it.
    Load,
    /// As a copy.
    Fork,
    /// Rewound to an earlier state.
    Rewind(u64),
    /// With its oldest exchanges dropped.
    Trim(u64),
    /// After a compaction.
    Compact,
    /// With a different provider.
    Switch(Protocol),
    /// After an export and import.
    Import,
}

fn paths() -> impl Strategy<Value = Path> {
    prop_oneof![
        Just(Path::Load),
        Just(Path::Fork),
        (0_u64..20).prop_map(Path::Rewind),
        (1_u64..6).prop_map(Path::Trim),
        Just(Path::Compact),
        prop::sample::select(WIRES.to_vec()).prop_map(Path::Switch),
        Just(Path::Import),
    ]
}

/// Writes a session with these messages; some of them end a turn.
async fn plant(workspace: &Workspace, messages: &[Message], path: Path) {
    let file = workspace.home().join("data/windlass.db");
    let store = windlass_store::open(&file, Arc::new(SystemClock::default())).unwrap();
    let new = NewSession {
        id: Some(PLANTED.into()),
        place: workspace.path().canonicalize().unwrap().display().to_string(),
        time: Timestamp(1),
        ..NewSession::default()
    };
    let opened = store.create(new, &windlass_store::owner()).await.unwrap();
    let mut events = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let message = Message {
            session_id: PLANTED.into(),
            ..message.clone()
        };
        let is_last_of_turn = message.role == Role::Assistant && number % 3 == 2;
        events.push(Event::Message {
            message: Arc::new(message),
        });
        if is_last_of_turn {
            events.push(Event::Final {
                content: "so".to_owned(),
                finish: FinishReason::EndTurn,
            });
        }
    }
    if let Path::Rewind(to) = path {
        let to = to.min(events.len() as u64);
        events.push(Event::Session(SessionEvent::Rewind { to }));
    }
    let batch = Batch {
        first_seq: 1,
        events,
        time: Timestamp(2),
        ..Batch::default()
    };
    store.append(&opened.lease, batch).await.unwrap();
    store.release(&opened.lease).await.unwrap();
}

fn live_through(messages: &[Message], wire: Protocol, path: Path) -> Result<(), String> {
    let (sim, workspace) = with_replies(wire, [Reply::text("an answer").forever()]);
    RUNTIME.block_on(plant(&workspace, messages, path));
    let most = match path {
        Path::Trim(most) => format!("session.max_conversation_messages={most}"),
        _ => "session.max_conversation_messages=0".to_owned(),
    };
    let mut session = PLANTED.to_owned();
    let mut args = vec!["exec", "-c", &most, "-c", "agent.reasoning=off"];
    match path {
        Path::Fork => args.push("--fork"),
        Path::Compact => {
            // It does not matter here whether there was anything to summarize.
            drop(workspace.run(&["exec", "--resume", PLANTED, "/compact"]).output());
        }
        Path::Switch(other) => workspace.use_sim(&sim, other),
        Path::Import => {
            let file = workspace.path().join("session.json").display().to_string();
            let out = workspace
                .run(&["sessions", "export", PLANTED, "--format", "json", "-o", &file])
                .output();
            out.assert_code(0);
            let read = workspace.run(&["sessions", "import", &file]).output();
            read.assert_code(0);
            let listed = workspace
                .run(&["sessions", "list", "--all", "--json"])
                .output()
                .json();
            let ids = listed
                .as_array()
                .unwrap()
                .iter()
                .map(|info| info["id"].as_str().unwrap());
            session = ids
                .clone()
                .find(|id| *id != PLANTED)
                .unwrap_or(PLANTED)
                .to_owned();
        }
        _ => {}
    }
    args.extend(["--resume", &session, "and now?"]);
    let output = workspace.run(&args).output();
    if output.code != Some(0) || output.stdout != "an answer\n" {
        return Err(format!("{path:?}: {output}"));
    }
    if let Some(violation) = sim
        .requests()
        .iter()
        .find_map(|request| request.violation.clone())
    {
        let outlines = sim.outlines();
        return Err(format!(
            "{path:?}: {violation}\n{}",
            outlines.last().cloned().unwrap_or_default()
        ));
    }
    // An outline shortens long texts.
    let requests = sim.requests();
    let asked = requests
        .last()
        .map(|request| String::from_utf8_lossy(&request.raw).into_owned());
    if asked.is_some_and(|asked| asked.contains("and now?")) {
        Ok(())
    } else {
        Err(format!(
            "{path:?}: the question is missing\n{:?}",
            sim.outlines().last()
        ))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::default() })]

    /// CTX-6, LOOP-16, SES-13: whatever a store contains (calls without results, results without calls, half
    /// turns, foreign parts) and however a session is resumed (loaded, copied, rewound, trimmed, summarized,
    /// imported, with a different provider), the strict validator accepts the request, and the turn ends with
    /// an answer.
    #[test]
    fn every_path_leads_to_a_valid_request(
        messages in history(),
        wire in prop::sample::select(WIRES.to_vec()),
        path in paths(),
    ) {
        let lived = live_through(&messages, wire, path);
        prop_assert!(lived.is_ok(), "{}", lived.unwrap_err());
    }
}

/// SES-13: above the limit the oldest exchanges are dropped completely, with a notice, and stay in the log.
#[test]
fn the_oldest_exchanges_go_first() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("an answer").forever()]);
    workspace.run(&["exec", "alpha"]).output().assert_code(0);
    for prompt in ["beta", "gamma"] {
        workspace
            .run(&["exec", "--continue", prompt])
            .output()
            .assert_code(0);
    }
    let limit = "session.max_conversation_messages=4";
    let trimmed = workspace
        .run(&["exec", "--continue", "-c", limit, "delta"])
        .output();
    trimmed
        .assert_code(0)
        .assert_says("more than 4 messages: the oldest 4 are no longer sent");
    let asked = sim.outlines().pop().unwrap();
    assert!(asked.contains("gamma") && asked.contains("delta"), "{asked}");
    assert!(!asked.contains("alpha") && !asked.contains("beta"), "{asked}");
    let again = workspace.run(&["exec", "--continue", "epsilon"]).output();
    again.assert_code(0);
    assert!(
        !sim.outlines().pop().unwrap().contains("alpha"),
        "what went stays away"
    );
    let exported = workspace.run(&["sessions", "search", "alpha"]).output();
    assert!(exported.assert_code(0).stdout.contains("[alpha]"), "{exported}");
}
