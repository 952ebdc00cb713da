//! `windlass sessions`: finding, reading, renaming and deleting past sessions.

use serde_json::{Value, json};
use windlass_sim::{Protocol, Reply};
use windlass_testkit::{Output, Workspace};

use super::support::{with_replies, workspace};

fn ids(workspace: &Workspace) -> Vec<String> {
    let listed = workspace
        .run(&["sessions", "list", "--all", "-n", "0", "--json"])
        .output();
    let list = listed.assert_code(0).json();
    let ids = list.as_array().unwrap().iter();
    ids.map(|info| info["id"].as_str().unwrap().to_owned()).collect()
}

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// SES-10: sessions are listed newest first, for this folder or with `--all` for all; an empty list is
/// reported.
#[test]
fn sessions_are_listed() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one").forever()]);
    let empty = run(&workspace, &["sessions", "list"]);
    assert!(
        empty.assert_code(0).stdout.starts_with("No sessions in "),
        "{empty}"
    );
    assert_eq!(run(&workspace, &["sessions", "list", "--json"]).json(), json!([]));
    for prompt in ["first thing", "second \u{1b}[31mthing"] {
        run(&workspace, &["exec", prompt]).assert_code(0);
    }
    std::fs::create_dir(workspace.path().join("sub")).unwrap();
    run(&workspace, &["exec", "-C", "sub", "third thing"]).assert_code(0);
    let here = run(&workspace, &["sessions", "list"]);
    let lines: Vec<&str> = here.assert_code(0).stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{here}");
    assert!(
        lines[0].contains("second") && lines[1].contains("first thing"),
        "{here}"
    );
    assert!(
        lines[1].contains("2 messages") && lines[1].contains("answered"),
        "{here}"
    );
    assert!(!here.stdout.contains('\u{1b}'), "{here}");
    let there = run(&workspace, &["sessions", "list", "--place", "sub"]);
    assert!(there.stdout.contains("third thing") && there.stdout.lines().count() == 1);
    let all = run(&workspace, &["sessions", "list", "--all", "-n", "2"]);
    assert_eq!(all.stdout.lines().count(), 3, "{all}");
    assert!(
        all.stdout.contains("third thing") && all.stdout.contains("… and more"),
        "{all}"
    );
}

/// SES-10: a list counts one message as one, and lists without rows say that they have none.
#[test]
fn lists_are_in_plain_english() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one")]);
    run(&workspace, &["exec", "first thing"]).assert_code(0);
    run(&workspace, &["exec", "the script has no reply to this"]).assert_code(8);
    let listed = run(&workspace, &["sessions", "list"]);
    let lines: Vec<&str> = listed.assert_code(0).stdout.lines().collect();
    assert!(lines[0].contains("  1 message   "), "{listed}");
    assert!(lines[1].contains("  2 messages  "), "{listed}");
    for (command, said) in [
        (["mcp", "test"], "No MCP servers"),
        (["mcp", "list"], "No MCP servers"),
        (["token", "list"], "There are no tokens"),
        (["trust", "--list"], "No folder is trusted"),
        (["audit", "list"], "The audit log has no such rows"),
    ] {
        let shown = run(&workspace, &command);
        let all = format!("{}{}", shown.assert_code(0).stdout, shown.stderr);
        assert!(all.contains(said), "{command:?}: {shown}");
    }
    let help = run(&workspace, &["exec", "/help"]);
    assert!(!help.stdout.contains("\nYour own commands:"), "{help}");
}

/// SES-10: a session is found by its id, the start of its id, or its name; an unknown or ambiguous one is
/// reported with a list.
#[test]
fn sessions_are_called() {
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("one").forever()]);
    let none = run(&workspace, &["sessions", "show", "x"]);
    none.assert_code(2).assert_says("there is no session x");
    for prompt in ["first thing", "second thing"] {
        run(&workspace, &["exec", prompt]).assert_code(0);
    }
    let ids = ids(&workspace);
    run(&workspace, &["sessions", "rename", &ids[1], "my work"]).assert_code(0);
    for called in [&ids[1], "my work", ids[1].get(..30).unwrap()] {
        let shown = run(&workspace, &["sessions", "show", called]);
        assert!(
            shown.assert_code(0).stdout.contains("my work: first thing"),
            "{shown}"
        );
    }
    // Ids start with the time.
    let several = run(&workspace, &["sessions", "show", ids[0].get(..3).unwrap()]);
    several
        .assert_code(2)
        .assert_says("matches several")
        .assert_says(&ids[0]);
    several.assert_says(&ids[1]);
    run(&workspace, &["sessions", "show", "nothing"])
        .assert_code(2)
        .assert_says("first thing");
    run(&workspace, &["sessions", "show", ""]).assert_code(2);
    let taken = run(&workspace, &["sessions", "rename", &ids[0], "my work"]);
    taken.assert_code(2).assert_says("another session has this name");
    for bad in ["", "  ", "two\nlines"] {
        run(&workspace, &["sessions", "rename", &ids[0], bad]).assert_code(2);
    }
    let resumed = run(&workspace, &["exec", "--resume", "my work", "go on"]);
    resumed.assert_code(0).assert_says("resuming");
}

