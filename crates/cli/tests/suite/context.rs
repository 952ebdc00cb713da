//! Inspection of requests, byte by byte, and the cause of every cache miss.

use serde_json::json;
use windlass_sim::{Protocol, Reply, When};
use windlass_testkit::{Output, WIRES, Workspace};

use super::support::with_replies;

fn run(workspace: &Workspace, args: &[&str]) -> Output {
    workspace.run(args).output()
}

/// Returns the rows of a table: number, bytes.
fn bytes(output: &Output) -> Vec<usize> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        words.next()?.parse::<usize>().ok()?;
        words.next()?.parse().ok()
    };
    output.stdout.lines().skip(2).filter_map(row).collect()
}

/// CTX-16: the kinds of the next request come first, and no row is said to cost nothing if it costs a little.
#[test]
fn kinds_are_summed_up() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("fine").forever()]);
    let priced = "\n[models.sim-1]\ncontext_window = 32000\nprice = { input = 1.0, output = 5.0 }\n";
    workspace.use_sim_with(&sim, Protocol::Anthropic, priced);
    run(&workspace, &["exec", "first"]).assert_code(0);
    let shown = run(&workspace, &["context", "show"]);
    let shown = &shown.assert_code(0).stdout;
    assert!(shown.contains("tokens by kind: tools "), "{shown}");
    assert!(
        shown.contains("you    first"),
        "a message is named by its own words: {shown}"
    );
    assert!(
        shown.contains("<$0.0001") && !shown.contains("$0.0000"),
        "{shown}"
    );
}

/// CTX-16: the labeled spans of the next request cover every byte of it, on every wire; spans that were sent
/// before count as cached.
#[test]
fn every_byte_of_the_next_request_is_shown() {
    for wire in WIRES {
        let replies = [
            Reply::call("bash", json!({"command": "echo one"})),
            Reply::text("first answer"),
            Reply::text("second answer"),
        ];
        let (sim, workspace) = with_replies(wire, replies);
        run(&workspace, &["exec", "first"]).assert_code(0);
        run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
        let shown = run(&workspace, &["context", "show"]);
        let (_, next) = shown.assert_code(0).stdout.split_once("next request: ").unwrap();
        let total: usize = next.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(bytes(&shown).iter().sum::<usize>(), total, "{wire:?}: {shown}");
        for text in [
            "system prompt",
            "tools",
            "you    first",
            "result bash: one",
            "second answer",
            "cached",
        ] {
            assert!(shown.stdout.contains(text), "{text}: {shown}");
        }
        assert_eq!(sim.count(), 3, "nobody was asked");
        let typed = run(&workspace, &["exec", "--continue", "/context"]);
        assert_eq!(bytes(typed.assert_code(0)), bytes(&shown));
    }
}

/// CTX-16: nothing is sent to show the next request, so no key is needed.
#[test]
fn a_request_is_shown_without_a_key() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("an answer")]);
    workspace.use_sim_with(&sim, Protocol::Anthropic, "key_env = \"TEST_KEY\"\n");
    let exec = workspace.run(&["exec", "first"]).env("TEST_KEY", "k").output();
    exec.assert_code(0);
    let shown = run(&workspace, &["context", "show"]);
    assert!(shown.assert_code(0).stdout.contains("you    first"), "{shown}");
    run(&workspace, &["exec", "--continue", "more"]).assert_code(8);
    assert_eq!(sim.count(), 1);
}

/// CTX-16: the ledger lists the first changed byte of every request, the cause of every miss, and its cost.
#[test]
fn every_miss_has_a_cause() {
    let (sim, workspace) = with_replies(Protocol::Anthropic, [Reply::text("an answer").forever()]);
    let price = "\n[models.sim-1.price]\ninput = 10.0\noutput = 10.0\ncache_read = 1.0\ncache_write = 12.0\n";
    workspace.use_sim_with(&sim, Protocol::Anthropic, price);
    let long = "word ".repeat(4_000);
    run(&workspace, &["exec", &long]).assert_code(0);
    run(&workspace, &["exec", "--continue", "two"]).assert_code(0);
    workspace.write("AGENTS.md", "Say please.\n");
    run(&workspace, &["exec", "--continue", "three"]).assert_code(0);
    let limit = "session.max_conversation_messages=2";
    run(&workspace, &["exec", "--continue", "-c", limit, "four"]).assert_code(0);
    let ledger = run(&workspace, &["context", "ledger"]);
    let lines: Vec<&str> = ledger.assert_code(0).stdout.lines().collect();
    assert!(lines[1].contains("the first request"), "{ledger}");
    assert!(lines[2].contains("full cache hit"), "{ledger}");
    assert!(
        lines[3].contains("missed: the system prompt changed, $0."),
        "{ledger}"
    );
    assert!(lines[4].contains("missed: the history was rewritten"), "{ledger}");
    assert!(
        lines[5].starts_with("2 of 4 requests missed the cache, which cost $0."),
        "{ledger}"
    );
}

/// CTX-16, CTX-15: a row can be dropped after its effect is shown, and read back; a pinned one is part of
/// every summary.
#[test]
fn rows_are_dropped_and_pinned() {
    let replies = [
        Reply::text("a summary")
            .when(When::new().no_tools(true))
            .forever(),
        Reply::call("bash", json!({"command": "seq 1 900"})).id("c1"),
        Reply::text("first answer"),
        Reply::text(&"second answer ".repeat(200)).forever(),
    ];
    let (sim, workspace) = with_replies(Protocol::Chat, replies);
    run(&workspace, &["exec", "first"]).assert_code(0);
    let row = |text: &str| {
        let shown = run(&workspace, &["context", "show"]);
        let line = shown
            .stdout
            .lines()
            .find(|line| line.contains(text))
            .unwrap()
            .to_owned();
        line.split_whitespace().next().unwrap().to_owned()
    };
    let output = row("result bash");
    let preview = run(
        &workspace,
        &["exec", "--continue", &format!("/context evict {output}")],
    );
    assert!(
        preview.assert_code(0).stdout.contains("--yes does it"),
        "{preview}"
    );
    run(&workspace, &["exec", "--continue", "second"]).assert_code(0);
    let last = || String::from_utf8_lossy(&sim.requests().last().unwrap().raw).into_owned();
    assert!(last().contains("899"), "nothing was done yet");
    run(
        &workspace,
        &["exec", "--continue", &format!("/context evict {output} --yes")],
    )
    .assert_code(0);
    run(&workspace, &["exec", "--continue", "third"]).assert_code(0);
    assert!(!last().contains("899") && last().contains("recall"), "{}", last());
    let pinned = row("model  first answer");
    run(
        &workspace,
        &["exec", "--continue", &format!("/context pin {pinned}")],
    )
    .assert_code(0);
    for prompt in ["fourth", "fifth", "sixth", "seventh"] {
        run(&workspace, &["exec", "--continue", prompt]).assert_code(0);
    }
    run(&workspace, &["exec", "--continue", "/compact"]).assert_code(0);
    run(&workspace, &["exec", "--continue", "eighth"]).assert_code(0);
    assert!(
        last().contains("pinned by the user") && last().contains("first answer"),
        "{}",
        last()
    );
    let wrong = run(&workspace, &["exec", "--continue", "/context evict 999"]);
    wrong.assert_code(1).assert_says("there is no row 999");
    let said = run(
        &workspace,
        &[
            "exec",
            "--continue",
            &format!("/context evict {}", row("you    first")),
        ],
    );
    said.assert_code(1)
        .assert_says("messages of you and the model stay");
    sim.assert_valid();
}
