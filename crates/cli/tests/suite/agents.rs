//! Sub-agents through the binary: tool calls in, ledger, events and answers out.

use serde_json::{Value, json};
use windlass_sim::{Fault, Protocol, Reply, Script, When};
use windlass_testkit::{Output, SimServer, WIRES, Workspace, eventually};

use super::support::{check_events, is_live, workspace};

pub(crate) const STREAM: [&str; 3] = ["exec", "-o", "stream-json"];

/// A reply to a sub-agent with this task.
pub(crate) fn child(task: &str, reply: Reply) -> Reply {
    reply.when(
        When::new()
            .user_contains(task)
            .system_contains("started for one task"),
    )
}

pub(crate) fn with(wire: Protocol, replies: Vec<Reply>, more: &str) -> (SimServer, Workspace) {
    let sim = SimServer::script(replies.into_iter().fold(Script::new(), Script::reply));
    let workspace = workspace();
    workspace.use_sim_with(&sim, wire, more);
    (sim, workspace)
}

pub(crate) fn ledger(workspace: &Workspace) -> Vec<Value> {
    let listed = workspace.run(&["agents", "--json"]).output();
    listed.assert_code(0);
    listed.json().as_array().cloned().unwrap_or_default()
}

pub(crate) fn results(output: &Output) -> Vec<String> {
    let events = output.events_of("tool_result");
    events
        .iter()
        .map(|event| event["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// SUB-2, SUB-4, SES-8, EVT-4: a child answers, the parent uses the answer, the ledger has the row, the cost of the
/// child is part of the session's, and the child's events are nested in the parent's.
#[test]
fn a_child_answers() {
    for wire in WIRES {
        let replies = vec![
            child(
                "find the answer",
                Reply::call("list_directory", json!({"path": "."}))
                    .tokens(100, 10)
                    .cached_tokens(0, 0),
            ),
            child(
                "find the answer",
                Reply::text("it is 42").tokens(100, 10).cached_tokens(0, 0),
            ),
            Reply::call(
                "agent",
                json!({"task": "find the answer", "type": "explorer", "name": "finder"}),
            )
            .tokens(50, 5)
            .cached_tokens(0, 0),
            Reply::text("The child says: {{last_result}}")
                .tokens(50, 5)
                .cached_tokens(0, 0),
        ];
        let (sim, workspace) = with(wire, replies, "");
        let output = workspace.run(&STREAM).arg("go").output();
        output.assert_code(0);
        check_events(&output);
        sim.assert_valid();
        let answer = output.events_of("final")[0]["content"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(answer.contains("it is 42"), "{wire}: {answer}");
        let rows = ledger(&workspace);
        assert_eq!(rows.len(), 1, "{wire}: {rows:?}");
        let row = &rows[0];
        assert_eq!(
            (
                &row["state"],
                &row["name"],
                &row["type"],
                &row["delivered"],
                &row["depth"],
                &row["number"]
            ),
            (
                &json!("done"),
                &json!("finder"),
                &json!("explorer"),
                &json!(true),
                &json!(1),
                &json!(1)
            ),
            "{wire}"
        );
        assert_eq!(
            (&row["spent"]["tokens"], &row["spent"]["turns"]),
            (&json!(220), &json!(2))
        );
        let nested = output.events_of("subagent");
        let kinds: Vec<&str> = nested
            .iter()
            .filter_map(|event| event["event"]["type"].as_str())
            .collect();
        assert!(
            kinds.contains(&"step_start") && kinds.contains(&"final"),
            "{wire}: {kinds:?}"
        );
        assert!(
            nested
                .iter()
                .all(|event| is_live(event) && event["name"] == "finder")
        );
        let sessions = workspace
            .run(&["sessions", "list", "--all", "--json"])
            .output()
            .json();
        let totals = &sessions[0]["totals"];
        assert_eq!(
            (&totals["prompt_tokens"], &totals["completion_tokens"]),
            (&json!(300), &json!(30)),
            "{wire}"
        );
    }
}

/// SUB-2: the child has a minimal prompt with AGENTS.md and TOOLS.md, read-only tools, and no agents of its own.
#[test]
fn a_child_sees_little() {
    let replies = vec![
        child("look", Reply::text("seen")),
        Reply::call("agent", json!({"task": "look"})),
        Reply::text("fine"),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.write("AGENTS.md", "rule of the project");
    workspace.write("TOOLS.md", "notes about tools");
    workspace.write("CLAUDE.md", "for somebody else");
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let requests = sim.requests();
    let own = requests
        .iter()
        .find(|request| String::from_utf8_lossy(&request.raw).contains("started for one task"));
    let text = String::from_utf8_lossy(&own.unwrap().raw).into_owned();
    let body: Value = serde_json::from_str(&text).unwrap();
    let tools: Vec<&str> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        tools,
        [
            "tool_output",
            "read_file",
            "list_directory",
            "glob",
            "grep",
            "recall"
        ]
    );
    assert!(
        text.contains("rule of the project") && text.contains("notes about tools"),
        "{text}"
    );
    assert!(
        !text.contains("for somebody else") && !text.contains("keep a list with the todo tool"),
        "{text}"
    );
}

/// SUB-2: several calls in one reply run in parallel, and their results are in the order of the calls.
#[test]
fn children_run_in_parallel() {
    let slow = |task: &str, text: &str| child(task, Reply::text(text).fault(Fault::new().delay_ms(900)));
    let replies = vec![
        slow("first thing", "one"),
        slow("second thing", "two"),
        slow("third thing", "three"),
        Reply::call("agent", json!({"task": "first thing"}))
            .and_call("agent", json!({"task": "second thing"}))
            .and_call("agent", json!({"task": "third thing"})),
        Reply::text("all"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    let began = std::time::Instant::now();
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    assert!(began.elapsed().as_millis() < 2_400, "{:?}", began.elapsed());
    let results = results(&output);
    let starts: Vec<&str> = results
        .iter()
        .filter_map(|text| text.split_whitespace().next())
        .collect();
    assert_eq!(starts, ["one", "two", "three"]);
    assert!(ledger(&workspace).iter().all(|row| row["delivered"] == true));
}

/// SUB-7: a child in the background reports between two iterations, exactly once, and the parent can wait for it.
#[test]
fn a_background_child_is_delivered() {
    let replies = vec![
        child(
            "slow work",
            Reply::text("finished at last").fault(Fault::new().delay_ms(300)),
        ),
        child(
            "other work",
            Reply::text("also finished").fault(Fault::new().delay_ms(300)),
        ),
        Reply::call(
            "agent",
            json!({"task": "slow work", "background": true, "name": "slow"}),
        ),
        Reply::call(
            "agent",
            json!({"task": "other work", "background": true, "name": "other"}),
        ),
        Reply::call("bash", json!({"command": "sleep 2"})),
        Reply::text("read them").when(When::new().user_contains("finished at last")),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    assert_eq!(output.events_of("final")[0]["content"], "read them", "{output}");
    let last = sim.requests().pop().unwrap();
    let text = String::from_utf8_lossy(&last.raw).into_owned();
    assert_eq!(
        (
            text.matches("finished at last").count(),
            text.matches("also finished").count()
        ),
        (1, 1)
    );
    let delivered = output.events_of("agent_delivered");
    assert_eq!(delivered.len(), 1, "all that are ready come together: {output}");
    assert!(
        ledger(&workspace)
            .iter()
            .all(|row| row["delivered"] == true && row["state"] == "done")
    );
}

/// SUB-7: `agent_wait` returns the result of a background child, which is then not delivered again; `agent_list`,
/// `agent_send` and `agent_stop` name a child by number or name.
#[test]
fn children_are_directed() {
    let replies = vec![
        child(
            "count slowly",
            Reply::text("counted").fault(Fault::new().delay_ms(200)),
        ),
        child(
            "count again",
            Reply::text("counted again").fault(Fault::new().delay_ms(400)),
        ),
        child(
            "never ends",
            Reply::text("x").fault(Fault::new().delay_ms(60_000)),
        ),
        Reply::call(
            "agent",
            json!({"task": "count slowly", "background": true, "name": "counter"}),
        ),
        Reply::call("agent_wait", json!({"agents": ["counter"]})),
        Reply::call("agent_send", json!({"agent": "1", "message": "count again"})),
        Reply::call("agent_wait", json!({})),
        Reply::call("agent", json!({"task": "never ends", "background": true})),
        Reply::call("agent_stop", json!({"agent": "2"})),
        Reply::call("agent_wait", json!({"agents": ["2"]})),
        Reply::call("agent_list", json!({})),
        Reply::call("agent_stop", json!({"agent": "7"})),
        Reply::text("over"),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    sim.assert_valid();
    let results = results(&output);
    assert!(
        results[0].contains("Started agent 1 counter in the background"),
        "{output}"
    );
    assert!(results[1].starts_with("counted\n"), "{}", results[1]);
    assert!(
        results[2].contains("continues in the background"),
        "{}",
        results[2]
    );
    assert!(results[3].starts_with("counted again"), "{}", results[3]);
    assert!(results[5].contains("is being stopped"), "{}", results[5]);
    // The end of a stopped child may come by itself first.
    let is_told = results[6].contains("canceled") || results[6].contains("was delivered before");
    assert!(is_told, "{}", results[6]);
    assert!(
        results[7].contains("1 counter (task): done") && results[7].contains("2 task: canceled"),
        "{}",
        results[7]
    );
    assert!(
        results[8].contains("there is no agent `7`") && results[8].contains("1 counter, 2 task"),
        "{}",
        results[8]
    );
    let last = String::from_utf8_lossy(&sim.requests().pop().unwrap().raw).into_owned();
    assert_eq!(last.matches("counted again\\n").count(), 1, "{last}");
}

/// SUB-3, SUB-5, LOOP-17: every limit refuses a further child with its numbers; the answer of a spawn says what is
/// left.
#[test]
fn limits_refuse_with_numbers() {
    let spawn = || Reply::call("agent", json!({"task": "small work"}));
    let done = || child("small work", Reply::text("ok").tokens(40, 10).cached_tokens(0, 0)).forever();
    let cases = [
        ("agents.max_agents=1", "agents.max_agents is 1"),
        ("agents.max_tokens=50", "tokens asked for"),
        ("agents.max_turns=1", "turns asked for"),
    ];
    for (setting, why) in cases {
        let (_sim, workspace) = with(
            Protocol::Anthropic,
            vec![done(), spawn(), spawn(), Reply::text("end")],
            "",
        );
        let output = workspace
            .run(&STREAM)
            .args(&["go", "-c", setting, "-c", "agents.max_children=1"])
            .output();
        output.assert_code(0);
        let results = results(&output);
        assert!(
            results[0].contains("ok") && results[0].contains("[left: "),
            "{setting}: {}",
            results[0]
        );
        assert!(results[1].contains(why), "{setting}: {}", results[1]);
        assert_eq!(ledger(&workspace).len(), 1, "{setting}");
    }
    let slow = || child("small work", Reply::text("ok").fault(Fault::new().delay_ms(800))).forever();
    let both =
        Reply::call("agent", json!({"task": "small work"})).and_call("agent", json!({"task": "small work"}));
    for (setting, why) in [
        ("agents.max_children=1", "agents.max_children is 1"),
        ("agents.max_concurrent=1", "agents.max_concurrent is 1"),
    ] {
        let (_sim, workspace) = with(
            Protocol::Anthropic,
            vec![slow(), both.clone(), Reply::text("end")],
            "",
        );
        let output = workspace.run(&STREAM).args(&["go", "-c", setting]).output();
        let results = results(&output).concat();
        assert!(results.contains(why), "{setting}: {results}");
    }
    let (_sim, workspace) = with(Protocol::Anthropic, vec![Reply::text("no agents here")], "");
    let output = workspace
        .run(&["exec", "go", "-c", "agents.max_spawn_depth=0"])
        .output();
    output.assert_code(0);
}

/// SUB-2, SUB-7, LOOP-9: a deadline and the limit of 20 iterations give typed outcomes with the text so far, never
/// success.
#[test]
fn limits_are_no_success() {
    let replies = vec![
        child(
            "too slow",
            Reply::call("list_directory", json!({"path": "."})).say("I begin"),
        ),
        child(
            "too slow",
            Reply::text("never").fault(Fault::new().delay_ms(60_000)),
        ),
        child(
            "endless",
            Reply::call("glob", json!({"pattern": "*"})).when(When::new().no_tools(false)),
        )
        .forever(),
        Reply::text("where I stand").when(When::new().no_tools(true)),
        Reply::call("agent", json!({"task": "too slow", "deadline": 1})),
        Reply::call("agent", json!({"task": "endless", "budget": {"turns": 2}})),
        Reply::text("end"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    let output = workspace.run(&STREAM).arg("go").output();
    output.assert_code(0);
    let results = results(&output);
    assert!(
        results[0].contains("timed out") && results[0].contains("I begin"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("failed (max_turns)"), "{}", results[1]);
    let states: Vec<Value> = ledger(&workspace)
        .iter()
        .map(|row| row["state"].clone())
        .collect();
    assert_eq!(states, ["timed_out", "failed"]);
}

/// LOOP-9: a child without another limit has 20 iterations.
#[test]
fn a_child_has_twenty_iterations() {
    let replies = vec![
        child(
            "endless",
            Reply::call("bash_nothing", json!({"n": "{{result:0}}"})),
        )
        .forever(),
        Reply::call("agent", json!({"task": "endless"})),
        Reply::text("end"),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.run(&["exec", "go"]).output();
    let rows = ledger(&workspace);
    assert!(
        rows[0]["spent"]["turns"].as_u64().unwrap() <= 21,
        "{rows:?} after {} requests",
        sim.count()
    );
    assert_eq!(rows[0]["state"], "failed");
}

/// SUB-3, SAFE-9: a child is never less confined: a type that asks for more gets the parent's mode.
#[test]
fn a_child_is_not_freer() {
    let replies = vec![
        child(
            "write it",
            Reply::call("write_file", json!({"path": "made.txt", "content": "x"})),
        ),
        child("write it", Reply::text("tried")),
        Reply::call(
            "agent",
            json!({"task": "write it", "type": "free", "isolation": "none"}),
        ),
        Reply::text("end"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    let types = workspace.home().join("config/agents");
    std::fs::create_dir_all(&types).unwrap();
    std::fs::write(
        types.join("free.md"),
        "---\ntools: '*'\npermission_mode: full\n---\nDo it.",
    )
    .unwrap();
    workspace.run(&["exec", "go", "--mode", "plan"]).output();
    assert!(!workspace.has("made.txt"));
    let (_sim, workspace) = {
        let replies = vec![
            child(
                "write it",
                Reply::call("write_file", json!({"path": "made.txt", "content": "x"})),
            ),
            child("write it", Reply::text("done")),
            Reply::call(
                "agent",
                json!({"task": "write it", "type": "coder", "isolation": "none"}),
            ),
            Reply::text("end"),
        ];
        with(Protocol::Anthropic, replies, "")
    };
    workspace.run(&["exec", "go"]).output().assert_code(0);
    assert_eq!(workspace.read("made.txt"), "x", "the guard is what stopped it");
}

/// SES-9: the key of a child contains its depth and the session above it.
#[test]
fn keys_name_the_parent() {
    let replies = vec![
        child("look", Reply::text("seen")),
        Reply::call("agent", json!({"task": "look"})),
        Reply::text("fine"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    workspace.run(&["exec", "go"]).output().assert_code(0);
    let row = &ledger(&workspace)[0];
    let (session, parent) = (row["session"].as_str().unwrap(), row["parent"].as_str().unwrap());
    let shown = workspace
        .run(&["sessions", "export", session, "--format", "json"])
        .output()
        .json();
    assert_eq!(
        shown["session"]["label"]["key"],
        format!("agent:{session}:sub:1:{parent}")
    );
}

/// CMD-1, SUB-8: `/agents` lists, shows, resumes and refuses; `windlass agents` prints the same.
#[test]
fn people_see_the_fleet() {
    let replies = vec![
        child("look around", Reply::text("seen it all")),
        child("look again", Reply::text("seen more")),
        Reply::call("agent", json!({"task": "look around", "name": "scout"})),
        Reply::text("fine"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    let said = workspace
        .run(&["--plain"])
        .stdin("go\n/agents\n/agents types\n/agents show scout\n/agents stop 1\n/agents merge 1\n/agents frob\n/agents resume 1 look again\n")
        .output();
    let text = format!("{}{}", said.stdout, said.stderr);
    for part in [
        "1 scout (task): done, 1 turn",
        "1 agent, 0 running",
        "explorer: finds things in files",
        "result: seen it all",
        "agent 1 scout does not run here: it is done",
        "agent 1 scout has no copy of the files",
        "write it as /agents",
        "Agent 1 scout continues in the background.",
        "agent 1 scout: answered",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let listed = workspace.run(&["agents"]).output();
    listed.assert_code(0);
    assert!(listed.stdout.contains("1 scout (task)"), "{listed}");
    let empty = super::support::workspace().run(&["agents"]).output();
    empty.assert_code(0);
    assert!(empty.stdout.contains("There are no agents yet."), "{empty}");
}

/// SUB-7: a wrong key in a type file is reported with file and line, and files of other agents are read.
#[test]
fn types_come_from_files() {
    let replies = vec![
        child("check it", Reply::text("checked")).when(When::new().system_contains("Be picky.")),
        Reply::call("agent", json!({"task": "check it", "type": "picky"})),
        Reply::call("agent", json!({"task": "check it", "type": "nobody"})),
        Reply::text("fine"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    let types = workspace.user_home().join(".claude/agents");
    std::fs::create_dir_all(&types).unwrap();
    std::fs::write(
        types.join("picky.md"),
        "---\nname: picky\ndescription: Checks\ntolls: Read\n---\nBe picky.",
    )
    .unwrap();
    let output = workspace.run(&STREAM).arg("go").output();
    let results = results(&output);
    assert!(results[0].starts_with("checked"), "{output}");
    assert!(
        results[1].contains("there is no type `nobody`") && results[1].contains("picky, task"),
        "{}",
        results[1]
    );
    let listed = workspace.run(&["--plain"]).stdin("/agents types\n").output();
    let text = format!("{}{}", listed.stdout, listed.stderr);
    assert!(
        text.contains("picky.md:4: unknown key `tolls`; did you mean `tools`?"),
        "{text}"
    );
}

/// SUB-2, SUB-3: a child's approval request appears in the session above and names the child; the answer concerns that
/// child.
#[test]
fn a_child_asks_through_its_parent() {
    let replies = vec![
        child(
            "write it",
            Reply::call("write_file", json!({"path": "made.txt", "content": "x"})),
        ),
        child("write it", Reply::text("written")),
        Reply::call(
            "agent",
            json!({"task": "write it", "type": "coder", "isolation": "none", "name": "smith"}),
        ),
        Reply::text("all is well"),
    ];
    let (_sim, workspace) = with(Protocol::Anthropic, replies, "");
    let mut screen = workspace.run(&["--mode", "ask"]).on_screen(100, 30);
    screen.wait_for(super::tui::EMPTY);
    super::tui::say(&mut screen, "go");
    screen.wait_for("Agent 1 smith asks");
    let is_asked = |shown: &str| shown.contains("y  Yes, once");
    super::tui::press_until(&mut screen, "y", |shown| !is_asked(shown));
    screen.wait_for("all is well");
    super::tui::leave(&mut screen);
    assert_eq!(workspace.read("made.txt"), "x");
}

/// OBS-3: `/why` looks through the child that a turn waits for, down to its provider.
#[test]
fn why_looks_through_children() {
    let replies = vec![
        child(
            "think",
            Reply::text("thought").fault(Fault::new().delay_ms(6_000)),
        ),
        Reply::call("agent", json!({"task": "think", "name": "sage"})),
        Reply::text("all is well"),
    ];
    let (sim, workspace) = with(Protocol::Anthropic, replies, "");
    let mut screen = workspace.run(&[]).on_screen(140, 30);
    screen.wait_for(super::tui::EMPTY);
    super::tui::say(&mut screen, "go");
    assert!(eventually(std::time::Duration::from_secs(10), || sim.count() >= 2));
    super::tui::say(&mut screen, "/why");
    screen.wait_for("waiting for child: agent 1 sage: think");
    screen.wait_for("waiting for provider");
    screen.wait_for("all is well");
    super::tui::leave(&mut screen);
}