/// SES-10: details and state of a session.
#[test]
fn a_session_is_shown() {
    let long = "a long answer ".repeat(100);
    let (_sim, workspace) = with_replies(Protocol::Chat, [Reply::text(&long).tokens(100, 20)]);
    run(&workspace, &["exec", "what is this?"]).assert_code(0);
    let id = ids(&workspace).remove(0);
    let shown = run(&workspace, &["sessions", "show", &id]);
    let text = &shown.assert_code(0).stdout;
    for part in [
        &id,
        "sim-1 (test)",
        "answered",
        "100 in, 20 out",
        "Last user:\n  what is this?",
        "…",
    ] {
        assert!(text.contains(part), "{part}\n{shown}");
    }
    assert!(!text.contains("<environment>") && text.len() < 1500, "{shown}");
    let json = run(&workspace, &["sessions", "show", &id, "--json"]).json();
    assert_eq!(json["session"]["id"], id.as_str());
    assert_eq!(json["last_user_message"], "what is this?");
    assert_eq!(json["in_use_by"], Value::Null);
}

/// SES-14: words are found in all sessions, and the output cannot move the cursor.
#[test]
fn words_are_found() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [
            Reply::text("the \u{1b}[2J zebra runs"),
            Reply::text("nothing here"),
        ],
    );
    run(&workspace, &["exec", "first thing"]).assert_code(0);
    run(&workspace, &["exec", "second thing"]).assert_code(0);
    let found = run(&workspace, &["sessions", "search", "zebra", "run"]);
    assert!(found.assert_code(0).stdout.contains("[zebra]"), "{found}");
    assert!(found.stdout.contains("first thing") && !found.stdout.contains("second thing"));
    assert!(!found.stdout.contains('\u{1b}'), "{found}");
    let json = run(&workspace, &["sessions", "search", "thing", "--json", "-n", "1"]).json();
    assert_eq!(json.as_array().unwrap().len(), 1);
    let none = run(&workspace, &["sessions", "search", "unicorn"]);
    assert!(none.assert_code(0).stdout.contains("No matches for"), "{none}");
    run(&workspace, &["sessions", "search", "\"'*^("]).assert_code(0);
    run(&workspace, &["sessions", "search"]).assert_code(2);
}

/// SES-10: the export for reading: messages, calls and results, diffs as diffs, reasoning folded.
#[test]
fn a_session_is_exported_for_people() {
    let replies = [
        Reply::call("bash", json!({ "command": "seq 1 100; echo '```'" }))
            .and_call("write_file", json!({ "path": "a.txt", "content": "new\n" }))
            .thinking("first think")
            .say("I begin."),
        Reply::text("All done."),
    ];
    let (_sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "old\n");
    run(&workspace, &["exec", "do it"]);
    let id = ids(&workspace).remove(0);
    let exported = run(&workspace, &["sessions", "export", &id]);
    let text = &exported.assert_code(0).stdout;
    for part in [
        "# do it\n",
        "## User\n",
        "<summary>Environment</summary>",
        "<summary>Reasoning</summary>\n\nfirst think\n\n</details>",
        "I begin.",
        "**bash**\n\n````sh\nseq 1 100; echo '```'\n````\n",
        "more characters",
        "All done.",
    ] {
        assert!(text.contains(part), "{part}\n{exported}");
    }
    run(&workspace, &["sessions", "export", &id, "-o", "s.md"]).assert_code(0);
    assert_eq!(workspace.read("s.md"), *text);
    let again = run(&workspace, &["sessions", "export", &id, "-o", "s.md"]);
    again.assert_code(2).assert_says("--force");
    workspace.write("s.md", "other");
    run(&workspace, &["sessions", "export", &id, "-o", "s.md", "--force"]).assert_code(0);
    assert_eq!(workspace.read("s.md"), *text);
}

/// EVT-4, SES-10: the export for programs has every event of the log, in its published format.
#[test]
fn a_session_is_exported_for_programs() {
    let replies = [
        Reply::call("bash", json!({ "command": "true" })),
        Reply::text("All done."),
    ];
    let (_sim, workspace) = with_replies(Protocol::Responses, replies);
    let told = run(&workspace, &["exec", "-o", "stream-json", "do it"]);
    let id = ids(&workspace).remove(0);
    let record = run(&workspace, &["sessions", "export", &id, "--format", "json"]).json();
    let stored: Vec<Value> = record["entries"].as_array().unwrap().clone();
    let told: Vec<Value> = told
        .events()
        .into_iter()
        .filter(|event| !super::support::is_live(event))
        .collect();
    assert_eq!(stored.len(), told.len());
    for (stored, mut told) in stored.into_iter().zip(told) {
        let mut stored = stored;
        for key in ["v", "session"] {
            told.as_object_mut().unwrap().remove(key);
        }
        stored.as_object_mut().unwrap().remove("time");
        assert_eq!(stored, told);
    }
}

