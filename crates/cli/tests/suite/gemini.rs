//! Gemini's own wire, through whole turns.

use serde_json::json;
use windlass_sim::{Fault, Protocol, Reply, Stop};
use windlass_testkit::Workspace;

use super::support::{results, with_replies};

fn exec(workspace: &Workspace, prompt: &str) -> windlass_testkit::Output {
    workspace.run(&["exec", prompt]).output()
}

/// PROV-4: a turn over Gemini's wire: thinking, parallel calls with ids, their responses, thoughts and signatures sent back
/// as they came. The validator accepts every request.
#[test]
fn a_turn_with_calls_and_thoughts() {
    let (sim, workspace) = with_replies(
        Protocol::Gemini,
        [
            Reply::call("read_file", json!({"path": "a.txt"}))
                .and_call("read_file", json!({"path": "missing.txt"}))
                .thinking("I look into the file."),
            Reply::text("It says zebra."),
            Reply::text("And again."),
        ],
    );
    workspace.write("a.txt", "zebra\n");
    let first = exec(&workspace, "what is in a.txt?");
    assert_eq!(first.assert_code(0).stdout.trim(), "It says zebra.");
    let answered = results(&sim);
    assert!(answered[0].contains("zebra"), "{answered:?}");
    assert!(answered[1].contains("missing.txt"), "{answered:?}");
    workspace
        .run(&["exec", "--continue", "again"])
        .output()
        .assert_code(0);
    let last = sim.requests().last().unwrap().body.clone();
    let reply = &last["contents"][1];
    assert_eq!(reply["role"], "model", "{last:#}");
    assert_eq!(reply["parts"][0]["thought"], true, "{last:#}");
    assert!(reply["parts"][1]["thoughtSignature"].is_string(), "{last:#}");
    let call = &reply["parts"][1]["functionCall"];
    assert_eq!(
        last["contents"][2]["parts"][0]["functionResponse"]["id"],
        call["id"]
    );
    assert!(last["contents"][2]["parts"][1]["functionResponse"]["response"]["error"].is_string());
    sim.assert_valid();
}

/// PROV-4: a safety stop is a refusal, and an overloaded server is tried again.
#[test]
fn safety_stops_and_overload() {
    let (sim, workspace) = with_replies(
        Protocol::Gemini,
        [
            Reply::default().fault(Fault::status(503)),
            Reply::text("fine"),
            Reply::text("I cannot").stop(Stop::Refusal),
        ],
    );
    exec(&workspace, "hello").assert_code(0);
    let refused = exec(&workspace, "something bad");
    assert_ne!(refused.code, Some(0), "{refused}");
    sim.assert_valid();
}
