//! Compaction of a conversation that grows too long: important facts survive with every strategy.

use serde_json::json;
use windlass_sim::{Protocol, Reply, When};
use windlass_testkit::{Output, Workspace};

use super::support::{with_replies, workspace};

const WINDOW: &str = "models.sim-1.context_window=12000";

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// Long outputs, one after the other, and an answer to requests for a summary or for outputs to drop.
fn replies() -> Vec<Reply> {
    let summary = Reply::text("CURRENT: none\nnothing worth keeping")
        .when(When::new().no_tools(true))
        .forever();
    let calls = (0..8).map(|number| {
        Reply::call("bash", json!({"command": format!("seq {number}000 {number}999")}))
            .id(&format!("call-{number}"))
    });
    let todo = json!({"items": [{"content": "tell the captain", "status": "pending"}]});
    let done = json!({"items": [{"content": "tell the captain", "status": "completed"}]});
    [summary, Reply::call("todo", todo)]
        .into_iter()
        .chain(calls)
        .chain([
            Reply::call("recall", json!({"ref": "call-0", "grep": "123"})),
            Reply::call("todo", done),
            Reply::text("an answer").forever(),
        ])
        .collect()
}

/// CTX-2, CTX-4, CTX-15: with every strategy, a turn that outgrows its window reaches its answer with valid
/// requests; the user's messages and open work stay in the context, and dropped content can be read back
/// verbatim.
#[test]
fn every_strategy_keeps_what_matters() {
    for strategy in [
        "summarize",
        "mask",
        "subgoal",
        "subgoal_mig",
        "focus",
        "sidequest",
    ] {
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies());
        let strategy_flag = format!("memory.compression.pruning_strategy={strategy}");
        let args = [
            "exec",
            "-o",
            "stream-json",
            "-c",
            WINDOW,
            "-c",
            &strategy_flag,
            "the word is Hafenrundfahrt",
        ];
        let output = run(&workspace, &args);
        let compactions = output.assert_code(0).events_of("compaction");
        assert!(!compactions.is_empty(), "{strategy}: {output}");
        let fidelity = &compactions[0]["fidelity"];
        assert!(fidelity.is_object(), "{strategy}: {}", compactions[0]);
        sim.assert_valid();
        let requests = sim.requests();
        let turns = requests.iter().filter(|request| !request.seen.tools.is_empty());
        for request in turns {
            let asked = String::from_utf8_lossy(&request.raw);
            assert!(asked.contains("Hafenrundfahrt"), "{strategy}: {asked}");
        }
        let results = output.events_of("tool_result");
        let recalled = results.iter().find(|result| result["name"] == "recall").unwrap();
        assert!(
            recalled["content"].as_str().unwrap().contains("\t123"),
            "{strategy}: {recalled}"
        );
    }
}

/// CTX-15: a summary contains the current open work.
#[test]
fn what_is_open_is_said_in_the_summary() {
    let (sim, workspace) = with_replies(Protocol::Chat, replies());
    run(&workspace, &["exec", "-c", WINDOW, "go"]).assert_code(0);
    let requests = sim.requests();
    let open = requests.iter().any(|request| {
        let asked = String::from_utf8_lossy(&request.raw);
        asked.contains("open todos") && asked.contains("- tell the captain")
    });
    assert!(open, "{:?}", sim.outlines().last());
}

/// CTX-4, CTX-9: contradictory or meaningless settings are errors at the start.
#[test]
fn contradictions_are_errors() {
    let workspace = workspace();
    let together = ["-c", "memory.sidequest.enabled=true", "-c"];
    for strategy in ["subgoal", "subgoal_mig"] {
        let flag = format!("memory.compression.pruning_strategy={strategy}");
        let args = [&["exec", "--provider", "sim"], &together[..], &[&flag, "hello"]].concat();
        run(&workspace, &args)
            .assert_code(3)
            .assert_says("cannot be used together");
    }
    let zero = "memory.focus.auto_consolidate_min_window=0";
    run(&workspace, &["exec", "--provider", "sim", "-c", zero, "hello"])
        .assert_code(3)
        .assert_says("from 1 to 1000");
    let unknown = "memory.compression.pruning_strategy=magic";
    run(&workspace, &["exec", "--provider", "sim", "-c", unknown, "hello"])
        .assert_code(3)
        .assert_says("subgoal_mig");
}

/// CTX-10, CTX-11, SES-8: a long output is stored completely, then compressed and tagged, and the call is
/// counted as cost.
#[test]
fn long_outputs_are_compressed_when_wished() {
    let replies = [
        Reply::text("numbers from 1 to 4000")
            .when(When::new().system_contains("condense the output"))
            .forever(),
        Reply::call("bash", json!({"command": "seq 1 4000"})),
        Reply::text("an answer").forever(),
    ];
    let (sim, workspace) = with_replies(Protocol::Responses, replies);
    let args = ["exec", "-o", "stream-json", "-c", "tools.taco.enabled=true", "go"];
    let output = run(&workspace, &args);
    let result = &output.assert_code(0).events_of("tool_result")[0];
    let content = result["content"].as_str().unwrap();
    assert!(
        content.starts_with("[compressed by a model from ") && content.ends_with("numbers from 1 to 4000"),
        "{content}"
    );
    assert!(
        result["details"]["compressed"]["reference"].is_string(),
        "{result}"
    );
    let cost = run(&workspace, &["sessions", "cost", "--by", "cause"]);
    assert!(cost.assert_code(0).stdout.contains("taco"), "{cost}");
    sim.assert_valid();
    let raw = run(&workspace, &["exec", "-o", "stream-json", "plain"]);
    raw.assert_code(0);
}

/// CTX-12, CTX-15: a summarizer that fails, returns nothing or never answers has a defined outcome, which is
/// reported to the user, and the turn continues.
#[test]
fn a_bad_summarizer_is_survived() {
    let bad = [
        Reply::text("").when(When::new().no_tools(true)).forever(),
        Reply::text("x")
            .fault(windlass_sim::Fault::status(400))
            .when(When::new().no_tools(true))
            .forever(),
        Reply::text("late")
            .fault(windlass_sim::Fault::new().delay_ms(8_000))
            .when(When::new().no_tools(true))
            .forever(),
    ];
    for bad in bad {
        let calls = (0..9)
            .map(|number| Reply::call("bash", json!({"command": format!("seq {number}000 {number}999")})));
        let replies = [bad]
            .into_iter()
            .chain(calls)
            .chain([Reply::text("an answer").forever()]);
        let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
        let limit = "timeouts.context_prep_timeout_secs=1";
        let output = run(
            &workspace,
            &["exec", "-c", WINDOW, "-c", limit, "the word is Leuchtturm"],
        );
        assert_eq!(output.assert_code(0).stdout, "an answer\n");
        assert!(output.stderr.contains("made without a model"), "{output}");
        let requests = sim.requests();
        let last = String::from_utf8_lossy(&requests.last().unwrap().raw);
        assert!(last.contains("Leuchtturm"), "{last}");
        sim.assert_valid();
    }
}
