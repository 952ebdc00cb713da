//! Output at a terminal. The terminal is real: a pseudo-terminal made by `script`.

use windlass_sim::{Fault, Protocol, Reply};

use super::support::with_replies;

/// Returns the text without the spinner's line and without colors.
fn seen(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.replace("\r\n", "\n").split('\n') {
        lines.push(line.rsplit("\r\u{1b}[K").next().unwrap_or_default().to_owned());
    }
    let joined = lines.join("\n");
    let pieces = joined.split('\u{1b}').enumerate();
    let clean = pieces.map(|(index, piece)| {
        if index == 0 {
            piece
        } else {
            piece.split_once('m').map_or("", |(_, rest)| rest)
        }
    });
    clean.collect()
}

/// UI-1: on a terminal the reply streams as it arrives, with a spinner before it and status lines beside it.
#[test]
fn a_terminal_sees_the_reply_stream() {
    let replies = [
        Reply::call("read_file", serde_json::json!({ "path": "a.txt" })).say("Let me look."),
        Reply::text("It says alpha.")
            .delta_chars(4)
            .fault(Fault::new().delay_ms(400)),
    ];
    let (sim, workspace) = with_replies(Protocol::Anthropic, replies);
    workspace.write("a.txt", "alpha\n");
    let output = workspace.run_on_terminal("exec 'what is in a.txt'").output();
    output.assert_code(0);
    let text = seen(&output.stdout);
    assert!(output.stdout.contains("thinking"), "a sign of life: {output}");
    for expected in [
        "Let me look.\n",
        "● read_file a.txt\n",
        "alpha\n",
        "It says alpha.\n",
        "2 model calls",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    sim.assert_valid();
}

/// PROV-6, UI-1: a reply that starts over is not shown twice.
#[test]
fn a_restarted_reply_is_shown_once() {
    let whole = "Hello brave new world, here I am.";
    let cut = || {
        Reply::text(whole)
            .delta_chars(4)
            .fault(Fault::new().cut_after_events(6))
    };
    let (_sim, workspace) = with_replies(Protocol::Anthropic, [cut(), Reply::text(whole).delta_chars(7)]);
    let output = workspace.run_on_terminal("exec hi").output();
    output.assert_code(0);
    let text = seen(&output.stdout);
    assert!(text.contains("retrying in"), "{text}");
    // The notice about the retry is between the two halves.
    let told: String = text
        .lines()
        .filter(|line| !line.contains("warning:") && !line.contains("model call"))
        .collect();
    assert_eq!(told.matches("Hello").count(), 1, "{text}");
    assert!(!text.contains("the reply restarts"), "{text}");

    let (_sim, workspace) = with_replies(Protocol::Anthropic, [cut(), Reply::text("Goodbye.")]);
    let output = workspace.run_on_terminal("exec hi").output();
    let text = seen(output.assert_code(0).stdout.as_str());
    assert!(text.contains("[the reply restarts]\nGoodbye.\n"), "{text}");
}

/// SAFE-7, EXT-6: no control sequence from a model reaches the terminal, and NO_COLOR is honored.
#[test]
fn a_terminal_is_not_controlled_by_the_model() {
    let (_sim, workspace) = with_replies(
        Protocol::Anthropic,
        [Reply::text("a\u{1b}]0;evil title\u{7}b \u{1b}[31mred\u{1b}[0m")],
    );
    let output = workspace.run_on_terminal("exec hi").env("NO_COLOR", "1").output();
    output.assert_code(0);
    assert!(output.stdout.contains("ab red"), "{output}");
    assert!(
        !output.stdout.contains("evil") && !output.stdout.contains("\u{1b}[3"),
        "{output}"
    );
    assert!(!output.stdout.contains("\u{1b}[2m"), "{output}");
}
