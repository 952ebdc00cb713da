//! Servers that ask the session's model for a completion, through the binary.

use serde_json::json;
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{PATIENCE, SimServer, Workspace};

use super::approvals::answer;
use super::support::{results, with_replies};

const SERVER: &str = include_str!("mcp_server.py");

/// A session whose model calls a tool that asks the model `times` times.
fn session(keys: &str, times: usize) -> (SimServer, Workspace) {
    let called = Reply::call("mcp__plain__think", json!({ "text": times.to_string() })).tokens(10, 10);
    let thought = Reply::text("Milk, mostly.END of it").tokens(1_000, 100);
    let replies = [called, thought, Reply::text("done").tokens(10, 10)];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("server.py", SERVER);
    let own = format!(
        "[security]\nallow = [\"mcp__*\"]\n[mcp]\nstartup_wait_secs = 60\n[mcp_servers.plain]\ncommand = \
         \"python3\"\nargs = [\"server.py\"]\n{keys}\n[models.sim-1.price]\ninput = 10.0\noutput = 100.0\n"
    );
    workspace.use_sim_with(&sim, Protocol::Anthropic, &own);
    (sim, workspace)
}

/// MCP-5: a server that may ask the model is answered after the person saw the whole request and said yes; the
/// request has no tools and the server's limit of tokens, and its cost is in the session's totals under a cause of its own.
#[test]
fn a_completion_is_shown_sent_and_booked() {
    let (sim, workspace) = session("sampling = true", 1);
    let output = answer(&workspace, "exec go", &["send"]);
    for shown in [
        "The MCP server plain asks your model sim-1",
        "Be brief.",
        "What is cheese?",
    ] {
        assert!(output.stdout.contains(shown), "{shown}\n{output}");
    }
    assert_eq!(results(&sim), ["Milk, mostly., stopSequence, sim-1"]);
    let sent = &sim.requests()[1].seen;
    assert_eq!(
        (sent.system.as_str(), sent.turns[0].text.as_str()),
        ("Be brief.", "What is cheese?")
    );
    assert_eq!(
        (sent.turn_count, sent.max_tokens, sent.tools.len()),
        (1, Some(9), 0)
    );
    let cost = workspace.run(&["sessions", "cost", "--by", "cause"]).output();
    let line = cost.stdout.lines().find(|line| line.contains("sampling-plain"));
    // 1,000 tokens at 10 dollars a million and 100 at 100.
    assert!(line.is_some_and(|line| line.contains("$0.02")), "{cost}");
}

/// MCP-5: without a yes, nothing is sent: not if the person declines, not if nobody is there, not beyond the number
/// that a server may ask for in a turn, and not for a server that is not allowed to ask at all.
#[test]
fn nothing_is_sent_without_a_yes() {
    for (keys, typed, times, told) in [
        (
            "sampling = true",
            Some("decline"),
            1,
            "-1: The user declined the request.",
        ),
        (
            "sampling = true",
            None,
            1,
            "-1: Nobody is there to allow the request.",
        ),
        ("", Some("send"), 1, "-32601: sampling/createMessage"),
    ] {
        let (sim, workspace) = session(keys, times);
        match typed {
            Some(typed) => drop(answer(&workspace, "exec go", &[typed])),
            None => drop(workspace.run(&["exec", "go"]).limit(PATIENCE).output()),
        }
        let requests = sim.requests();
        let last = requests.last().unwrap();
        let told_to_model: Vec<&str> = last.seen.results().map(|result| result.text.as_str()).collect();
        assert_eq!(told_to_model, [told]);
        assert_eq!(requests.len(), 2);
    }
    let (sim, workspace) = session("sampling = true\nsampling_requests = 1", 2);
    answer(&workspace, "exec go", &["send", "send"]);
    let limited = "-1: The limit of 1 completions in a turn is reached.";
    assert_eq!(
        results(&sim),
        [format!("Milk, mostly., stopSequence, sim-1\n{limited}")]
    );
}

/// MCP-5: the cost of completions counts for the limit of a run.
#[test]
fn completions_count_for_the_cost_limit() {
    let (sim, workspace) = session("sampling = true", 1);
    let output = answer(&workspace, "exec --max-cost 0.01 go", &["send"]);
    assert!(output.stdout.contains("the cost limit is reached"), "{output}");
    assert_eq!(sim.requests().len(), 2);
}
