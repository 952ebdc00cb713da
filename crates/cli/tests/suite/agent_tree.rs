//! Deeper trees of sub-agents, messages at the wrong moment, and children that do not listen.

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply, When};

use super::agents::{STREAM, child, ledger, results, with};

/// EVT-4, SUB-3: with a greater depth a child starts children of its own; their events reach the session at the top with
/// their own number, name and depth, their cost is part of every session above, and a leaf has no agents.
#[test]
fn children_have_children() {
    let tokens = |reply: Reply| reply.tokens(90, 10).cached_tokens(0, 0);
    let replies = vec![
        tokens(child(
            "look closely;",
            Reply::call("glob", json!({"pattern": "*"})),
        )),
        tokens(child("look closely;", Reply::text("leaf result"))),
        tokens(child(
            "lead the work;",
            Reply::call("agent", json!({"task": "look closely;", "name": "leaf"})),
        )),
        tokens(child("lead the work;", Reply::text("middle: {{last_result}}"))),
        tokens(Reply::call(
            "agent",
            json!({"task": "lead the work;", "name": "middle", "type": "coder", "isolation": "none"}),
        )),
        tokens(Reply::text("top: {{last_result}}")),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let depth = ["-c", "agents.max_spawn_depth=2", "go"];
    let output = workspace.run(&STREAM).args(&depth).output();
    output.assert_code(0);
    sim.assert_valid();
    let answer = output.events_of("final")[0]["content"].to_string();
    assert!(answer.contains("top: middle: leaf result"), "{answer}");
    let nested = output.events_of("subagent");
    let finals: Vec<(&Value, &Value, &Value)> = nested
        .iter()
        .filter(|event| event["event"]["type"] == "final")
        .map(|event| (&event["number"], &event["name"], &event["depth"]))
        .collect();
    let expected = [
        (&json!(2), &json!("leaf"), &json!(2)),
        (&json!(1), &json!("middle"), &json!(1)),
    ];
    assert_eq!(finals, expected, "{output}");
    assert!(
        nested.iter().all(|event| event["event"]["type"] != "subagent"),
        "an event is nested once: {output}"
    );
    let rows = ledger(&workspace);
    let tree: Vec<(&Value, &Value, &Value)> = rows
        .iter()
        .map(|row| (&row["number"], &row["depth"], &row["delivered"]))
        .collect();
    let (yes, one, two) = (json!(true), json!(1), json!(2));
    assert_eq!(tree, [(&one, &one, &yes), (&two, &two, &yes)], "{rows:?}");
    let total = |id: &Value| {
        let export = ["sessions", "export", id.as_str().unwrap(), "--format", "json"];
        workspace.run(&export).output().json()["session"]["totals"]["prompt_tokens"].clone()
    };
    let totals = [&rows[0]["parent"], &rows[0]["session"], &rows[1]["session"]].map(total);
    assert_eq!(totals, [json!(540), json!(360), json!(180)]);
    let leaf = sim.requests().into_iter().find(|request| {
        let text = String::from_utf8_lossy(&request.raw).into_owned();
        text.contains("look closely;") && !text.contains("lead the work;")
    });
    let text = String::from_utf8_lossy(&leaf.unwrap().raw).into_owned();
    assert!(!text.contains("agent_wait"), "{text}");
}

/// SUB-7: a message that comes too late for a child's last step starts another turn of the same run, and both answers
/// are delivered.
#[test]
fn a_late_message_is_answered() {
    let slow = |reply: Reply| reply.fault(Fault::new().delay_ms(1_500));
    let replies = vec![
        child("and also this", slow(Reply::text("second answer"))),
        child("first thing", slow(Reply::text("first answer"))),
        Reply::call("agent", json!({"task": "first thing", "background": true})),
        Reply::call("agent_send", json!({"agent": "1", "message": "and also this"})),
        Reply::call("agent_wait", json!({})),
        Reply::text("end"),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    sim.assert_valid();
    let results = results(&output);
    assert!(results[1].starts_with("Sent."), "{output}");
    assert!(
        results[2].starts_with("first answer\n\nsecond answer\n[agent 1 task: done, 2 turns"),
        "{}",
        results[2]
    );
    let rows = ledger(&workspace);
    assert_eq!(
        (&rows[0]["state"], &rows[0]["delivered"]),
        (&json!("done"), &json!(true))
    );
    let record = workspace
        .run(&[
            "sessions",
            "export",
            rows[0]["session"].as_str().unwrap(),
            "--format",
            "json",
        ])
        .output()
        .json();
    let entries = record["entries"].as_array().unwrap();
    let of = |kind: &str| entries.iter().filter(|entry| entry["type"] == kind).count();
    assert_eq!((of("final"), of("agent_ended")), (2, 1));
}

/// SUB-2, SUB-7: a child whose command ignores signals still ends at its deadline, with a typed outcome, and leaves no
/// process behind.
#[test]
fn a_deaf_child_ends_at_its_deadline() {
    let deaf = json!({"command": "trap '' TERM INT HUP; echo $$ > deaf.pid; while :; do sleep 0.2; done"});
    let replies = vec![
        child("never stop", Reply::call("bash", deaf).say("I begin")),
        Reply::call(
            "agent",
            json!({"task": "never stop", "type": "coder", "isolation": "none", "deadline": 2}),
        ),
        Reply::text("end").when(When::new().last_result_contains("timed out")),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    let began = std::time::Instant::now();
    let output = workspace.run(&STREAM).args(&["--mode", "auto", "go"]).output();
    output.assert_code(0);
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    let results = results(&output);
    assert!(
        results[0].contains("timed out (after 2 s)") && results[0].contains("I begin"),
        "{}",
        results[0]
    );
    assert_eq!(ledger(&workspace)[0]["state"], "timed_out");
    assert!(workspace.has("deaf.pid"), "{output}");
    let marker = workspace.path().display().to_string();
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let command = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        command.contains("deaf.pid")
            && std::fs::read_link(process.path().join("cwd"))
                .is_ok_and(|cwd| cwd.display().to_string() == marker)
    });
    assert_eq!(left.count(), 0);
}

/// GOAL-7: the report of a child carries claims; a false one is shown next to its answer, the model above and the user
/// see it, and `windlass verify` of the session above runs them again.
#[test]
fn reports_carry_claims() {
    let done = json!({ "message": "All good.", "claims": [
        { "text": "a.txt is there", "command": "test -e a.txt" },
        { "text": "b.txt is not", "command": "test -e b.txt", "exit_code": 1 },
    ]});
    let replies = vec![
        child(
            "check the files",
            Reply::call("bash", json!({"command": "test -e a.txt"})),
        ),
        child(
            "check the files",
            Reply::call("bash", json!({"command": "test -e b.txt"})),
        ),
        child("check the files", Reply::call("done", done)),
        Reply::call(
            "agent",
            json!({"task": "check the files", "type": "coder", "isolation": "none"}),
        ),
        Reply::text("end"),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let output = workspace.run(&["exec", "--mode", "auto", "go"]).output();
    output
        .assert_code(0)
        .assert_says("agent 1 coder: False claim: a.txt is there (`test -e a.txt` had exit code 1)");
    let last = String::from_utf8_lossy(&sim.requests().pop().unwrap().raw).into_owned();
    assert!(
        last.contains("All good.") && last.contains("[False claim: a.txt is there"),
        "{last}"
    );
    assert!(last.contains("[Verified: b.txt is not"), "{last}");
    let claims = ledger(&workspace)[0]["claims"].clone();
    assert_eq!(
        (
            &claims[0]["status"],
            &claims[0]["exit_code"],
            &claims[1]["status"]
        ),
        (&json!("false"), &json!(1), &json!("verified")),
        "{claims}"
    );
    assert!(
        claims[0]["output"].is_string() && claims[0]["tree"].is_string(),
        "{claims}"
    );
    let verified = workspace.run(&["verify"]).output();
    verified.assert_code(15);
    assert!(
        verified
            .stdout
            .contains("FALSE     agent 1 coder: a.txt is there"),
        "{verified}"
    );
    workspace.write("a.txt", "x");
    let verified = workspace.run(&["verify"]).output();
    assert!(
        verified
            .assert_code(0)
            .stdout
            .contains("verified  agent 1 coder: a.txt is there"),
        "{verified}"
    );
}

/// GOAL-7, SUB-6: claims of a child with its own copy are verified in that copy.
#[test]
fn claims_hold_in_the_copy() {
    let done = json!({ "message": "Made.", "claims": [
        { "text": "it is there", "command": "test -e made.txt" },
    ]});
    let replies = vec![
        child(
            "make it",
            Reply::call("bash", json!({"command": "echo x > made.txt"})),
        ),
        child(
            "make it",
            Reply::call("bash", json!({"command": "test -e made.txt"})),
        ),
        child("make it", Reply::call("done", done)),
        Reply::call("agent", json!({"task": "make it", "type": "coder"})),
        Reply::text("end"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.write("notes.txt", "one\n");
    workspace
        .run(&["exec", "--mode", "auto", "go"])
        .output()
        .assert_code(0);
    let verified = workspace.run(&["verify"]).output();
    let text = &verified.assert_code(0).stdout;
    assert!(
        text.contains("In the copy of agent 1 coder:") && text.contains("verified  it is there"),
        "{verified}"
    );
}

/// SUB-1: the effort of a type is requested from the provider, for the child only; a wrong word is reported with file,
/// line and key, and so is a wrong key.
#[test]
fn a_type_has_its_effort() {
    let replies = vec![
        child("think hard", Reply::text("thought")),
        Reply::call("agent", json!({"task": "think hard", "type": "thinker"})),
        Reply::text("end"),
    ];
    let (sim, workspace) = with(Protocol::Chat, replies, "");
    let types = workspace.user_home().join(".claude/agents");
    std::fs::create_dir_all(&types).unwrap();
    let write = |name: &str, head: &str| {
        let text = format!("---\nname: {name}\n{head}\n---\nThink.");
        std::fs::write(types.join(format!("{name}.md")), text).unwrap();
    };
    write("thinker", "effort: xhigh");
    write("vague", "effort: some");
    write("typo", "efort: high");
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let efforts: Vec<Value> = sim
        .requests()
        .iter()
        .map(|request| serde_json::from_slice::<Value>(&request.raw).unwrap()["reasoning_effort"].clone())
        .collect();
    assert_eq!(efforts, [Value::Null, json!("high"), Value::Null]);
    let listed = workspace.run(&["--plain"]).stdin("/agents types\n").output();
    let text = format!("{}{}", listed.stdout, listed.stderr);
    assert!(
        text.contains("vague.md:3: `effort` is `some`, expected one of off, low, medium, high"),
        "{text}"
    );
    assert!(
        text.contains("typo.md:3: unknown key `efort`; did you mean `effort`?"),
        "{text}"
    );
}
