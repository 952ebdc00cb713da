use super::*;

fn bash(command: &str) -> Card {
    Card::new("c", "bash", json!({ "command": command }), Path::new("/p"))
}

/// ACP-1: the whole command is the title, whatever the tool calls it.
#[test]
fn a_command_is_its_title() {
    let mut card = bash("make\ntest");
    card.set_title("Runs the tests");
    assert_eq!(card.announced("pending")["title"], "make\ntest");
    let mut card = Card::new("c", "grep", json!({ "pattern": "x" }), Path::new("/p"));
    assert_eq!(card.announced("pending")["title"], "grep x");
    card.set_title("grep x in src");
    assert_eq!(card.running()["title"], "grep x in src");
}

/// ACP-1: without a terminal, updates repeat the end of the output, so their total size stays in proportion to it.
#[test]
fn long_output_costs_little() {
    let mut card = bash("yes");
    let mut sent = 0;
    for _ in 0..10_000 {
        if let Some(update) = card.add_output("0123456789\n") {
            sent += update.to_string().len();
        }
    }
    assert!(sent > 10_000 && sent < 10 * 110_000, "{sent}");
    assert!(card.output.len() <= 2 * MAX_OUTPUT);
}

/// ACP-1: output cannot break out of its block, and a long result is cut.
#[test]
fn results_are_fenced_and_cut() {
    let updates = bash("x").ended("a ``` b", false, None);
    assert_eq!(updates[0]["content"][0]["content"]["text"], "````\na ``` b\n````");
    let long = "é".repeat(MAX_RESULT);
    let updates = bash("x").ended(&long, true, None);
    let text = updates[0]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.len() < MAX_RESULT + 100 && text.contains("more bytes"));
    assert_eq!(updates[0]["status"], "failed");
}

/// ACP-2: a call that is only known by its subjects still says all of them.
#[test]
fn an_unknown_call_is_described() {
    let card = Card::new("c", "bash", json!({}), Path::new("/p")).of_agent("2 tester".to_owned());
    let fields = card.asked(Some("$ rm -rf x"), &["rm -rf x".to_owned()]);
    assert_eq!(fields["title"], "agent 2 tester: rm -rf x");
    assert_eq!(fields["rawInput"], json!({ "subjects": ["rm -rf x"] }));
    let card = Card::new("c", "fetch", json!({}), Path::new("/p"));
    assert_eq!(card.asked(None, &["a.org".to_owned()])["title"], "fetch a.org");
}