/// SES-10: deleting asks, or needs `--yes`; all named sessions are deleted, or none; their cost stays
/// recorded.
#[test]
fn sessions_are_deleted() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [Reply::text("one").tokens(100, 10).forever()],
    );
    for prompt in ["first thing", "second thing", "third thing"] {
        run(&workspace, &["exec", prompt]).assert_code(0);
    }
    let all = ids(&workspace);
    run(&workspace, &["sessions", "delete", &all[0]])
        .assert_code(5)
        .assert_says("--yes");
    run(&workspace, &["sessions", "delete", "--yes", &all[0], "nothing"]).assert_code(2);
    assert_eq!(ids(&workspace).len(), 3);
    let no = workspace
        .run_on_terminal(&format!("sessions delete {}", all[0]))
        .stdin("n\n")
        .output();
    assert!(no.stdout.contains("Delete this session permanently?"), "{no}");
    assert_eq!(ids(&workspace).len(), 3, "{no}");
    let gone = run(
        &workspace,
        &["sessions", "delete", "--yes", &all[0], &all[1], &all[0]],
    );
    assert!(gone.assert_code(0).stdout.contains("third thing"), "{gone}");
    assert_eq!(gone.stdout.lines().count(), 2);
    assert_eq!(ids(&workspace), [all[2].clone()]);
    let found = run(&workspace, &["sessions", "search", "third"]);
    assert!(found.stdout.contains("No matches for"), "{found}");
    let cost = run(&workspace, &["sessions", "cost", "--by", "session"]);
    assert!(cost.assert_code(0).stdout.contains("(deleted)"), "{cost}");
}

/// SES-8, PROV-10: a price that is not known is shown as `?` and never as a number; next to known ones the sum has a `+`.
#[test]
fn an_unknown_price_is_no_number() {
    let reply = Reply::text("one").tokens(1000, 100).cached_tokens(0, 0);
    let (sim, workspace) = with_replies(Protocol::Chat, [reply.forever()]);
    run(&workspace, &["exec", "-m", "unheard-of", "first thing"]).assert_code(0);
    for args in [
        &["sessions", "list"][..],
        &["sessions", "cost"],
        &["sessions", "show", &ids(&workspace)[0]],
        &["exec", "--continue", "/status"],
        &["exec", "--continue", "/cost"],
    ] {
        let shown = run(&workspace, args);
        assert!(
            shown.assert_code(0).stdout.contains('?') && !shown.stdout.contains("$0"),
            "{args:?}: {shown}"
        );
    }
    workspace.use_sim_with(
        &sim,
        Protocol::Chat,
        "\n[models.sim-1]\nprice = { input = 3.0, output = 15.0 }\n",
    );
    run(&workspace, &["exec", "-m", "sim-1", "second thing"]).assert_code(0);
    let cost = run(&workspace, &["sessions", "cost"]);
    assert!(cost.stdout.contains("$0.0045+"), "{cost}");
}

/// SES-8: spending by model, session, cause and day, for one session or all, with a total.
#[test]
fn costs_are_reported() {
    let workspace_without = workspace();
    let nothing = run(&workspace_without, &["sessions", "cost"]);
    assert!(
        nothing.assert_code(0).stdout.contains("Nothing spent"),
        "{nothing}"
    );
    let reply = Reply::text("one").tokens(1000, 100).cached_tokens(0, 0);
    let (sim, workspace) = with_replies(Protocol::Anthropic, [reply.forever()]);
    workspace.use_sim_with(
        &sim,
        Protocol::Anthropic,
        "\n[models.sim-1]\nprice = { input = 3.0, output = 15.0 }\n",
    );
    run(&workspace, &["exec", "first thing"]).assert_code(0);
    run(&workspace, &["exec", "second thing"]).assert_code(0);
    let all = run(&workspace, &["sessions", "cost", "--json"]).json();
    assert_eq!(all["total"]["calls"], 2, "{all}");
    assert_eq!(all["rows"][0]["of"], "test/sim-1");
    let dollars = all["total"]["cost_usd"].as_f64().unwrap();
    assert!((dollars - 0.009).abs() < 1e-9, "{all}");
    let id = ids(&workspace).remove(0);
    let one = run(&workspace, &["sessions", "cost", &id, "--by", "cause"]);
    assert!(one.assert_code(0).stdout.contains("turn"), "{one}");
    assert!(one.stdout.lines().last().unwrap().contains("$0.0045"), "{one}");
    let days = run(&workspace, &["sessions", "cost", "--by", "day", "--json"]).json();
    assert_eq!(days["rows"].as_array().unwrap().len(), 1, "{days}");
    let sessions = run(&workspace, &["sessions", "cost", "--by", "session"]);
    assert_eq!(sessions.stdout.lines().count(), 4, "{sessions}");
}
